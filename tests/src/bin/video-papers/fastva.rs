//! The page about FastVA's paper.

use layerlab_planners::video::fastva::{FastVaProblem, Scheduled, VideoGoal, local};
use layerlab_planners::video::papers;
use layerlab_planners::video::replay::VideoPolicy;
use layerlab_planners::video::{Uplink, VideoStream};
use layerlab_profiles::Nanos;
use layerlab_tests::proof::figure::{Figure, Line, page as page_of};

use crate::replays::{Setting, Videos};
use crate::{calibrated, decisions};

const INTRO: &str = "`cargo tool video-papers fastva tests/reports/fastva.md` made this page. It sets the figures of Tan and Cao, \"FastVA: \
Deep Learning Video Analytics Through Edge Processing and NPU in Mobile\" (INFOCOM 2020), beside replays. Times and full accuracies of \
the models are those of Table II. Everything else is SIMULATED: frames, their sizes as PNG, and how accuracy falls with the resolution \
(Figure 4 prints no numbers). Two videos of 300 frames each, where Optimal is beside them eight of 24, which is as far as a search of all \
schedules goes; T = 200 ms; DeepDecision's windows have 30 frames. A frame that nothing answers counts as wrong. A PNG of 224x224 pixels \
is taken for 60 to 100 kB here, and takes 160 to 270 ms at 3 Mbit/s: the paper says 39 to 242 ms and not of what, so that its frames may well \
have been smaller, and what is said of sending holds there at lower bandwidths than here. No phone and no radio \
had part in it.";

const LONG: Videos = Videos {
    count: 2,
    frames: 300,
    weight: None,
};
const SHORT: Videos = Videos {
    count: 8,
    frames: 24,
    weight: None,
};

/// Differences that are too small to see in the papers' pictures.
const UNSEEN: f64 = 0.005;

const BANDWIDTHS: [f64; 5] = [0.5, 1.5, 2.5, 3.5, 4.5];
const RATES: [f64; 7] = [20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0];
const DELAYS: [f64; 6] = [25.0, 50.0, 75.0, 100.0, 125.0, 150.0];

fn settings(xs: &[f64], of: impl Fn(f64) -> Setting) -> Vec<Setting> {
    xs.iter().map(|&x| of(x)).collect()
}

/// The lines of most figures.
struct Lines {
    offload: Line,
    local: Line,
    deep: Line,
    ours: Line,
}

impl Lines {
    fn over(videos: Videos, settings: &[Setting]) -> Lines {
        let line = |name, policy| videos.line(papers::fastva_world, (name, policy), settings);
        let ours = match videos.weight {
            Some(_) => ("Max-Utility", VideoPolicy::MaxUtility),
            None => ("Max-Accuracy", VideoPolicy::MaxAccuracy),
        };
        Lines {
            offload: line("Offload", VideoPolicy::Offload),
            local: line("Local", VideoPolicy::Local),
            deep: line("DeepDecision", VideoPolicy::DeepDecision),
            ours: line(ours.0, ours.1),
        }
    }

    fn figure(&self, title: &str, across: &str, xs: &[f64], digits: usize) -> Figure {
        let lines = [&self.offload, &self.local, &self.deep, &self.ours];
        Figure::lines(title, across, xs, &lines.map(Line::clone), digits)
    }

    fn others(&self) -> [&Line; 3] {
        [&self.offload, &self.local, &self.deep]
    }

    fn outperforms(&self, figure: Figure) -> Figure {
        let least = self
            .others()
            .map(|other| (other.name, self.ours.least_above(other)));
        let found = least.map(|(name, above)| format!("{name} {above:+.3}"));
        figure.claim(
            &format!("{} outperforms the others", self.ours.name),
            least.iter().all(|(_, above)| *above >= -UNSEEN),
            format!("least distance: {}", found.join(", ")),
        )
    }

    fn local_stays(&self, figure: Figure) -> Figure {
        figure.claim(
            "Local stays the same",
            self.local.drop().abs() < UNSEEN,
            format!("{:.3}", self.local.first()),
        )
    }
}

fn table_2() -> Figure {
    let models = papers::fastva_models().expect("fractions");
    let row = |name: &str, side: &str, time: Nanos, accuracy: f64| {
        vec![
            format!("{name}, {side}"),
            format!("{}", time.as_nanos() / 1_000_000),
            accuracy.to_string(),
        ]
    };
    let phone = models
        .local()
        .iter()
        .map(|it| row(&it.name, "phone", it.time, it.accuracy));
    let server = models.remote().iter().map(|it| {
        row(
            &it.name,
            "server",
            it.time,
            it.accuracies.last().copied().unwrap_or_default(),
        )
    });
    let rows = phone.chain(server).collect();
    let alone = |micros: u64| {
        let stream = VideoStream::new(Nanos::from_micros(micros), Nanos::from_millis(200));
        let nothing = Uplink::new(0, Nanos::ZERO);
        let problem = FastVaProblem::new(stream.expect("sensible"), nothing, models.clone());
        local(&problem, 3_000, VideoGoal::Accuracy).expect("sensible")
    };
    let accuracy = |micros| alone(micros).planned().map_or(0.0, |it| it.accuracy());
    let (slow, fast) = (accuracy(33_333), accuracy(20_000));
    let is_infeasible = |micros| matches!(alone(micros), Scheduled::Infeasible { .. });
    Figure::table("Table II: what is replayed", &["", "ms", "accuracy"], rows)
        .note("As printed; nothing of it was measured here. Statements are PLANNERS's, which follow from the table.")
        .claim(
            "Local over 3,000 frames at 30 fps: 0.461 (±0.002)",
            (slow - 0.461).abs() <= 0.002,
            format!("{slow:.4}"),
        )
        .claim(
            "at 50 fps: 0.419 (±0.002)",
            (fast - 0.419).abs() <= 0.002,
            format!("{fast:.4}"),
        )
        .claim(
            "below 17 ms a frame there is no Local",
            !is_infeasible(17_000) && is_infeasible(16_900),
            "17 ms: there is; 16.9 ms: infeasible",
        )
}

fn figure_5(fps: f64) -> Figure {
    let of = |mbps| Setting {
        mbps,
        fps,
        latency_ms: 100,
    };
    let settings = settings(&BANDWIDTHS, of);
    let lines = Lines::over(LONG, &settings);
    let title = format!("Figure 5: accuracy over bandwidth ({fps} fps, 100 ms)");
    let mut figure = lines.figure(&title, "Mbit/s", &BANDWIDTHS, 3);
    figure = lines.local_stays(figure);
    figure = figure
        .claim(
            "at low bandwidth Local is as good as Max-Accuracy",
            (lines.ours.first() - lines.local.first()).abs() <= 0.02,
            format!("{:.3} and {:.3}", lines.local.first(), lines.ours.first()),
        )
        .claim(
            "at low bandwidth Local is better than DeepDecision",
            lines.local.first() > lines.deep.first(),
            format!("{:.3} and {:.3}", lines.local.first(), lines.deep.first()),
        )
        .claim(
            "with bandwidth the others come closer to Max-Accuracy",
            [&lines.offload, &lines.deep]
                .iter()
                .all(|other| lines.ours.last() - other.last() < lines.ours.first() - other.first()),
            format!(
                "Offload {:.3} to {:.3}, DeepDecision {:.3} to {:.3}",
                lines.ours.first() - lines.offload.first(),
                lines.ours.last() - lines.offload.last(),
                lines.ours.first() - lines.deep.first(),
                lines.ours.last() - lines.deep.last()
            ),
        );
    if fps == 50.0 {
        let missed = |mbps| {
            let came = LONG.replay(papers::fastva_world, VideoPolicy::Offload, of(mbps));
            came.expect("it may skip").missed
        };
        let (slow, fast) = (missed(1.4), missed(1.6));
        figure = figure.claim(
            "below 1.5 Mbit/s Offload cannot answer all frames",
            slow > 0.0 && fast == 0.0,
            format!(
                "missed at 1.4: {:.1} %, at 1.6: {:.1} %",
                100.0 * slow,
                100.0 * fast
            ),
        );
    }
    lines.outperforms(figure)
}

fn figure_6(mbps: f64) -> Figure {
    let settings = settings(&RATES, |fps| Setting {
        mbps,
        fps,
        latency_ms: 100,
    });
    let lines = Lines::over(LONG, &settings);
    let title = format!("Figure 6: accuracy over the frame rate ({mbps} Mbit/s, 100 ms)");
    let figure = lines.figure(&title, "fps", &RATES, 3);
    let all = [&lines.offload, &lines.local, &lines.deep, &lines.ours];
    let share = |line: &Line| line.drop() / line.first();
    let figure = figure
        .claim(
            "all drop when the frame rate is high",
            all.iter().all(|line| line.drop() > 0.0),
            all.map(|line| format!("{} {:.3}", line.name, line.drop()))
                .join(", "),
        )
        .claim(
            "Offload drops by 30 %",
            share(&lines.offload) >= 0.3,
            format!("{:.0} %", 100.0 * share(&lines.offload)),
        )
        .claim(
            "Max-Accuracy does not drop much",
            share(&lines.ours) < share(&lines.offload) / 2.0,
            format!("{:.0} %", 100.0 * share(&lines.ours)),
        );
    lines.outperforms(figure)
}

fn figure_7() -> Figure {
    let (rates, bandwidths) = ([20.0, 30.0, 40.0, 50.0], [1.0, 2.0, 3.0, 4.0]);
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
                let came = SHORT.replay(papers::fastva_world, policy, setting);
                came.map_or(0.0, |came| came.value)
            };
            let (optimal, found) = (
                value(VideoPolicy::FastvaOptimal),
                value(VideoPolicy::MaxAccuracy),
            );
            row.push(format!("{optimal:.3} ({:.4})", optimal - found));
            gaps.push(optimal - found);
            line.push(optimal);
        }
        rows.push(row);
        best.push(line);
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let most = gaps.iter().copied().fold(0.0, f64::max);
    Figure::table(
        "Figure 7: Optimal over frame rate and bandwidth, and its distance from Max-Accuracy",
        &["fps", "1 Mbit/s", "2 Mbit/s", "3 Mbit/s", "4 Mbit/s"],
        rows,
    )
    .note("Optimal's accuracy, in brackets less Max-Accuracy's.")
    .claim(
        "Optimal rises with the bandwidth",
        best.iter().all(|line| line.is_sorted()),
        "",
    )
    .claim(
        "Optimal falls with the frame rate",
        best.windows(2).all(|pair| {
            pair[0]
                .iter()
                .zip(&pair[1])
                .all(|(slow, fast)| slow >= fast)
        }),
        "",
    )
    .claim(
        "the distance is almost 0 in most cases (to be at most 0.02 on average)",
        mean <= 0.02,
        format!("mean {mean:.4}, largest {most:.4}"),
    )
}

fn figure_8(fps: f64) -> Figure {
    let settings = settings(&DELAYS, |delay| Setting {
        mbps: 3.0,
        fps,
        latency_ms: delay as u64,
    });
    let lines = Lines::over(LONG, &settings);
    let title = format!("Figure 8: accuracy over the upload delay (3 Mbit/s, {fps} fps)");
    let figure = lines.local_stays(lines.figure(&title, "ms", &DELAYS, 3));
    let figure = figure
        .claim(
            "Offload, DeepDecision and Max-Accuracy drop with the delay",
            [&lines.offload, &lines.deep, &lines.ours]
                .iter()
                .all(|line| line.never_rises(UNSEEN) && line.drop() > 0.0),
            format!("Max-Accuracy {:.3}", lines.ours.drop()),
        )
        .claim(
            "Offload drops the most",
            lines.offload.drop() > lines.deep.drop().max(lines.ours.drop()),
            format!(
                "{:.3}, DeepDecision {:.3}",
                lines.offload.drop(),
                lines.deep.drop()
            ),
        );
    lines.outperforms(figure)
}

fn figure_9(weight: f64) -> Figure {
    let videos = Videos {
        weight: Some(weight),
        ..SHORT
    };
    let settings = settings(&BANDWIDTHS, |mbps| Setting {
        mbps,
        fps: 30.0,
        latency_ms: 100,
    });
    let lines = Lines::over(videos, &settings);
    let optimal = ("Optimal", VideoPolicy::FastvaOptimal);
    let optimal = videos.line(papers::fastva_world, optimal, &settings);
    let title = format!("Figure 9: utility over bandwidth (30 fps, 100 ms, α = {weight})");
    let all = [
        &lines.offload,
        &lines.local,
        &lines.deep,
        &lines.ours,
        &optimal,
    ]
    .map(Line::clone);
    let figure = lines.local_stays(Figure::lines(&title, "Mbit/s", &BANDWIDTHS, &all, 1));
    let fall = |line: &Line| -line.drop();
    let figure = figure
        .claim(
            "at low bandwidth Offload underperforms Local",
            lines.offload.first() < lines.local.first(),
            format!(
                "{:.1} and {:.1}",
                lines.offload.first(),
                lines.local.first()
            ),
        )
        .claim(
            "when bandwidth decreases Offload drops, the others much slower",
            [&lines.deep, &lines.ours, &optimal]
                .iter()
                .all(|line| fall(line) < fall(&lines.offload)),
            all.each_ref()
                .map(|line| format!("{} {:.1}", line.name, fall(line)))
                .join(", "),
        )
        .claim(
            "with bandwidth the differences become smaller",
            optimal.last() - lines.ours.last() <= optimal.first() - lines.ours.first()
                && optimal.last() - lines.deep.last() <= optimal.first() - lines.deep.first()
                && optimal.last() - lines.offload.last() < optimal.first() - lines.offload.first(),
            format!(
                "Max-Utility {:.1} to {:.1}, DeepDecision {:.1} to {:.1}",
                optimal.first() - lines.ours.first(),
                optimal.last() - lines.ours.last(),
                optimal.first() - lines.deep.first(),
                optimal.last() - lines.deep.last()
            ),
        )
        .claim(
            "Optimal is an upper bound",
            [&lines.offload, &lines.local, &lines.deep, &lines.ours]
                .iter()
                .all(|line| optimal.is_above(line)),
            "",
        );
    lines.outperforms(figure)
}

fn figure_10(weight: f64) -> Figure {
    let videos = Videos {
        weight: Some(weight),
        ..LONG
    };
    let settings = settings(&RATES, |fps| Setting {
        mbps: 2.5,
        fps,
        latency_ms: 100,
    });
    let lines = Lines::over(videos, &settings);
    let title =
        format!("Figure 10: utility over the frame rate (2.5 Mbit/s, 100 ms, α = {weight})");
    let figure = lines.figure(&title, "fps", &RATES, 1);
    let rise = |line: &Line| -line.drop() / line.first();
    let all = [&lines.offload, &lines.local, &lines.deep, &lines.ours];
    let found = all
        .map(|line| format!("{} {:+.0} %", line.name, 100.0 * rise(line)))
        .join(", ");
    let figure = match weight < 100.0 {
        true => figure.claim(
            "the utility of all methods increases with the frame rate",
            all.iter().all(|line| rise(line) > 0.0),
            found,
        ),
        false => figure.claim(
            "the utility does not increase too much (at most by a quarter)",
            all.iter().all(|line| rise(line) <= 0.25),
            found,
        ),
    };
    lines.outperforms(figure)
}

fn figure_11(weight: f64) -> Figure {
    let videos = Videos {
        weight: Some(weight),
        ..LONG
    };
    let settings = settings(&DELAYS, |delay| Setting {
        mbps: 2.0,
        fps: 30.0,
        latency_ms: delay as u64,
    });
    let lines = Lines::over(videos, &settings);
    let title =
        format!("Figure 11: utility over the upload delay (2 Mbit/s, 30 fps, α = {weight})");
    let figure = lines.local_stays(lines.figure(&title, "ms", &DELAYS, 1));
    let figure = figure.claim(
        "Offload, DeepDecision and Max-Utility degrade with the delay",
        [&lines.offload, &lines.deep, &lines.ours]
            .iter()
            .all(|line| line.never_rises(0.2) && line.drop() > 0.0),
        format!(
            "{:.1}, {:.1}, {:.1}",
            lines.offload.drop(),
            lines.deep.drop(),
            lines.ours.drop()
        ),
    );
    lines.outperforms(figure)
}

/// The page.
pub(crate) fn page() -> String {
    let figures = [
        table_2(),
        calibrated::figure_4_of_fastva(),
        figure_5(30.0),
        figure_5(50.0),
        figure_6(2.0),
        figure_6(3.0),
        figure_7(),
        figure_8(30.0),
        figure_8(50.0),
        figure_9(200.0),
        figure_9(50.0),
        figure_10(200.0),
        figure_10(50.0),
        figure_11(200.0),
        figure_11(50.0),
        decisions::fastva(),
    ];
    page_of("FastVA's figures, replayed", INTRO, &figures)
}
