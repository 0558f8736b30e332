//! How precise layer and transfer times are after 60 s of timed inference, by design and noise, against
//! the papers' design and against what no estimator can beat; and how long each design takes to its
//! target. Writes `tests/reports/precision.md` and `precision.svg`.

#![expect(clippy::print_stdout, reason = "its tables are what it is for")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use layerlab_agent::device::simulated::Noise;
use layerlab_profiles::derive::graph::{Fit, VisitSamples, observe_visits};
use layerlab_profiles::derive::{LayerTime, differencing_in_visits};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::adaptive::{self, Overhead, Planner, Settings, widest};
use layerlab_profiles::design::agenda::segments_per_block;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::design::planned_block::{Next, Reason};
use layerlab_profiles::{Nanos, Segment};
use layerlab_tests::file;
use layerlab_tests::proof::bound::Bound;
use layerlab_tests::proof::plot::{Series, plot};
use layerlab_tests::proof::table::markdown;
use layerlab_tests::proof::yolo_small::yolo_small;
use layerlab_tests::proof::{Measured, Planted, SimulatedProcessor};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

const DEVICE: &str = "mate10pro";
const NOISE: [f64; 5] = [0.005, 0.01, 0.02, 0.03, 0.05];
/// Runs over which errors are averaged.
const SEEDS: u64 = 30;
/// Runs over which times to the target are averaged; they are long.
const SEEDS_TO_TARGET: u64 = 3;
const TIMED: Nanos = Nanos::from_millis(60_000);
const TARGET: f64 = 0.02;
/// More samples of a segment than any design may need to its target.
const MOST_SAMPLES: u64 = 1 << 14;

/// A design and how layer times come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Prefixes and suffixes, medians, differencing: the papers, to the letter.
    Papers,
    /// The same samples by least squares.
    PrefixSuffix,
    Local,
    Adaptive,
}

impl Way {
    const ALL: [Way; 4] = [Way::Papers, Way::PrefixSuffix, Way::Local, Way::Adaptive];

    fn name(self) -> &'static str {
        match self {
            Way::Papers => "prefix-suffix, differencing (the papers)",
            Way::PrefixSuffix => "prefix-suffix, least squares",
            Way::Local => "local, least squares",
            Way::Adaptive => "adaptive, least squares",
        }
    }

    fn design(self) -> Design {
        match self {
            Way::Papers | Way::PrefixSuffix => Design::PrefixSuffix,
            Way::Local => Design::Local,
            Way::Adaptive => Design::Adaptive,
        }
    }

    /// Layer times from samples.
    fn derive(self, layers: u32, samples: &VisitSamples, seed: u64) -> Vec<LayerTime> {
        let observations = observe_visits(samples);
        if self == Way::Papers {
            let times = differencing_in_visits(layers, &observations);
            return times.expect("a complete design");
        }
        let held_back = match self {
            Way::Adaptive => adaptive::held_back(layers, seed),
            _ => BTreeSet::new(),
        };
        let fit = Fit::new(layers, &observations, &held_back);
        fit.expect("a complete design").layer_times()
    }
}

fn main() -> ExitCode {
    let mut report = String::from(HEAD);
    let spiky: Vec<Vec<Errors>> = NOISE.iter().map(|&noise| errors(noise, true)).collect();
    let best: Vec<Errors> = NOISE.iter().map(|&noise| best_possible(noise)).collect();
    precision_table(&mut report, &spiky, &best);
    let smooth: Vec<Vec<Errors>> = NOISE.iter().map(|&noise| errors(noise, false)).collect();
    bound_table(&mut report, &smooth);
    let met = verdict(&mut report, &spiky, &smooth, &best);
    other_phones(&mut report);
    target_table(&mut report);
    print!("{report}");
    let folder = file("reports");
    let series = |of: fn(&Errors) -> f64, what: &str| -> Vec<Series> {
        let line = |(place, way): (usize, &Way)| Series {
            name: format!("{what}: {}", way.name()),
            points: NOISE
                .iter()
                .zip(&spiky)
                .map(|(noise, errors)| (100.0 * noise, of(&errors[place]) / 1e6))
                .collect(),
        };
        let drawn = [Way::Papers, Way::Local, Way::Adaptive];
        let ways = Way::ALL.iter().enumerate();
        ways.filter(|(_, way)| drawn.contains(way))
            .map(line)
            .collect()
    };
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("precision.md"), &report))
        .map_err(|error| error.to_string())
        .and_then(|()| {
            let panels = [
                ("layer times (t_p)", series(|e| e.compute, "t_p")),
                ("transfers (t_d, t_r)", series(|e| e.transfer, "t_d")),
            ];
            plot(&folder.join("precision.svg"), &panels)
        });
    match written {
        Ok(()) if met => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            println!("the report could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}

const HEAD: &str = "\
# Precision at equal device time

Simulated, not measured: YOLO Small at full scale (30 layers) on the accelerator of
`tests/devices/mate10pro.toml`, whose planted times are known. Every design has 60 s of timed inference.
Samples are taken in visits, which differ in nothing here: five of each segment, or as the adaptive design plans
them. Errors are root mean squares over all layers and 30 seeds. Made by
`cargo tool precision`; the same seeds give the same page.

What counts as right are the layer times that follow from the planted segment times under the assumption
that a cut costs the same both ways (docs/method.md §3); the device itself does not keep that assumption.
";

fn processor(noise: f64, spikes: bool) -> SimulatedProcessor {
    processor_of(DEVICE, noise, spikes)
}

fn processor_of(device: &str, noise: f64, spikes: bool) -> SimulatedProcessor {
    let mut npu = SimulatedProcessor::open(device, "npu", &yolo_small());
    npu.noise = Noise {
        proportional_sigma: noise,
        // The bound is exact for proportional noise alone.
        absolute_sigma_ns: if spikes {
            npu.noise.absolute_sigma_ns
        } else {
            0.0
        },
        spike_probability: if spikes { 0.01 } else { 0.0 },
        spike_factor: npu.noise.spike_factor,
    };
    npu
}

/// Root mean square errors of one way, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    compute: f64,
    transfer: f64,
    /// The same for the best unbiased estimator of the same samples.
    compute_bound: f64,
    transfer_bound: f64,
}

impl Errors {
    /// Over all numbers of a model of `layers` layers: so many compute times and one transfer fewer.
    fn all(self, layers: u32) -> f64 {
        let (compute, transfer) = (f64::from(layers), f64::from(layers - 1));
        let squares = compute * self.compute.powi(2) + transfer * self.transfer.powi(2);
        (squares / (compute + transfer)).sqrt()
    }
}

/// How many times smaller errors are than the papers': of compute times, transfers, and both together.
#[derive(Clone, Copy, Debug)]
struct Gain {
    compute: f64,
    transfer: f64,
    all: f64,
}

impl Gain {
    fn of(errors: Errors, papers: Errors, layers: u32) -> Gain {
        Gain {
            compute: papers.compute / errors.compute,
            transfer: papers.transfer / errors.transfer,
            all: papers.all(layers) / errors.all(layers),
        }
    }
}

/// The other simulated phones, on which transfers weigh less or more.
fn other_phones(report: &mut String) {
    report.push_str(
        "\n## On other phones\n\nNoise 3 % with spikes, all numbers: how many times smaller the error of the adaptive design is than \
         the papers', and how\nmany times the best possible one is.\n\n",
    );
    let noise = 0.03;
    let rows: Vec<Vec<String>> = ["mate10pro", "oneplus7", "pixel6"]
        .iter()
        .map(|device| {
            let errors = errors_of(&processor_of(device, noise, true), noise);
            let npu = processor_of(device, noise, false);
            let best = best_possible_of(&npu, noise);
            let papers = errors[0];
            let found = Gain::of(errors[3], papers, npu.layers());
            let possible = Gain::of(best, papers, npu.layers());
            vec![
                (*device).to_owned(),
                format!("{:.2}", found.all),
                format!("{:.2}", possible.all),
            ]
        })
        .collect();
    report.push_str(&markdown(&["phone", "found", "possible at best"], &rows));
}

/// The smallest errors of any unbiased estimator from any design.
fn best_possible(noise: f64) -> Errors {
    best_possible_of(&processor(noise, false), noise)
}

fn best_possible_of(npu: &SimulatedProcessor, noise: f64) -> Errors {
    let bound = Bound::of_best_design(npu, TIMED.as_nanos() as f64, noise);
    Errors {
        compute: bound.compute.sqrt(),
        transfer: bound.transfer.sqrt(),
        ..Errors::default()
    }
}

/// Of each way, over all seeds.
fn errors(noise: f64, spikes: bool) -> Vec<Errors> {
    errors_of(&processor(noise, spikes), noise)
}

fn errors_of(npu: &SimulatedProcessor, noise: f64) -> Vec<Errors> {
    let planted = Planted::of(&npu.times);
    let of_way = |way: &Way| {
        let mut sums = Errors::default();
        for seed in 0..SEEDS {
            let samples = sixty_seconds(npu, *way, seed);
            let times = way.derive(npu.layers(), &samples, seed);
            let (compute, transfer) = squares(&times, &planted);
            sums.compute += compute;
            sums.transfer += transfer;
            let bound = Bound::of(npu, &samples.pooled(), noise);
            sums.compute_bound += bound.compute;
            sums.transfer_bound += bound.transfer;
        }
        let root = |sum: f64| (sum / SEEDS as f64).sqrt();
        Errors {
            compute: root(sums.compute),
            transfer: root(sums.transfer),
            compute_bound: root(sums.compute_bound),
            transfer_bound: root(sums.transfer_bound),
        }
    };
    Way::ALL.iter().map(of_way).collect()
}

/// Mean squares of the errors of compute times and of transfers.
fn squares(times: &[LayerTime], planted: &Planted) -> (f64, f64) {
    let mean = |errors: Vec<f64>| {
        errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64
    };
    let compute = times.iter().zip(&planted.compute);
    let transfers = times.iter().skip(1).zip(&planted.cuts);
    (
        mean(
            compute
                .map(|(time, truth)| time.compute.value.as_nanos() as f64 - truth)
                .collect(),
        ),
        mean(
            transfers
                .filter_map(|(time, cut)| {
                    Some(time.to_processor?.value.as_nanos() as f64 - cut / 2.0)
                })
                .collect(),
        ),
    )
}

/// As many samples as 60 s hold: equally many of each segment, or as the planner chooses.
fn sixty_seconds(npu: &SimulatedProcessor, way: Way, seed: u64) -> VisitSamples {
    if way == Way::Adaptive {
        let mut samples = VisitSamples::default();
        adaptively(npu, &mut samples, TIMED, 0.0, seed);
        return samples;
    }
    let mut measured = Measured::new();
    // Round after round, and in the last as many segments as there is time for, in random order.
    let mut segments = way.design().segments(npu.layers());
    segments.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut spent = Nanos::ZERO;
    for &segment in segments.iter().cycle() {
        if spent >= TIMED {
            break;
        }
        spent = spent + npu.measure(&mut measured, [segment], 1, seed);
    }
    npu.in_visits(&measured, seed)
}

/// Measures as the planner says, and returns the time that the inferences took.
fn adaptively(
    npu: &SimulatedProcessor,
    samples: &mut VisitSamples,
    budget: Nanos,
    target: f64,
    seed: u64,
) -> (Nanos, Reason) {
    let planner = Planner::new(Settings {
        layers: npu.layers(),
        seed,
        target,
        budget,
        over_budget: OverBudget::Extend,
        repetitions: 5,
        segments_per_block: segments_per_block(npu.layers()),
        overhead: Overhead::default(),
    });
    let mut spent = Nanos::ZERO;
    loop {
        match planner
            .next(&observe_visits(samples), spent)
            .expect("this model's observations")
        {
            Next::Measure(block) => {
                spent = spent + npu.visit(samples, block.counts(), seed);
            }
            Next::Done(reason) => return (spent, reason),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{} %", 100.0 * share)
}

fn millis(nanos: f64) -> String {
    format!("{:.4}", nanos / 1e6)
}

fn precision_table(report: &mut String, errors: &[Vec<Errors>], best: &[Errors]) {
    report.push_str(
        "\n## Root mean square error after 60 s\n\nIn ms, t_p / t_d; 1 % of the samples take 1.5 times as long. In \
         brackets how many times smaller than the\npapers': t_p / t_d / both together. The last row is what no unbiased \
         estimator from no choice of segments can\nbeat (Cramér-Rao bound of the A-optimal design, which knows the planted \
         times; no disturbed samples).\n\n",
    );
    let layers = processor(0.01, false).layers();
    let cell = |one: Errors, papers: Errors| {
        let gain = Gain::of(one, papers, layers);
        format!(
            "{} / {} ({:.1} / {:.1} / {:.1})",
            millis(one.compute),
            millis(one.transfer),
            gain.compute,
            gain.transfer,
            gain.all
        )
    };
    let mut rows: Vec<Vec<String>> = Way::ALL
        .iter()
        .enumerate()
        .map(|(place, way)| {
            std::iter::once(way.name().to_owned())
                .chain(errors.iter().map(|errors| cell(errors[place], errors[0])))
                .collect()
        })
        .collect();
    let bounds = best.iter().zip(errors);
    rows.push(
        std::iter::once("best possible".to_owned())
            .chain(bounds.map(|(best, errors)| cell(*best, errors[0])))
            .collect(),
    );
    report.push_str(&table(&rows));
}

/// A table with one column for each level of noise.
fn table(rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = NOISE.iter().map(|noise| percent(*noise)).collect();
    let heads: Vec<&str> = std::iter::once("noise")
        .chain(heads.iter().map(String::as_str))
        .collect();
    markdown(&heads, rows)
}

fn bound_table(report: &mut String, errors: &[Vec<Errors>]) {
    report.push_str(
        "\n## Against the Cramér-Rao bound\n\nError over the smallest error that any unbiased estimator could have \
         from the same samples, t_p / t_d;\nproportional noise alone.\n\n",
    );
    let rows: Vec<Vec<String>> = Way::ALL
        .iter()
        .enumerate()
        .map(|(place, way)| {
            let cell = |errors: &Vec<Errors>| {
                let one = errors[place];
                format!(
                    "{:.3} / {:.3}",
                    one.compute / one.compute_bound,
                    one.transfer / one.transfer_bound
                )
            };
            std::iter::once(way.name().to_owned())
                .chain(errors.iter().map(cell))
                .collect()
        })
        .collect();
    report.push_str(&table(&rows));
}

/// Says whether what was promised is kept by the adaptive design, which is the default, and what would be
/// possible at best.
fn verdict(
    report: &mut String,
    spiky: &[Vec<Errors>],
    smooth: &[Vec<Errors>],
    best: &[Errors],
) -> bool {
    let layers = processor(0.01, false).layers();
    let gain = |place: usize| {
        let papers = spiky[place][0];
        (
            Gain::of(spiky[place][3], papers, layers),
            Gain::of(best[place], papers, layers),
        )
    };
    let worst_bound = smooth
        .iter()
        .map(|errors| {
            let ours = errors[3];
            (ours.compute / ours.compute_bound).max(ours.transfer / ours.transfer_bound)
        })
        .fold(0.0, f64::max);
    let mut rows = Vec::new();
    let mut kept = worst_bound <= 1.2;
    for (place, promised) in [(3, 8.0), (0, 4.0)] {
        let (found, possible) = gain(place);
        let numbers = [
            ("all numbers", found.all, possible.all),
            ("layer times alone", found.compute, possible.compute),
            ("transfers alone", found.transfer, possible.transfer),
        ];
        for (what, found, possible) in numbers {
            rows.push(vec![
                format!(
                    "{}, {what}: error smaller than the papers' by",
                    percent(NOISE[place])
                ),
                format!("{promised} times"),
                format!("{found:.2}"),
                format!("{possible:.2}"),
            ]);
        }
        kept &= found.all >= promised;
    }
    rows.push(vec![
        "error over the bound of the same samples, at most".to_owned(),
        "1.2".to_owned(),
        format!("{worst_bound:.3}"),
        "1".to_owned(),
    ]);
    report.push_str("\n## What was promised of the adaptive design\n\n");
    let heads = ["noise", "promised", "found", "possible at best"];
    report.push_str(&markdown(&heads, &rows));
    kept
}

fn target_table(report: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(
        report,
        "\n## Device time to an interval of ±{:.0} %\n\nSeconds of timed inference until the half width of every \
         95 % interval is {:.0} % of its number, or of the\naverage layer's share of the whole model where that is \
         larger. Means over {SEEDS_TO_TARGET} seeds.\n\n",
        100.0 * TARGET,
        100.0 * TARGET
    );
    let rows: Vec<Vec<String>> = Way::ALL
        .iter()
        .map(|way| {
            let cells = NOISE.iter().map(|&noise| {
                let npu = processor(noise, true);
                let times: Option<Vec<f64>> = (0..SEEDS_TO_TARGET)
                    .map(|seed| to_target(&npu, *way, seed))
                    .collect();
                times.map_or_else(
                    || "more samples than tried".to_owned(),
                    |times| {
                        let mean = times.iter().sum::<f64>() / times.len() as f64;
                        format!("{mean:.1}")
                    },
                )
            });
            std::iter::once(way.name().to_owned())
                .chain(cells)
                .collect()
        })
        .collect();
    report.push_str(&table(&rows));
}

/// Seconds of timed inference to the target; `None` if it takes more than `MOST_SAMPLES` of each segment.
fn to_target(npu: &SimulatedProcessor, way: Way, seed: u64) -> Option<f64> {
    if way == Way::Adaptive {
        let mut samples = VisitSamples::default();
        let (spent, _) = adaptively(
            npu,
            &mut samples,
            Nanos::from_millis(u64::MAX),
            TARGET,
            seed,
        );
        return Some(spent.as_millis_f64() / 1e3);
    }
    let segments = way.design().segments(npu.layers());
    let whole = Segment::whole(npu.layers());
    // Sample k of a segment is the same however many are taken, so that more only adds.
    let reached = |count: u64| {
        let mut measured = Measured::new();
        let spent = npu.measure(&mut measured, segments.iter().copied(), count, seed);
        let samples = npu.in_visits(&measured, seed);
        let times = way.derive(npu.layers(), &samples, seed);
        let enough = widest(&times, npu.times.segment(whole).signed()) <= TARGET;
        enough.then_some(spent)
    };
    let mut count = 8;
    while reached(count).is_none() {
        count *= 2;
        if count > MOST_SAMPLES {
            return None;
        }
    }
    let (mut too_few, mut enough) = (count / 2, count);
    // To 2 %: the width itself is known no better.
    while enough - too_few > enough / 50 {
        let middle = too_few.midpoint(enough);
        match reached(middle) {
            Some(_) => enough = middle,
            None => too_few = middle,
        }
    }
    Some(reached(enough)?.as_millis_f64() / 1e3)
}
