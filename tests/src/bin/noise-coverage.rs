//! Do published intervals hold the planted truth on machines whose noise is not independent? `noise-coverage [RUNS] [KIND] [SEED]`
//! profiles a model on a simulated device with each kind of noise, 200 times if not told otherwise, with the seeds from SEED
//! (1) on, by the real programs, on all cores. It prints a table, and fails unless of each kind 92 to 98 % of the published
//! intervals hold the truth: what the machine takes in one of its states, for each processor, and where it drifts what it takes
//! halfway through the samples. Fewer may, where 95 % of the runs of which fewer do have a finding, and of the intervals of
//! runs without one as many hold the truth as should: where intervals fail, a finding says so. All runs may be refused; but of the runs with independent noise 95 % must be published, and none may
//! end as throttled: the device has no heat. The numbers of one run err together, so that in some runs fewer than 92 % hold by
//! chance; how many, and how many of them have a finding, is in the table.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::print_stderr, reason = "as is a wrong command line")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{ProcessorTruth, Truth, truth};
use layerlab_model::Network;
use layerlab_profiles::check::{Rule, check_directory};
use layerlab_profiles::document::Profile;
use layerlab_profiles::summary::Estimate;
use layerlab_tests::proof::machine_noise::{KINDS, NoiseKind};
use layerlab_tests::proof::table::markdown;
use layerlab_tests::{layerlab, model, output, stderr};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

const MODEL: &str = "vocnet-mini";
const RUNS: u64 = 200;
/// In the place of a kind's name.
const ALL: &str = "all";
/// How many kinds of numbers are looked at apart: compute times on each processor, and the costs of cuts.
const NUMBERS: usize = 3;
const ACCEPTED: std::ops::RangeInclusive<f64> = 0.92..=0.98;
/// Of the runs in which nothing is wrong, so many must be published.
const PUBLISHED: f64 = 0.95;
/// Of the runs whose intervals fail, so many must have a finding.
const TOLD: f64 = 0.95;

/// Whether a finding says that something was wrong with the measurement. Numbers that cannot be told from zero, and segments
/// of few samples, are in profiles of the quietest machine.
fn tells(rule: Rule) -> bool {
    !matches!(rule, Rule::UnresolvedTimes | Rule::FewSamples)
}

/// What became of a run.
enum Outcome {
    /// Nothing was published, for this reason.
    Refused(String),
    Published {
        findings: BTreeSet<Rule>,
        counts: Counts,
    },
}

/// Of each kind of number, how many intervals there are and how many of them hold the truth; and how many numbers have none.
#[derive(Clone, Copy, Default)]
struct Counts {
    kinds: [(u64, u64); NUMBERS],
    without: u64,
}

impl Counts {
    fn intervals(&self) -> u64 {
        self.kinds.iter().map(|(intervals, _)| intervals).sum()
    }

    fn held(&self) -> u64 {
        self.kinds.iter().map(|(_, held)| held).sum()
    }

    fn share(&self) -> f64 {
        self.held() as f64 / self.intervals().max(1) as f64
    }

    fn add(&mut self, other: &Counts) {
        for (own, (intervals, held)) in self.kinds.iter_mut().zip(other.kinds) {
            own.0 += intervals;
            own.1 += held;
        }
        self.without += other.without;
    }
}

impl Outcome {
    /// Profiles with `seed` on the device of this file.
    fn of(kind: &NoiseKind, device: &Path, truth: &Truth, seed: u64) -> Outcome {
        let out = device.with_extension(format!("{seed}.profile"));
        let mut command = layerlab();
        command.args(["profile", "--budget", "30s", "--seed"]);
        command.arg(seed.to_string());
        command.arg("--model").arg(model(MODEL));
        command.arg("--device").arg(device).arg("--out").arg(&out);
        let ended = output(&mut command);
        if !ended.status.success() {
            let said = stderr(&ended);
            return Outcome::Refused(said.lines().last().unwrap_or_default().to_owned());
        }
        let (profile, findings) = check_directory(&out).expect("what was published can be read");
        std::fs::remove_dir_all(&out).expect("a profile of its own");
        let numbers = numbers(&profile, truth);
        let mut counts = Counts::default();
        for processor in ["cpu", "npu"] {
            let of_it: Vec<&Number> = numbers
                .iter()
                .filter(|number| number.processor == processor)
                .collect();
            let drifted = 1.0 + kind.drift_per_hour * hours_halfway(&profile, processor);
            // The state in which most of the processor's samples were taken.
            let states = kind.states.iter();
            let held = states.map(|state| holding(&of_it, state * drifted));
            counts.add(&held.max_by_key(Counts::held).unwrap_or_default());
        }
        Outcome::Published {
            findings: findings
                .iter()
                .map(|finding| finding.rule)
                .filter(|&rule| tells(rule))
                .collect(),
            counts,
        }
    }
}

/// What became of the runs with one kind of noise.
#[derive(Default)]
struct Tally {
    refused: u64,
    throttled: u64,
    published: u64,
    with_finding: u64,
    counts: Counts,
    /// Those of the runs without a finding.
    counts_without_finding: Counts,
    /// Published runs of which fewer intervals hold the truth than are accepted.
    failing: u64,
    failing_with_finding: u64,
    /// In how many runs there was each finding.
    findings: BTreeMap<Rule, u64>,
    /// Why runs were refused, each without its numbers, and how often.
    reasons: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Refused(reason) => {
                self.refused += 1;
                self.throttled += u64::from(reason.contains("throttled:"));
                let reason = reason.replace(|one: char| one.is_ascii_digit(), "#");
                *self.reasons.entry(reason).or_default() += 1;
            }
            Outcome::Published { findings, counts } => {
                let has_finding = !findings.is_empty();
                for rule in findings {
                    *self.findings.entry(rule).or_default() += 1;
                }
                self.published += 1;
                self.with_finding += u64::from(has_finding);
                self.counts.add(&counts);
                if !has_finding {
                    self.counts_without_finding.add(&counts);
                }
                if counts.share() < *ACCEPTED.start() {
                    self.failing += 1;
                    self.failing_with_finding += u64::from(has_finding);
                }
            }
        }
    }

    fn is_accepted(&self, kind: &NoiseKind) -> bool {
        let runs = self.refused + self.published;
        if kind.is_independent() && (self.published as f64) < PUBLISHED * runs as f64 {
            return false;
        }
        if self.throttled > 0 {
            return false;
        }
        let too_few = self.counts.share() < *ACCEPTED.start();
        let silent = &self.counts_without_finding;
        let is_told = self.failing_with_finding as f64 >= TOLD * self.failing as f64
            && (silent.intervals() == 0 || ACCEPTED.contains(&silent.share()));
        ACCEPTED.contains(&self.counts.share()) || (too_few && is_told)
    }

    fn of_kinds(&self) -> String {
        let share = |(intervals, held): &(u64, u64)| {
            format!("{:.1}", 100.0 * *held as f64 / (*intervals).max(1) as f64)
        };
        let shares: Vec<String> = self.counts.kinds.iter().map(share).collect();
        shares.join(", ")
    }

    fn row(&self, kind: &NoiseKind) -> Vec<String> {
        let count = |number: u64| number.to_string();
        vec![
            kind.name.to_owned(),
            count(self.refused),
            count(self.throttled),
            count(self.published),
            count(self.with_finding),
            count(self.counts.intervals()),
            count(self.counts.without),
            format!("{:.1} %", 100.0 * self.counts.share()),
            format!("{:.1} %", 100.0 * self.counts_without_finding.share()),
            count(self.failing),
            count(self.failing_with_finding),
            self.of_kinds(),
            (if self.is_accepted(kind) { "yes" } else { "no" }).to_owned(),
        ]
    }
}

/// The mean of when a processor's samples were taken, by the device's clock.
fn hours_halfway(profile: &Profile, processor: &str) -> f64 {
    let samples = profile.samples.iter();
    let of_it = samples.filter(|sample| sample.processor == processor);
    let (sum, count) = of_it.fold((0.0, 0.0), |(sum, count), sample| {
        (sum + sample.started.as_nanos() as f64, count + 1.0)
    });
    sum / f64::max(count, 1.0) / 3.6e12
}

/// A published number beside what was planted, in nanoseconds.
struct Number {
    processor: &'static str,
    /// Its kind, by its place among the columns.
    kind: usize,
    published: Estimate,
    planted_ns: f64,
}

/// Each layer's compute time on each processor and the cost of each cut.
fn numbers(profile: &Profile, truth: &Truth) -> Vec<Number> {
    let planted = |name: &str| -> &ProcessorTruth {
        let mut processors = truth.processors.iter();
        processors
            .find(|found| found.processor == name)
            .expect("a processor of the device")
    };
    // The first and the last layer's numbers hold moving in and out, which cannot be told apart from computing.
    let layers = profile.layers.len() as u32;
    let on_cpu = |name: &str| name == "cpu";
    let times = profile.times.iter();
    let compute = times
        .filter(|row| on_cpu(&row.processor) || (row.layer > 1 && row.layer < layers))
        .map(|row| Number {
            processor: if on_cpu(&row.processor) { "cpu" } else { "npu" },
            kind: usize::from(!on_cpu(&row.processor)),
            published: row.time.compute,
            planted_ns: planted(&row.processor).layers[row.layer as usize - 1]
                .compute_ns
                .as_nanos() as f64,
        });
    let cuts = profile.cuts.iter().map(|row| {
        let layers = &planted(&row.processor).layers;
        let after = row.after_layer as usize;
        let leaving = layers[after - 1].from_processor_ns.expect("an accelerator");
        let entering = layers[after].to_processor_ns.expect("an accelerator");
        Number {
            processor: "npu",
            kind: 2,
            published: row.cost,
            planted_ns: (leaving + entering).as_nanos() as f64,
        }
    });
    compute.chain(cuts).collect()
}

/// How many intervals hold `state` times the truth.
fn holding(numbers: &[&Number], state: f64) -> Counts {
    let mut counts = Counts::default();
    for number in numbers {
        let Some((low, high)) = number.published.ci95 else {
            counts.without += 1;
            continue;
        };
        let range = low.as_nanos() as f64..=high.as_nanos() as f64;
        let (intervals, held) = &mut counts.kinds[number.kind];
        *intervals += 1;
        *held += u64::from(range.contains(&(state * number.planted_ns)));
    }
    counts
}

/// Runs with this noise and these seeds, on as many cores as there are. What comes of a run depends on its seed alone.
fn runs_of(kind: &NoiseKind, device: &Path, truth: &Truth, seeds: Range<u64>) -> Tally {
    let outcome = |seed| Outcome::of(kind, device, truth, seed);
    let outcomes: Vec<Outcome> = seeds.into_par_iter().map(outcome).collect();
    let mut tally = Tally::default();
    for outcome in outcomes {
        tally.add(outcome);
    }
    tally
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (runs, kind, first) = match args[..] {
        [] => (Ok(RUNS), None, Ok(1)),
        [runs] => (runs.parse(), None, Ok(1)),
        [runs, kind] => (runs.parse(), Some(kind), Ok(1)),
        [runs, kind, first] => (runs.parse(), Some(kind), first.parse()),
        _ => return wrong(),
    };
    let (Ok(runs), Ok(first)) = (runs, first) else {
        return wrong();
    };
    let chosen: Vec<&NoiseKind> = KINDS
        .iter()
        .filter(|known| kind.is_none_or(|kind| kind == known.name || kind == ALL))
        .collect();
    if chosen.is_empty() {
        return wrong();
    }
    let network =
        Network::open(&model(MODEL), &BTreeMap::new()).expect("a model of this repository");
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (mut rows, mut told, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let mut accepted = true;
    for kind in chosen {
        let path = folder.path().join("noise.toml");
        std::fs::write(&path, kind.device()).expect("room");
        let device = DeviceFile::open(&path).expect("a device");
        let truth = truth(&device, &network);
        let tally = runs_of(kind, &path, &truth, first..first + runs);
        accepted &= tally.is_accepted(kind);
        rows.push(tally.row(kind));
        let of_kind = tally.findings.iter();
        told.extend(
            of_kind.map(|(rule, count)| {
                vec![kind.name.to_owned(), rule.to_string(), count.to_string()]
            }),
        );
        let of_kind = tally.reasons.iter();
        reasons.extend(
            of_kind.map(|(reason, count)| {
                vec![kind.name.to_owned(), count.to_string(), reason.clone()]
            }),
        );
    }
    println!("{MODEL}, {runs} runs with each kind of noise on top of 2 % that is independent:\n");
    let heads = [
        "noise",
        "refused",
        "as throttled",
        "published",
        "with a finding",
        "intervals",
        "numbers without",
        "hold the truth",
        "the same without a finding",
        "runs below 92 %",
        "of them with a finding",
        "hold the truth: compute on cpu, on npu, cuts (%)",
        "accepted",
    ];
    print!("{}", markdown(&heads, &rows));
    println!("\nIn how many of the published runs there was which finding:\n");
    print!("{}", markdown(&["noise", "finding", "runs"], &told));
    if !reasons.is_empty() {
        println!("\nWhy runs were refused, with # for each digit:\n");
        print!("{}", markdown(&["noise", "runs", "reason"], &reasons));
    }
    match accepted {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn wrong() -> ExitCode {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    eprintln!(
        "usage: noise-coverage [RUNS] [KIND] [SEED]; the kinds are {}, and {ALL}",
        kinds.join(", ")
    );
    ExitCode::from(2)
}
