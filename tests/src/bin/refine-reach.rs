//! Does measuring 20 placements where it matters reach what 300 measured anywhere do? `refine-reach [LIMITS] [MODEL]...` takes
//! the published profiles of these models (vocnet-mini and yolo-mini if none is named) with 100 of their training rows, refines
//! the most accurate plan within each of so many time limits (10 if not told otherwise) on the profile's simulated phone, and
//! puts the plan of all 300 rows beside it. Accuracies are measured, by the profile's own images. Prints a table, and fails
//! unless on average of a profile's limits the refined plans are as good as those of all rows, give or take a thousandth.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::print_stderr, reason = "as is a wrong command line")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use layerlab_campaign::{
    AccuracySettings, EvaluationSettings, ModelFile, Placements, SetFile, evaluate,
};
use layerlab_farm::discovery::Choice;
use layerlab_farm::local::LocalLink;
use layerlab_planners::profile::{Tables, tables};
use layerlab_planners::refine::{best_measured, doubts};
use layerlab_planners::regress::Grid;
use layerlab_planners::sweep::time_limits;
use layerlab_planners::{
    AccuracyModel, AccuracyRow, AccuracyTable, Algorithm, Goal, Outcome, Plan, Problem, Set, plan,
};
use layerlab_profiles::Placement;
use layerlab_profiles::document::{Profile, judged_rows};
use layerlab_protocol::Entry;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::scenes::scenes_of_published;
use layerlab_tests::{agent_program, device, model, root};

const LIMITS: usize = 10;
const MODELS: [&str; 2] = ["vocnet-mini", "yolo-mini"];
const DEVICES: [&str; 2] = ["mate10pro", "oneplus7"];
const FEW: usize = 100;
const MOST: usize = 20;
/// As `plan --refine` does.
const PER_ROUND: usize = 4;
const AS_GOOD: f64 = 0.001;

/// A profile with a device to measure on, and all that was measured there.
struct Bench {
    profile: Profile,
    link: LocalLink,
    model: ModelFile,
    set: SetFile,
    measured: BTreeMap<Placement, AccuracyRow>,
}

impl Bench {
    fn open(on: &str, of: &str, folder: &Path) -> Bench {
        let published = root().join("profiles/published").join(on).join(of);
        let profile = Profile::read(&published).expect("a published profile");
        let path = scenes_of_published(of, &folder.join(format!("{of}-{on}")));
        let set = SetFile::open(&path).expect("a set");
        assert_eq!(set.sha256, profile.evaluations[0].set_sha256);
        let link = LocalLink::new(agent_program(), Choice::File(device(on)));
        Bench {
            profile,
            link: link.expect("a state folder"),
            model: ModelFile::open(&model(of), &BTreeMap::new()).expect("a model"),
            set,
            measured: BTreeMap::new(),
        }
    }

    fn tables(&self) -> Tables<'_> {
        tables(&self.profile, None, &[]).expect("times and accuracies")
    }

    /// The profile's rows, of which so many are to train on.
    fn table(&self, train: usize) -> AccuracyTable {
        let all = self.tables().accuracy;
        let mut left = train;
        let rows = all.rows().iter().filter(|row| match row.set {
            Set::Train => {
                let is_taken = left > 0;
                left = left.saturating_sub(1);
                is_taken
            }
            // Rows to judge by are no lessons, but they were measured.
            Set::Test => train > FEW,
            Set::Reference => true,
        });
        let rows: Vec<AccuracyRow> = rows.cloned().collect();
        AccuracyTable::new(all.layers(), all.baseline(), rows).expect("all single layers")
    }

    fn problem(&self, table: &AccuracyTable) -> Problem {
        let layers = &self.profile.layers;
        let model = AccuracyModel::train(layers, table, &Grid::default()).expect("trains");
        let problem = Problem::new(layers, self.tables().times, table, Box::new(model));
        problem.expect("of one model")
    }

    /// Measures those of the placements that were not yet.
    async fn measure(&mut self, placements: &[Placement]) {
        let new = placements
            .iter()
            .filter(|one| !self.measured.contains_key(one));
        let new: Vec<Placement> = new.cloned().collect();
        if new.is_empty() {
            return;
        }
        let evaluation = &self.profile.evaluations[0];
        let settings = EvaluationSettings {
            processors: vec![evaluation.cpu.clone(), evaluation.accelerator.clone()],
            placements: Placements::These(new),
            seed: evaluation.seed,
            answers: Some(evaluation.answers as usize),
            stop_at_half_width: None,
            as_runs: false,
            keep_answers: false,
            memory: AccuracySettings::default().memory,
        };
        let mut nobody = |_: &Entry| {};
        let found = evaluate(&self.link, &self.model, &self.set, &settings, &mut nobody).await;
        let found = found.expect("tallies");
        let rows = judged_rows(&found.evaluation, &found.judged).expect("a baseline");
        self.measured.extend(rows.into_iter().map(|row| {
            let lesson = AccuracyRow {
                combination: row.combination.clone(),
                set: Set::Train,
                loss: row.loss,
                loss_ci95: Some(row.loss_ci95),
            };
            (row.combination, lesson)
        }));
    }

    /// What a plan is measured to be worth.
    async fn accuracy(&mut self, plan: &Plan) -> f64 {
        let placement = plan.combination().clone();
        self.measure(std::slice::from_ref(&placement)).await;
        self.tables().accuracy.baseline() - self.measured[&placement].loss
    }

    /// The plan of few rows, refined; how many were measured, and whether it is sure.
    async fn refine(&mut self, goal: Goal) -> (Plan, usize, bool) {
        let mut table = self.table(FEW);
        let mut count = 0;
        loop {
            let problem = self.problem(&table);
            let plan = planned(&problem, goal);
            let more = PER_ROUND.min(MOST - count);
            let found = doubts(&problem, &plan, more);
            if found.count == 0 || more == 0 {
                let plan = best_measured(&problem, goal).unwrap_or(plan);
                return (plan, count, found.count == 0);
            }
            let placements = found.placements.into_iter();
            let chosen: Vec<Placement> = placements.map(|one| one.placement).collect();
            self.measure(&chosen).await;
            count += chosen.len();
            let rows = chosen.iter().map(|one| self.measured[one].clone());
            let rows = rows.collect();
            table = table.with_more(rows).expect("none was measured before");
        }
    }
}

fn planned(problem: &Problem, goal: Goal) -> Plan {
    match plan(problem, goal, Algorithm::Mlmp).expect("a sensible goal") {
        Outcome::Planned(plan) => *plan,
        Outcome::Infeasible(why) => panic!("{why}"),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Ok(limits) = args.next().map_or(Ok(LIMITS), |text| text.parse()) else {
        eprintln!("usage: refine-reach [LIMITS] [MODEL]...");
        return ExitCode::from(2);
    };
    let named: Vec<String> = args.collect();
    let models = match named.is_empty() {
        true => MODELS.map(str::to_owned).to_vec(),
        false => named,
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut rows = Vec::new();
    let mut is_reached = true;
    for of in &models {
        for on in DEVICES {
            let mut bench = Bench::open(on, of, folder.path());
            let few = bench.problem(&bench.table(FEW));
            let all = bench.problem(&bench.table(usize::MAX));
            let mut sums = [0.0; 3];
            for goal in time_limits(&all, limits) {
                let before = bench.accuracy(&planned(&few, goal)).await;
                let of_all = bench.accuracy(&planned(&all, goal)).await;
                let (plan, count, is_sure) = bench.refine(goal).await;
                let refined = bench.accuracy(&plan).await;
                for (sum, one) in sums.iter_mut().zip([before, refined, of_all]) {
                    *sum += one / limits as f64;
                }
                let cells = [before, refined, of_all].map(|one| format!("{one:.4}"));
                let mut row = vec![format!("{of} on {on}, {goal}")];
                row.extend(cells);
                row.push(format!("{count}{}", if is_sure { ", sure" } else { "" }));
                println!("{}", row.join(" | "));
                rows.push(row);
            }
            let [before, refined, of_all] = sums;
            is_reached &= refined >= of_all - AS_GOOD;
            let mut row = vec![format!("{of} on {on}, mean")];
            row.extend([before, refined, of_all].map(|one| format!("{one:.4}")));
            row.push(String::new());
            println!("{}", row.join(" | "));
            rows.push(row);
        }
    }
    let heads = ["plan", "100 rows", "refined", "300 rows", "measured"];
    println!("\n{}", markdown(&heads, &rows));
    match is_reached {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
