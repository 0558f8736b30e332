//! The page about CBO's paper.

use layerlab_planners::video::papers;
use layerlab_planners::video::replay::VideoPolicy;
use layerlab_tests::proof::figure::{Figure, Line, page as page_of};

use crate::calibrated;
use crate::decisions;
use crate::replays::{Setting, Videos};

const INTRO: &str = "`cargo tool video-papers cbo tests/reports/cbo.md` made this page. It sets the figures of Tan and Cao, \"Deep \
Learning on Mobile Devices Through Neural Processing Units and Edge Computing\" (INFOCOM 2022), beside replays. The times of the \
models are those of Table III. Everything else that is replayed is SIMULATED: frames, their sizes as PNG, what the NPU is sure of, how \
accuracy falls with the resolution (Figure 10 prints no numbers), and Compress's 180 ms and 0.7. Four videos of 300 frames each; T = 200 ms. \
Table I and Figures 4, 5, 7 and 10 are made of answers of vocnet-mini, a small network of this project's own, to drawn scenes: on the \
SIMULATED NPU of a Mate 10 Pro, and on this machine as the server. They are no answers of AlexNet's or ResNet's, and the simulated NPU is not \
Huawei's. No phone and no radio had part in it.";

const VIDEOS: Videos = Videos {
    count: 4,
    frames: 300,
    weight: None,
};

/// The lines of Figures 11 to 13.
struct Lines {
    local: Line,
    server: Line,
    fastva: Line,
    compress: Line,
    without: Line,
    cbo: Line,
}

impl Lines {
    fn over(settings: &[Setting]) -> Lines {
        let line = |name, policy| VIDEOS.line(papers::cbo_world, (name, policy), settings);
        Lines {
            local: line("Local", VideoPolicy::CboLocal),
            server: line("Server", VideoPolicy::Server),
            fastva: line("FastVA", VideoPolicy::MaxAccuracy),
            compress: VIDEOS.line(
                papers::compress_world,
                ("Compress", VideoPolicy::MaxAccuracy),
                settings,
            ),
            without: line("CBO-w/o", VideoPolicy::CboUncalibrated),
            cbo: line("CBO", VideoPolicy::Cbo),
        }
    }

    fn figure(&self, title: &str, across: &str, xs: &[f64]) -> Figure {
        let lines = [
            &self.local,
            &self.server,
            &self.fastva,
            &self.compress,
            &self.without,
            &self.cbo,
        ];
        Figure::lines(title, across, xs, &lines.map(Line::clone), 3)
    }

    fn others(&self) -> [&Line; 5] {
        [
            &self.without,
            &self.server,
            &self.fastva,
            &self.compress,
            &self.local,
        ]
    }

    /// CBO against each of the others, over all places.
    fn best(&self, figure: Figure) -> Figure {
        let least = self
            .others()
            .map(|other| (other.name, self.cbo.least_above(other)));
        let found = least.map(|(name, above)| format!("{name} {above:+.3}"));
        figure.claim(
            "CBO outperforms all others",
            self.others().iter().all(|other| self.cbo.is_above(other)),
            format!("least distance: {}", found.join(", ")),
        )
    }
}

fn figure_11() -> Figure {
    let xs = [0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 36.0, 50.0];
    let settings = xs.map(|mbps| Setting {
        mbps,
        fps: 30.0,
        latency_ms: 100,
    });
    let lines = Lines::over(&settings);
    let Lines {
        local,
        server,
        fastva,
        compress,
        without,
        cbo,
    } = &lines;
    let at = |mbps: f64| xs.iter().position(|&x| x == mbps).expect("a place");
    let all_of = |is: &dyn Fn(usize) -> bool, from: usize, to: usize| (from..to).all(is);
    let figure = lines.figure(
        "Figure 11: accuracy over bandwidth (30 fps, 100 ms)",
        "Mbit/s",
        &xs,
    );
    let figure = figure
        .claim(
            "at 0 Local, FastVA, CBO and CBO-w/o are equal",
            [fastva, cbo, without]
                .iter()
                .all(|line| (line.first() - local.first()).abs() < 1e-9),
            format!("{:.3}", local.first()),
        )
        .claim(
            "below 3 Mbit/s Local is better than Server",
            all_of(&|place| local.at(place) > server.at(place), 0, at(3.0)),
            format!(
                "at 2: {:.3} and {:.3}",
                local.at(at(2.0)),
                server.at(at(2.0))
            ),
        )
        .claim(
            "below 15 Mbit/s FastVA is better than Compress",
            all_of(&|place| fastva.at(place) > compress.at(place), 0, at(15.0)),
            format!(
                "at 10: {:.3} and {:.3}",
                fastva.at(at(10.0)),
                compress.at(at(10.0))
            ),
        )
        .claim(
            "CBO-w/o underperforms CBO and FastVA",
            (1..xs.len()).all(|place| without.at(place) < cbo.at(place).min(fastva.at(place))),
            format!(
                "least distance of FastVA: {:+.3}",
                fastva.least_above(without)
            ),
        )
        .claim(
            "at low bandwidth CBO-w/o is better than Server, at high Server is",
            without.at(1) > server.at(1) && server.last() > without.last(),
            format!(
                "at 1: {:.3} and {:.3}; at 50: {:.3} and {:.3}",
                without.at(1),
                server.at(1),
                without.last(),
                server.last()
            ),
        )
        .claim(
            "above 36 Mbit/s the differences become smaller (PLANNERS: CBO and Server within 0.02)",
            all_of(
                &|place| (cbo.at(place) - server.at(place)).abs() <= 0.02,
                at(36.0),
                xs.len(),
            ),
            format!(
                "at 36: {:.3} and {:.3}",
                cbo.at(at(36.0)),
                server.at(at(36.0))
            ),
        );
    lines.best(figure)
}

fn figure_12() -> Figure {
    let xs = [5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
    let settings = xs.map(|fps| Setting {
        mbps: 5.0,
        fps,
        latency_ms: 100,
    });
    let lines = Lines::over(&settings);
    let figure = lines.figure(
        "Figure 12: accuracy over the frame rate (5 Mbit/s, 100 ms)",
        "fps",
        &xs,
    );
    let figure = figure
        .claim(
            "Server drops by 15 % from 5 to 30 fps",
            lines.server.drop() >= 0.15,
            format!("{:.3}", lines.server.drop()),
        )
        .claim(
            "CBO drops by 6 % only",
            lines.cbo.drop() <= 0.06,
            format!("{:.3}", lines.cbo.drop()),
        )
        .claim(
            "all but Local drop when the frame rate rises",
            lines.others()[..4].iter().all(|line| line.drop() > 0.0) && lines.cbo.drop() > 0.0,
            format!(
                "FastVA {:.3}, Compress {:.3}",
                lines.fastva.drop(),
                lines.compress.drop()
            ),
        );
    lines.best(figure)
}

fn figure_13() -> Figure {
    let xs = [25.0, 50.0, 75.0, 100.0, 125.0, 150.0];
    let settings = xs.map(|latency| Setting {
        mbps: 5.0,
        fps: 30.0,
        latency_ms: latency as u64,
    });
    let lines = Lines::over(&settings);
    let figure = lines.figure(
        "Figure 13: accuracy over the network's latency (5 Mbit/s, 30 fps)",
        "ms",
        &xs,
    );
    let moving = [
        &lines.server,
        &lines.fastva,
        &lines.compress,
        &lines.without,
        &lines.cbo,
    ];
    let figure = figure
        .claim(
            "Local stays the same",
            lines.local.drop().abs() < 0.005,
            format!("{:.3}", lines.local.drop().abs()),
        )
        .claim(
            "Server, Compress, FastVA, CBO and CBO-w/o degrade",
            moving
                .iter()
                .all(|line| line.never_rises(0.002) && line.drop() > 0.0),
            moving
                .map(|line| format!("{} {:.3}", line.name, line.drop()))
                .join(", "),
        )
        .claim(
            "CBO drops much less than Server",
            lines.cbo.drop() < lines.server.drop() / 2.0,
            format!("{:.3} and {:.3}", lines.cbo.drop(), lines.server.drop()),
        );
    lines.best(figure)
}

fn figure_14() -> Figure {
    let (rates, bandwidths) = ([10.0, 15.0, 20.0, 25.0, 30.0], [1.0, 3.0, 5.0, 10.0, 20.0]);
    let (mut rows, mut gaps, mut best) = (Vec::new(), Vec::new(), Vec::new());
    for fps in rates {
        let (mut row, mut line) = (vec![fps.to_string()], Vec::new());
        for mbps in bandwidths {
            let setting = Setting {
                mbps,
                fps,
                latency_ms: 100,
            };
            let value = |policy| {
                let came = VIDEOS.replay(papers::cbo_world, policy, setting);
                came.expect("the NPU answers every frame").value
            };
            let (optimal, found) = (value(VideoPolicy::CboOptimal), value(VideoPolicy::Cbo));
            row.push(format!("{optimal:.3} ({:.4})", optimal - found));
            gaps.push(optimal - found);
            line.push(optimal);
        }
        rows.push(row);
        best.push(line);
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let most = gaps.iter().copied().fold(0.0, f64::max);
    let rises = best.iter().all(|line| line.is_sorted());
    let falls = best.windows(2).all(|pair| {
        pair[0]
            .iter()
            .zip(&pair[1])
            .all(|(slow, fast)| slow >= fast)
    });
    Figure::table(
        "Figure 14: Optimal over frame rate and bandwidth, and its distance from CBO",
        &[
            "fps",
            "1 Mbit/s",
            "3 Mbit/s",
            "5 Mbit/s",
            "10 Mbit/s",
            "20 Mbit/s",
        ],
        rows,
    )
    .note("Optimal's accuracy, in brackets less CBO's.")
    .claim("Optimal rises with the bandwidth", rises, "")
    .claim("Optimal falls with the frame rate", falls, "")
    .claim(
        "the distance is almost zero in most cases (to be at most 0.01 on average)",
        mean <= 0.01,
        format!("mean {mean:.4}, largest {most:.4}"),
    )
    .claim(
        "Optimal is an upper bound",
        gaps.iter().all(|&gap| gap >= -1e-9),
        format!(
            "least distance {:.4}",
            gaps.iter().copied().fold(f64::INFINITY, f64::min)
        ),
    )
}

fn table_3() -> Figure {
    let rows = [
        ("AlexNet on NPU", "20"),
        ("ResNet-152 on server", "37"),
        ("confidence score calibration", "8"),
    ];
    let rows = rows.map(|(what, time)| vec![what.to_owned(), time.to_owned()]);
    Figure::table(
        "Table III: the times that are replayed",
        &["", "ms"],
        rows.to_vec(),
    )
    .note("As printed; nothing of it was measured here.")
}

/// The page.
pub(crate) fn page() -> String {
    let mut figures = calibrated::figures();
    figures.extend([
        table_3(),
        figure_11(),
        figure_12(),
        figure_13(),
        figure_14(),
        decisions::cbo(),
    ]);
    page_of("CBO's figures, replayed", INTRO, &figures)
}
