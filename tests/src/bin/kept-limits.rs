//! Do plans keep their limits when they are run? `kept-limits REPORT` plans on six profiles of simulated phones, two of which it
//! measures first, within 20 time limits and above 20 accuracy limits each, by `layerlab plan sweep --verify`, which runs every
//! planned placement. Writes a page: how often a limit was broken, and how probable that is if plans are as sure as they say;
//! MLMP beside the heuristic at every limit; and what the paper's MLMP reaches when it keeps K placements (MLMP, Figure 6).
//! Fails if limits are broken more often than chance allows. Times are simulated, so that other work on the machine changes
//! nothing.

#![expect(clippy::print_stderr, reason = "how far it has come is what it says")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use layerlab_tests::proof::table::markdown;
use layerlab_tests::scenes::scenes_of_published;
use layerlab_tests::{device, layerlab, model, root, succeed};
use serde::Deserialize;
use statrs::distribution::{Binomial, DiscreteCDF as _};

const MODELS: [&str; 2] = ["vocnet-mini", "yolo-mini"];
/// Of these, profiles are published.
const PUBLISHED: [&str; 2] = ["mate10pro", "oneplus7"];
const MEASURED_FIRST: &str = "pixel6";
const STEPS: &str = "20";
const KEPT: [usize; 5] = [1, 5, 20, 50, 200];
/// What chance does less often than this is no chance.
const LEAST_PROBABLE: f64 = 0.05;
/// Two measured times differ if they do by more than this: the median of a hundred simulated passes is known to about as much.
const SAME_TIME: f64 = 0.005;

/// A row of `layerlab plan sweep`.
#[derive(Deserialize)]
struct Row {
    algorithm: String,
    keep: Option<usize>,
    goal: String,
    limit_time_ns: Option<u64>,
    limit_accuracy: Option<f64>,
    outcome: String,
    combination: Option<String>,
    confidence: Option<f64>,
    keeps_limit: Option<bool>,
    verified_time_ns: Option<u64>,
    verified_accuracy: Option<f64>,
}

impl Row {
    fn is_planned(&self) -> bool {
        self.outcome == "planned"
    }

    fn is_sure(&self) -> bool {
        self.is_planned() && self.keeps_limit == Some(true)
    }

    fn time(&self) -> u64 {
        self.verified_time_ns.expect("it was run")
    }

    fn accuracy(&self) -> f64 {
        self.verified_accuracy.expect("it was run")
    }

    /// Whether what was measured is beyond the limit.
    fn is_broken(&self) -> bool {
        self.limit_time_ns.is_some_and(|limit| self.time() > limit)
            || (self.limit_accuracy).is_some_and(|limit| self.accuracy() < limit)
    }

    fn limit(&self) -> String {
        match (self.limit_time_ns, self.limit_accuracy) {
            (Some(nanos), _) => format!("within {:.3} ms", nanos as f64 / 1e6),
            (None, Some(accuracy)) => format!("at {accuracy:.4}"),
            (None, None) => unreachable!("every row has a limit"),
        }
    }

    /// What is measured of it, in words.
    fn measured(&self) -> String {
        match self.is_planned() {
            true => format!(
                "{:.3} ms at {:.4}",
                self.time() as f64 / 1e6,
                self.accuracy()
            ),
            false => "no plan".to_owned(),
        }
    }
}

/// A profile's sweep.
struct Sweep {
    name: String,
    rows: Vec<Row>,
}

impl Sweep {
    fn of(&self, algorithm: &str, keep: Option<usize>) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| row.algorithm == algorithm && row.keep == keep)
            .collect()
    }
}

/// How MLMP's plan compares with the heuristic's for one limit, by what was measured of both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Better,
    Equal,
    Worse,
    /// The heuristic has no plan, or its plan breaks the limit.
    Alone,
    /// MLMP has none, or its plan breaks the limit.
    Without,
}

fn beside(ours: &Row, other: &Row) -> Beside {
    let holds = |row: &Row| row.is_planned() && !row.is_broken();
    match (holds(ours), holds(other)) {
        (true, false) => Beside::Alone,
        (false, true) => Beside::Without,
        (false, false) => Beside::Equal,
        (true, true) if ours.combination == other.combination => Beside::Equal,
        (true, true) if ours.limit_time_ns.is_some() => {
            match ours.accuracy().total_cmp(&other.accuracy()) {
                std::cmp::Ordering::Greater => Beside::Better,
                std::cmp::Ordering::Equal => Beside::Equal,
                std::cmp::Ordering::Less => Beside::Worse,
            }
        }
        (true, true) => match ours.time() as f64 / other.time() as f64 - 1.0 {
            difference if difference < -SAME_TIME => Beside::Better,
            difference if difference <= SAME_TIME => Beside::Equal,
            _ => Beside::Worse,
        },
    }
}

/// How probable it is that of `count` limits `broken` or more are broken, if each is with `probability`.
fn tail(count: usize, broken: usize, probability: f64) -> f64 {
    let breaks = Binomial::new(probability, count as u64).expect("a probability");
    match broken.checked_sub(1) {
        Some(fewer) => breaks.sf(fewer as u64),
        None => 1.0,
    }
}

fn sweep(name: &str, profile: &Path, on: &str, of: &str, set: &Path) -> Sweep {
    eprintln!("running the plans of {name}");
    let kept: Vec<String> = KEPT.iter().map(usize::to_string).collect();
    let mut command = layerlab();
    command.args(["plan", "sweep", "--steps", STEPS, "--k", &kept.join(",")]);
    command.arg("--verify").arg(device(on));
    command.arg("--model").arg(model(of));
    let text = succeed(command.arg("--set").arg(set).arg(profile));
    let rows = csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .collect::<Result<_, _>>()
        .expect("the columns of a sweep");
    Sweep {
        name: name.to_owned(),
        rows,
    }
}

fn measure(on: &str, of: &str, set: &Path, out: &Path) {
    eprintln!("profiling {of} on {on}");
    let mut command = layerlab();
    command.args(["profile", "--model"]).arg(model(of));
    command.arg("--device").arg(device(on));
    succeed(command.arg("--set").arg(set).arg("--out").arg(out));
}

fn all(folder: &Path) -> Vec<Sweep> {
    let mut sweeps = Vec::new();
    for of in MODELS {
        let set = scenes_of_published(of, &folder.join(of));
        for on in PUBLISHED.into_iter().chain([MEASURED_FIRST]) {
            let profile: PathBuf = match on {
                MEASURED_FIRST => {
                    let out = folder.join(format!("{of}-{on}"));
                    measure(on, of, &set, &out);
                    out
                }
                _ => root().join("profiles/published").join(on).join(of),
            };
            sweeps.push(sweep(&format!("{of} on {on}"), &profile, on, of, &set));
        }
    }
    sweeps
}

/// Broken limits: a row for each profile and goal, and one for all; and the probability of as many.
fn broken(sweeps: &[Sweep]) -> (Vec<Vec<String>>, f64) {
    let mut cells = Vec::new();
    let (mut count, mut unsure, mut over, mut expected) = (0, 0, 0, 0.0);
    for sweep in sweeps {
        for goal in ["max-accuracy", "min-time"] {
            let rows = sweep.of("mlmp", None);
            let rows: Vec<&Row> = rows.into_iter().filter(|row| row.goal == goal).collect();
            let sure: Vec<&&Row> = rows.iter().filter(|row| row.is_sure()).collect();
            let breaks = sure.iter().filter(|row| row.is_broken()).count();
            let doubted = rows.iter().filter(|row| row.is_planned()).count() - sure.len();
            let allowed = sure
                .iter()
                .map(|row| 1.0 - row.confidence.expect("a confidence"));
            expected += allowed.sum::<f64>();
            count += sure.len();
            unsure += doubted;
            over += breaks;
            let mut row = vec![sweep.name.clone(), goal.to_owned()];
            row.extend([rows.len(), sure.len(), doubted, breaks].map(|number| number.to_string()));
            cells.push(row);
        }
    }
    let probability = tail(count, over, expected / count as f64);
    let mut row = vec!["all".to_owned(), String::new(), String::new()];
    row.extend([count, unsure, over].map(|number| number.to_string()));
    cells.push(row);
    (cells, probability)
}

/// MLMP beside the heuristic: counts by profile, and the limits at which it is worse.
fn compared(sweeps: &[Sweep]) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let (mut counts, mut worse) = (Vec::new(), Vec::new());
    for sweep in sweeps {
        let pairs = sweep.of("mlmp", None);
        let pairs: Vec<(&Row, &Row)> = pairs.into_iter().zip(sweep.of("heuristic", None)).collect();
        for (ours, other) in &pairs {
            assert_eq!(ours.limit(), other.limit(), "rows are in one order");
        }
        let outcomes: Vec<Beside> = pairs.iter().map(|(a, b)| beside(a, b)).collect();
        let mut row = vec![sweep.name.clone()];
        for which in [
            Beside::Better,
            Beside::Alone,
            Beside::Equal,
            Beside::Worse,
            Beside::Without,
        ] {
            let count = outcomes.iter().filter(|one| **one == which).count();
            row.push(count.to_string());
        }
        counts.push(row);
        for ((ours, other), outcome) in pairs.iter().zip(&outcomes) {
            if matches!(outcome, Beside::Worse | Beside::Without) {
                worse.push(vec![
                    sweep.name.clone(),
                    ours.limit(),
                    ours.measured(),
                    other.measured(),
                ]);
            }
        }
    }
    (counts, worse)
}

/// The mean accuracy that was measured within the time limits, of the paper's MLMP by K and of MLMP; where there is no plan for some
/// of them, of how many it is.
fn over_kept(sweeps: &[Sweep]) -> Vec<Vec<String>> {
    let mean = |rows: Vec<&Row>| {
        let rows = rows.into_iter().filter(|row| row.limit_time_ns.is_some());
        let (planned, without): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.is_planned());
        let sum: f64 = planned.iter().map(|row| row.accuracy()).sum();
        let mean = format!("{:.4}", sum / planned.len() as f64);
        match without.len() {
            0 => mean,
            _ => format!("{mean} of {}", planned.len()),
        }
    };
    let row = |sweep: &Sweep| {
        let mut row = vec![sweep.name.clone()];
        row.extend(KEPT.map(|keep| mean(sweep.of("mlmp-paper", Some(keep)))));
        row.push(mean(sweep.of("mlmp", None)));
        row
    };
    sweeps.iter().map(row).collect()
}

/// The page, and whether limits are kept as often as is said.
fn page(sweeps: &[Sweep]) -> (String, bool) {
    let mut page = String::from("# Plans and their limits, predicted and run\n\n");
    let mut say = |line: std::fmt::Arguments<'_>| {
        // Writing to a text does not fail.
        let _ = page.write_fmt(line);
    };
    say(format_args!(
        "`cargo tool kept-limits tests/reports/kept_limits.md` made this page. On six profiles of simulated phones (those of {MEASURED_FIRST} \
         were measured for it, the others are published), `layerlab plan sweep --verify` planned within {STEPS} time limits and above {STEPS} \
         accuracy limits each and ran every plan: 100 passes for its time, and all pictures of the profile's evaluation set for \
         its accuracy, by the numerics of the phone's processors. Phones and times are simulated.\n\n"
    ));
    let (rows, probability) = broken(sweeps);
    let is_kept = probability > LEAST_PROBABLE;
    say(format_args!(
        "## Broken limits\n\nPlans of `mlmp` that say that they keep their limit, with 95 % confidence, and those that were beyond \
         it when they were run. If each broke its limit with a probability of 5 %, as many or more would be broken with probability \
         {probability:.4}: they are broken {} often than is said.\n\n",
        if is_kept { "no more" } else { "more" }
    ));
    let heads = ["profile", "goal", "limits", "sure", "not sure", "broken"];
    say(format_args!("{}\n", markdown(&heads, &rows)));
    let (rows, worse) = compared(sweeps);
    say(format_args!(
        "## MLMP beside the heuristic\n\nBy what was measured of both plans for a limit: the accuracy within a time, the time above \
         an accuracy (times within {} % of each other are equal). `only MLMP`: the heuristic has no plan, or one that breaks \
         the limit; `only heuristic` likewise.\n\n",
        100.0 * SAME_TIME
    ));
    let heads = [
        "profile",
        "better",
        "only MLMP",
        "equal",
        "worse",
        "only heuristic",
    ];
    say(format_args!("{}\n", markdown(&heads, &rows)));
    match worse.is_empty() {
        true => say(format_args!(
            "MLMP is as good as the heuristic or better at every limit.\n\n"
        )),
        false => {
            say(format_args!("Where the heuristic is better:\n\n"));
            let heads = ["profile", "limit", "MLMP, measured", "heuristic, measured"];
            say(format_args!("{}\n", markdown(&heads, &worse)));
        }
    }
    say(format_args!(
        "## The paper's MLMP over K\n\nThe mean, over the time limits, of the accuracy that was measured of the plans of `mlmp-paper` \
         that keeps K placements in each step (MLMP, Figure 6), and of `mlmp`.\n\n"
    ));
    let kept = KEPT.map(|keep| format!("K = {keep}"));
    let mut heads = vec!["profile"];
    heads.extend(kept.iter().map(String::as_str));
    heads.push("mlmp");
    say(format_args!("{}", markdown(&heads, &over_kept(sweeps))));
    (page, is_kept)
}

fn main() -> ExitCode {
    let Some(report) = std::env::args_os().nth(1) else {
        eprintln!("name the file of the report");
        return ExitCode::from(2);
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (page, is_kept) = page(&all(folder.path()));
    std::fs::write(report, page).expect("room for the report");
    match is_kept {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
