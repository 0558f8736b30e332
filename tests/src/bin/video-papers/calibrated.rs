//! Table I and Figures 4, 5, 7 and 10 of CBO's paper, of a model of this project's own on a simulated phone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layerlab_planners::video::calibration::{CalibrationTrial, Calibrator, choose};
use layerlab_planners::video::measured::halves;
use layerlab_profiles::video::{Half, VideoDocument, check_video_directory};
use layerlab_tests::proof::figure::Figure;
use layerlab_tests::{layerlab, model, root, succeed};

use crate::cut_out::CutOut;

/// The thresholds of Figures 4 and 7a.
const THRESHOLDS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The figures.
pub(crate) fn figures() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a folder");
    let set = scenes(folder.path());
    let measure = |device, frames: &str| {
        let out = folder.path().join(device);
        measured(&set, &model("vocnet-mini"), device, frames, &out)
    };
    let (phone, server) = (measure("mate10pro", "1"), measure("host", "200"));
    let (train, held_out) = halves(&phone).expect("answers");
    let chosen = choose(&train, &held_out).expect("answers");
    let trial = |name: &str| {
        let mut trials = chosen.trials().iter();
        trials.find(|trial| trial.name() == name).expect("tried")
    };
    let plain = trial("uncalibrated");
    // Of the two ways of each method the one of the smaller error.
    let better = |names: [&str; 2]| {
        let [one, other] = names.map(trial);
        match one.reliability.expected_error() <= other.reliability.expected_error() {
            true => one,
            false => other,
        }
    };
    let platt = better(["platt one-vs-rest", "platt top-1"]);
    let isotonic = better(["isotonic one-vs-rest", "isotonic top-1"]);
    let (before, after) = (swept(&phone, &server, plain), swept(&phone, &server, platt));
    let quantised = quantised(folder.path(), &set);
    let other = |network: &Path, device: &str, name: &str| {
        let out = folder.path().join(name);
        measured(&set, network, device, "1", &out)
    };
    let network = model("vocnet-mini");
    let sides = [
        ("16 bits: the simulated Mate 10 Pro's NPU", phone.clone()),
        (
            "8 bits: the simulated OnePlus 7's NPU",
            other(&network, "oneplus7", "i8"),
        ),
        (
            "8 bits: `layerlab quantise`, a scale per tensor, on this machine",
            other(&quantised, "host", "per-tensor"),
        ),
    ];
    vec![
        table_1(chosen.trials(), plain, platt, isotonic),
        figure_4(&before),
        bins("Figure 5: accuracy over uncalibrated confidence", plain).claim(
            "accuracy rises far less than confidence",
            rise(plain) < 0.6,
            format!(
                "from the first to the last bin that has answers by {:.2}",
                rise(plain)
            ),
        ),
        figure_7(&after, &before),
        bins(
            "Figure 7b: accuracy over confidence calibrated by Platt",
            platt,
        )
        .claim(
            "the accuracy varies more than in Figure 5",
            rise(platt) > rise(plain),
            format!("by {:.2}", rise(platt)),
        ),
        figure_10(&server),
        reduced(&sides),
        overconfident(),
    ]
}

fn measured(set: &Path, network: &Path, device: &str, frames: &str, out: &Path) -> VideoDocument {
    let mut command = layerlab();
    command.args(["video", "measure", "--frames", frames, "--device", device]);
    command.arg("--model").arg(network);
    succeed(command.arg("--set").arg(set).arg("--out").arg(out));
    check_video_directory(out).expect("just written").0
}

fn table_1(
    trials: &[CalibrationTrial],
    plain: &CalibrationTrial,
    platt: &CalibrationTrial,
    isotonic: &CalibrationTrial,
) -> Figure {
    let rows = trials.iter().map(|trial| {
        let numbers = [
            trial.reliability.expected_error(),
            trial.reliability.maximum_error(),
            trial.accuracy,
            trial.changed_answers,
        ];
        let numbers = numbers.map(|number| format!("{number:.3}"));
        [trial.name().to_owned()]
            .into_iter()
            .chain(numbers)
            .collect()
    });
    let [raw, by_platt, by_isotonic] =
        [plain, platt, isotonic].map(|trial| trial.reliability.expected_error());
    Figure::table(
        "Table I: calibration errors (paper: uncalibrated 0.27 and 0.48, Platt 0.07 and 0.29, isotonic 0.16 and 0.41)",
        &["calibration", "ECE", "MCE", "right", "answers changed"],
        rows.collect(),
    )
    .note("vocnet-mini on the simulated NPU: 500 answers to learn from, 500 others to judge by.")
    .claim(
        "uncalibrated is the worst of the three",
        raw > by_platt && raw > by_isotonic,
        format!("{raw:.3}, the better Platt {by_platt:.3}, the better isotonic {by_isotonic:.3}"),
    )
    .claim(
        "Platt is better than isotonic",
        by_platt < by_isotonic,
        format!("{by_platt:.3} and {by_isotonic:.3}"),
    )
}

/// For each threshold the share of frames that are sent, and of right answers.
struct Swept {
    sent: Vec<f64>,
    right: Vec<f64>,
}

/// Frames of the test half whose confidence is no larger than the threshold are the server's to answer, all in full size.
fn swept(phone: &VideoDocument, server: &VideoDocument, trial: &CalibrationTrial) -> Swept {
    let remote: BTreeMap<u64, bool> = server
        .answers
        .iter()
        .map(|it| {
            (
                it.image,
                it.predicted.is_some_and(|class| it.labels.contains(&class)),
            )
        })
        .collect();
    let test: Vec<_> = phone
        .answers
        .iter()
        .filter(|it| it.half == Half::Test)
        .collect();
    let answered: Vec<(f64, bool, bool)> = test
        .iter()
        .map(|it| {
            let (class, confidence) = answer(phone, &trial.calibrator, &it.scores);
            (
                confidence,
                it.labels.contains(&(class as u32)),
                remote[&it.image],
            )
        })
        .collect();
    let share = |count: usize| count as f64 / answered.len() as f64;
    let sent = |threshold: f64| {
        let sent = answered
            .iter()
            .filter(|(confidence, ..)| *confidence <= threshold);
        share(sent.count())
    };
    let right = |threshold: f64| {
        let right = answered.iter().filter(|(confidence, here, there)| {
            if *confidence <= threshold {
                *there
            } else {
                *here
            }
        });
        share(right.count())
    };
    Swept {
        sent: THRESHOLDS.map(sent).to_vec(),
        right: THRESHOLDS.map(right).to_vec(),
    }
}

fn answer(phone: &VideoDocument, calibrator: &Calibrator, scores: &[f32]) -> (usize, f64) {
    let probabilities = phone.header.confidence.probabilities(scores);
    calibrator.answer(&probabilities).expect("probabilities")
}

impl Swept {
    fn figure(&self, title: &str) -> Figure {
        let rows = THRESHOLDS.iter().enumerate().map(|(place, threshold)| {
            vec![
                threshold.to_string(),
                format!("{:.3}", self.sent[place]),
                format!("{:.3}", self.right[place]),
            ]
        });
        Figure::table(title, &["θ", "sent", "right"], rows.collect())
    }

    /// The least share of frames that is sent where so many answers are right.
    fn sent_for(&self, right: f64) -> f64 {
        let enough = self.right.iter().zip(&self.sent);
        let enough = enough.filter(|(found, _)| **found >= right);
        enough.map(|(_, sent)| *sent).fold(1.0, f64::min)
    }

    /// Two thirds of the way from the phone alone to the server alone, as 0.7 is in the paper.
    fn target(&self) -> f64 {
        let (from, to) = (self.right[0], self.right[THRESHOLDS.len() - 1]);
        from + (to - from) * 2.0 / 3.0
    }
}

fn figure_4(before: &Swept) -> Figure {
    let last = THRESHOLDS.len() - 1;
    let share = before.sent_for(before.target());
    before
        .figure("Figure 4: what is sent and what is right over the threshold, uncalibrated")
        .claim(
            "accuracy rises with the threshold (paper: from 0.42 to 0.81)",
            before.right[last] > before.right[0],
            format!("from {:.3} to {:.3}", before.right[0], before.right[last]),
        )
        .claim(
            "for two thirds of that rise at least 70 % are sent",
            share >= 0.7,
            format!("{:.0} %", 100.0 * share),
        )
}

fn figure_7(after: &Swept, before: &Swept) -> Figure {
    let (now, then) = (
        after.sent_for(before.target()),
        before.sent_for(before.target()),
    );
    after
        .figure("Figure 7a: the same, calibrated by Platt")
        .claim(
            "for the same accuracy fewer frames are sent (paper: 30 % in the place of 70 %)",
            now < then,
            format!("{:.0} % in the place of {:.0} %", 100.0 * now, 100.0 * then),
        )
}

fn bins(title: &str, trial: &CalibrationTrial) -> Figure {
    let rows = trial
        .reliability
        .bins()
        .iter()
        .enumerate()
        .map(|(place, bin)| {
            let mean = |sum: f64| match bin.count {
                0 => String::new(),
                count => format!("{:.3}", sum / count as f64),
            };
            vec![
                format!(
                    "{:.1} to {:.1}",
                    place as f64 / 10.0,
                    (place + 1) as f64 / 10.0
                ),
                bin.count.to_string(),
                mean(bin.confidence_sum),
                mean(bin.right as f64),
            ]
        });
    Figure::table(
        title,
        &["confidence", "answers", "mean confidence", "accuracy"],
        rows.collect(),
    )
}

/// From the first to the last bin with ten answers or more.
fn rise(trial: &CalibrationTrial) -> f64 {
    let bins = trial
        .reliability
        .bins()
        .iter()
        .filter(|bin| bin.count >= 10);
    let accuracies: Vec<f64> = bins
        .map(|bin| bin.right as f64 / bin.count as f64)
        .collect();
    accuracies.last().unwrap_or(&0.0) - accuracies.first().unwrap_or(&0.0)
}

fn figure_10(server: &VideoDocument) -> Figure {
    over_resolution(
        "Figure 10: accuracy over the resolution",
        &[("vocnet-mini", server)],
    )
    .note("vocnet-mini, whose input is 112x112, on this machine; 200 frames as PNG.")
}

/// Figure 4 of FastVA's paper, of a model and a smaller one that is less accurate.
pub(crate) fn figure_4_of_fastva() -> Figure {
    let folder = tempfile::tempdir().expect("a folder");
    let set = scenes(folder.path());
    let quantised = quantised(folder.path(), &set);
    let measure = |network: &Path, name| {
        let out = folder.path().join(name);
        measured(&set, network, "host", "200", &out)
    };
    let (whole, small) = (
        measure(&model("vocnet-mini"), "whole"),
        measure(&quantised, "small"),
    );
    over_resolution(
        "Figure 4: accuracy over the resolution",
        &[("vocnet-mini", &whole), ("its 8-bit twin", &small)],
    )
    .note(
        "Measured on this machine, 200 frames as PNG; the input is 112x112. The paper's models are ResNet-50 and SqueezeNet; here the \
         less accurate one is what `layerlab quantise` makes of the other.",
    )
}

fn over_resolution(title: &str, models: &[(&str, &VideoDocument)]) -> Figure {
    let mut rows = Vec::new();
    let mut rises = true;
    for (name, video) in models {
        let png = video.accuracies.iter();
        let png: Vec<_> = png.filter(|row| row.form.quality.is_none()).collect();
        rises &= png.iter().map(|row| row.score).is_sorted();
        rows.extend(png.iter().map(|row| {
            vec![
                (*name).to_owned(),
                format!("{0}x{0}", row.form.width),
                format!("{:.3}", row.score),
                format!("{:.3} to {:.3}", row.ci95.0, row.ci95.1),
            ]
        }));
    }
    Figure::table(
        title,
        &["model", "resolution", "right", "95 % interval"],
        rows,
    )
    .claim("accuracy rises with the resolution", rises, "")
}

/// All committed scenes as an evaluation set.
fn scenes(folder: &Path) -> PathBuf {
    let set = folder.join("scenes.set");
    let scenes = root().join("tests/models/scenes");
    let mut command = layerlab();
    command.args(["set", "--size", "112x112", "--metric", "multi-label"]);
    command.arg("--coco").arg(scenes.join("annotations.json"));
    command.arg("--images").arg(scenes.join("images"));
    succeed(command.arg("--out").arg(&set));
    set
}

/// vocnet-mini with a scale for each tensor.
fn quantised(folder: &Path, set: &Path) -> PathBuf {
    let out = folder.join("per-tensor.onnx");
    let mut command = layerlab();
    command.arg("quantise").arg(model("vocnet-mini"));
    command.args(["--weights", "per-tensor", "--ranges", "min-max"]);
    succeed(command.arg("--set").arg(set).arg("--out").arg(&out));
    out
}

/// What Platt makes of vocnet-mini's confidences in reduced numerics.
fn reduced(sides: &[(&str, VideoDocument)]) -> Figure {
    let rows = sides.iter().map(|(name, video)| {
        let errors = Errors::of(video);
        errors.row(vec![(*name).to_owned()])
    });
    Figure::table(
        "vocnet-mini in reduced numerics",
        &[&["vocnet-mini in"], &Errors::HEADS[..]].concat(),
        rows.collect(),
    )
    .note(
        "500 answers to learn from, 500 to judge by. Bins of so few answers are off by chance: confidences that are exactly right \
         have an ECE of 0.03 to 0.04 here. In 32 bits the model is right about 98 % and as sure as that. Platt repairs little of it, \
         isotonic regression more (Table I).",
    )
}

/// The seeds that the objects are divided by.
const SEEDS: [&str; 4] = ["1", "2", "3", "4"];

/// What Platt makes of a model's confidences that 8 bits made too large.
fn overconfident() -> Figure {
    let folder = tempfile::tempdir().expect("a folder");
    let objects = CutOut::new(folder.path());
    let (network, twin) = (model("object-mini"), folder.path().join("per-tensor.onnx"));
    let mut command = layerlab();
    command.arg("quantise").arg(&network);
    command.args(["--weights", "per-tensor", "--ranges", "min-max"]);
    command
        .args(["--limit", "500"])
        .arg("--set")
        .arg(&objects.ranges);
    succeed(command.arg("--out").arg(&twin));
    let mut worst = 0.0_f64;
    let mut rows = Vec::new();
    for (name, network, device) in [
        (
            "8 bits: the simulated OnePlus 7's NPU",
            &network,
            "oneplus7",
        ),
        (
            "8 bits: `layerlab quantise`, a scale per tensor, on this machine",
            &twin,
            "host",
        ),
    ] {
        for seed in SEEDS {
            let out = folder.path().join(format!("{device}-{seed}"));
            let mut command = layerlab();
            command.args(["video", "measure", "--frames", "1", "--seed", seed]);
            command
                .args(["--device", device])
                .arg("--model")
                .arg(network);
            succeed(
                command
                    .arg("--set")
                    .arg(&objects.measured)
                    .arg("--out")
                    .arg(&out),
            );
            let video = check_video_directory(&out).expect("just written").0;
            let errors = Errors::of(&video);
            worst = worst.max(errors.ratio());
            rows.push(errors.row(vec![name.to_owned(), seed.to_owned()]));
        }
    }
    Figure::table(
        "Made overconfident by reduced numerics",
        &[&["object-mini in", "seed"], &Errors::HEADS[..]].concat(),
        rows,
    )
    .note(
        "object-mini, a small network of this project's own that says what a cut-out object is, made to be too sure in 8 bits \
         ([MODELS.md](../models/MODELS.md)). The objects of the first 100 held-out pictures find ranges, those of the other 900 are \
         measured: half to learn from, half to judge by. Each seed divides the same objects anew; objects of one picture may be in both \
         halves. Confidences that are exactly right would have an ECE of 0.02 to 0.04 here. In 32 bits the model is right about 98 % and \
         as sure as that.",
    )
    .claim(
        "Platt's ECE is at most 0.3 of the raw one (not the paper's statement but this project's target; its Table I has 0.26)",
        worst <= 0.3,
        format!("at most {worst:.2}"),
    )
}

/// How wrong confidences are, and what Platt leaves of that.
struct Errors {
    confidence: f64,
    right: f64,
    raw: f64,
    one_vs_rest: f64,
    top_1: f64,
}

impl Errors {
    const HEADS: [&str; 6] = [
        "confidence",
        "right",
        "ECE",
        "Platt one-vs-rest",
        "Platt top-1",
        "the better over raw",
    ];

    fn of(video: &VideoDocument) -> Errors {
        let (train, held_out) = halves(video).expect("answers");
        let chosen = choose(&train, &held_out).expect("answers");
        let error = |name: &str| {
            let mut trials = chosen.trials().iter();
            let trial = trials.find(|trial| trial.name() == name).expect("tried");
            trial.reliability.expected_error()
        };
        let raw = &chosen.trials()[0];
        let bins = raw.reliability.bins().iter();
        let confidence: f64 = bins.map(|bin| bin.confidence_sum).sum();
        Errors {
            confidence: confidence / held_out.count() as f64,
            right: raw.accuracy,
            raw: raw.reliability.expected_error(),
            one_vs_rest: error("platt one-vs-rest"),
            top_1: error("platt top-1"),
        }
    }

    fn ratio(&self) -> f64 {
        self.one_vs_rest.min(self.top_1) / self.raw
    }

    fn row(&self, mut cells: Vec<String>) -> Vec<String> {
        let numbers = [
            self.confidence,
            self.right,
            self.raw,
            self.one_vs_rest,
            self.top_1,
        ];
        cells.extend(numbers.map(|number| format!("{number:.3}")));
        cells.push(format!("{:.2}", self.ratio()));
        cells
    }
}
