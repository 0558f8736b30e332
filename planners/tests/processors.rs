//! Placements on three and four processors, against every placement there is.

use crate::several;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::check::Loss;
use layerlab_planners::export::{
    ExportError, Source, VerifiedPlacements, dnn_partitioning, outcomes_csv, outcomes_json,
};
use layerlab_planners::reason::Reason;
use layerlab_planners::regress::{GbrtSettings, MlpSettings, RidgeSettings, Settings};
use layerlab_planners::solve::Why;
use layerlab_planners::solve::most_exhaustive_layers;
use layerlab_planners::sweep::{accuracy_limits, sweep, time_limits};
use layerlab_planners::{AccuracyTable, Algorithm, Goal, Outcome, Problem, Set, plan};
use layerlab_profiles::Nanos;
use rayon::prelude::*;
use several::{BASELINE, Several};

/// Few enough layers that all placements are a few thousand.
fn instances() -> impl ParallelIterator<Item = (u64, Several)> {
    (0..300_u64).into_par_iter().map(|seed| {
        let (processors, most) = [(3, 7), (4, 5)][seed as usize % 2];
        let layers = 1 + seed as usize / 2 % most;
        (seed, Several::new(layers, processors, seed))
    })
}

fn within(nanos: i64) -> Goal {
    Goal::MaxAccuracy {
        within: Nanos::from_nanos(nanos.unsigned_abs()),
    }
}

#[test]
fn the_fastest_placement_is_the_fastest_of_all() {
    instances().for_each(|(seed, several)| {
        let problem = several.known();
        let least = several.every().map(|digits| several.time(&digits)).min();
        let least = least.expect("placements");
        let outcome = several.plan(&problem, within(least), Algorithm::Fastest);
        let fastest = outcome.plan().expect("the fastest keeps its own time");
        assert_eq!(fastest.time().total().as_nanos(), least, "seed {seed}");
        let outcome = several.plan(&problem, within(least - 1), Algorithm::Fastest);
        let Outcome::Infeasible(infeasible) = outcome else {
            panic!("seed {seed}: faster than the fastest");
        };
        assert!(matches!(infeasible.why(), Why::FastestTooSlow { .. }));
        let accurate = Goal::MinTime { at_least: BASELINE };
        let outcome = several.plan(&problem, accurate, Algorithm::Fastest);
        let is_accurate = fastest.accuracy().value >= BASELINE;
        assert_eq!(outcome.plan().is_some(), is_accurate, "seed {seed}");
    });
}

#[test]
fn the_exhaustive_search_finds_the_optimum_of_all() {
    instances().for_each(|(seed, several)| {
        let problem = several.known();
        let all: Vec<(i64, f64)> = several
            .every()
            .map(|digits| (several.time(&digits), several.accuracy(&digits)))
            .collect();
        let limits = [time_limits(&problem, 4), accuracy_limits(&problem, 4)].concat();
        for goal in limits {
            let best = all.iter().copied().filter(|&(time, accuracy)| match goal {
                Goal::MaxAccuracy { within } => time <= within.signed().as_nanos(),
                Goal::MinTime { at_least } => accuracy >= at_least,
            });
            let best = best.min_by(|a, b| match goal {
                Goal::MaxAccuracy { .. } => b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)),
                Goal::MinTime { .. } => a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)),
            });
            let outcome = several.plan(&problem, goal, Algorithm::Exhaustive);
            let found = outcome.plan().map(|plan| {
                assert_eq!(plan.evaluated(), all.len() as u64);
                (plan.time().total().as_nanos(), plan.accuracy().value)
            });
            assert_eq!(found, best, "seed {seed}, {goal}");
        }
    });
}

#[test]
fn learnt_losses_are_recalculated_from_the_same_features() {
    let settings = [
        Settings::Ridge(RidgeSettings { penalty: 0.1 }),
        Settings::Gbrt(GbrtSettings {
            trees: 30,
            depth: 3,
            learning_rate: 0.1,
        }),
        Settings::Mlp(MlpSettings {
            hidden: (8, 4),
            penalty: 1e-3,
            iterations: 100,
            seed: 1,
        }),
    ];
    let several = Several::new(6, 3, 5);
    for settings in settings {
        let model = AccuracyModel::with(&several.layers, &several.table, settings).expect("trains");
        let problem = several.problem(Box::new(model.clone()));
        for goal in [time_limits(&problem, 5)[2], accuracy_limits(&problem, 5)[2]] {
            for algorithm in [Algorithm::AllCpu, Algorithm::Fastest, Algorithm::Exhaustive] {
                let outcome = plan(&problem, goal, algorithm).expect("a sensible question");
                several.assert_checked(Loss::Model(&model), &outcome);
            }
        }
    }
}

#[test]
fn the_papers_algorithms_refuse_three_processors() {
    let problem = Several::new(5, 3, 1).known();
    let goal = time_limits(&problem, 3)[1];
    for algorithm in [Algorithm::AllNpu, Algorithm::Heuristic, Algorithm::Mlmp] {
        let error = plan(&problem, goal, algorithm).expect_err("three processors");
        let expected = "plans for a CPU and one accelerator, and there are 3 processors; name two, or use all-cpu, \
             fastest or exhaustive";
        assert_eq!(error.to_string(), format!("{algorithm} {expected}"));
    }
    let others = [Algorithm::AllCpu, Algorithm::Fastest, Algorithm::Exhaustive];
    let outcomes = sweep(&problem, &time_limits(&problem, 4), &others).expect("answers");
    assert_eq!(outcomes.len(), 4 * others.len());
}

#[test]
fn more_layers_and_processors_than_planners_take_are_refused() {
    assert_eq!([2, 3, 4].map(most_exhaustive_layers), [20, 12, 10]);
    let problem = Several::new(13, 3, 1).known();
    let goal = time_limits(&problem, 3)[1];
    let error = plan(&problem, goal, Algorithm::Exhaustive).expect_err("13 layers");
    assert_eq!(
        error.to_string(),
        "the model has 13 layers; all placements are tried up to 12"
    );
    let several = Several::new(4, 3, 1);
    let mut tables = several.tables();
    tables.extend(several.tables());
    let error = layerlab_planners::TimeTable::of(tables).expect_err("six processors");
    assert_eq!(
        error.to_string(),
        "there are 6 processors; the planners take 2 to 4"
    );
    let mut tables = several.tables();
    tables[2].times.pop();
    let error = layerlab_planners::TimeTable::of(tables).expect_err("3 of 4 layers");
    assert_eq!(
        error.to_string(),
        "the CPU's table has 4 layers and the npu's 3; both must be of one model"
    );
}

#[test]
fn losses_of_other_processors_are_refused() {
    let several = Several::new(3, 3, 1);
    let rows = several.table.rows().to_vec();
    let error = AccuracyTable::new(3, BASELINE, rows.clone()).expect_err("two processors");
    assert!(error.to_string().contains("names processor 2"), "{error}");
    let without = rows
        .into_iter()
        .filter(|row| row.set != Set::Reference || row.combination.to_string() != "020");
    let without: Vec<_> = without
        .filter(|row| row.combination.to_string() != "020")
        .collect();
    let error = AccuracyTable::on_processors(3, 3, BASELINE, without).expect_err("no 020");
    assert_eq!(
        error.to_string(),
        "the loss of layer 2 alone on processor 2 was not measured; it is a feature of the accuracy model"
    );
    let pair = Several::new(3, 4, 1);
    let problem = Problem::new(&several.layers, pair.times(), &several.table, pair.oracle());
    assert_eq!(
        problem.err().map(|error| error.to_string()).as_deref(),
        Some("there are times of 4 processors and losses of 3; both must be of the same")
    );
}

#[test]
fn plans_are_written_with_their_processors() {
    let several = Several::new(6, 3, 7);
    let problem = several.known();
    let goal = within(
        several
            .every()
            .map(|digits| several.time(&digits))
            .min()
            .expect("some"),
    );
    let outcome = several.plan(&problem, goal, Algorithm::Fastest);
    let planned = outcome.plan().expect("feasible").clone();
    let moves = planned.reasons().iter().filter_map(|reason| match reason {
        Reason::Layer(layer) => Some(layer),
        _ => None,
    });
    assert_eq!(moves.count(), 6 * 2, "each layer has two other processors");
    let source = Source {
        model: "chain".to_owned(),
        model_sha256: "0".repeat(64),
        device: "planted".to_owned(),
        cpu: "CPU".to_owned(),
        npu: "gpu+npu".to_owned(),
        run: "r-0001".to_owned(),
        profile_digest: None,
        simulated: true,
        emulated: false,
        thermal: layerlab_profiles::soak::Thermal::Cold,
    };
    let json = outcomes_json(&source, std::slice::from_ref(&outcome)).expect("a document");
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let plan = &document["outcomes"][0]["plan"];
    let processors = plan["processors"].as_array().expect("a list");
    let names: Vec<_> = processors.iter().map(|p| p["name"].as_str()).collect();
    assert_eq!(names, [Some("CPU"), Some("gpu"), Some("npu")]);
    let compute = processors
        .iter()
        .map(|p| p["compute_ns"].as_i64().expect("ns"));
    let total = compute.sum::<i64>() + plan["transfer_ns"].as_i64().expect("ns");
    assert_eq!(Some(total), plan["time_ns"].as_i64());
    assert_eq!(plan["layers"].as_array().map(Vec::len), Some(12));
    let csv = outcomes_csv(&source, &[outcome], &VerifiedPlacements::new()).expect("a table");
    assert!(csv.contains(&planned.combination().to_string()));
    let export = dnn_partitioning(&several.layers, problem.times(), None, &source);
    assert!(matches!(
        export,
        Err(ExportError::TwoProcessors { processors: 3 })
    ));
}
