//! What a processor cannot run is a limit that every algorithm keeps, and that the checker holds every plan to.

use crate::several;

use layerlab_planners::check::{Evidence, Fault, Loss, check};
use layerlab_planners::export::{ExportError, Source, dnn_partitioning, outcomes_json};
use layerlab_planners::reason::Reason;
use layerlab_planners::solve::Why;
use layerlab_planners::sweep::{accuracy_limits, sweep, time_limits};
use layerlab_planners::times::TimesError;
use layerlab_planners::{Algorithm, Goal, Outcome, TimeTable, plan};
use several::Several;

const MLMP: Algorithm = Algorithm::Mlmp;

/// Devices whose accelerators lack single layers, and some that cannot run neighbours as one unit.
fn instances(processors: usize) -> impl Iterator<Item = Several> {
    (0..40).map(move |seed| {
        let several = Several::new(6, processors, seed).without(1, &[(3, 3)]);
        match seed % 4 {
            0 => several,
            1 => several.without(1, &[(1, 1), (4, 4)]),
            2 => several
                .without(1, &[(4, 6)])
                .without(processors - 1, &[(1, 2), (2, 4)]),
            _ => several.without(1, &[(1, 1), (2, 2), (4, 4), (5, 5), (6, 6)]),
        }
    })
}

fn limits(several: &Several) -> Vec<Goal> {
    let problem = several.known();
    let mut goals = time_limits(&problem, 6);
    goals.extend(accuracy_limits(&problem, 6));
    goals
}

fn digits(outcome: &Outcome) -> Option<Vec<usize>> {
    let placement = outcome.plan()?.combination().processors().iter();
    Some(placement.map(|&on| usize::from(on)).collect())
}

#[test]
fn the_exact_searches_find_the_best_of_what_can_run() {
    for several in instances(3) {
        let problem = several.known();
        let possible = || several.every().filter(|digits| several.can_run(digits));
        let least = possible().map(|digits| several.time(&digits)).min();
        let fastest = time_limits(&problem, 2)[0];
        let outcome = several.plan(&problem, fastest, Algorithm::Fastest);
        let found = outcome.plan().expect("the fastest keeps its own time");
        assert_eq!(Some(found.time().total().as_nanos()), least);
        for goal in limits(&several) {
            let outcome = several.plan(&problem, goal, Algorithm::Exhaustive);
            let found = outcome.plan().expect("all goals can be met");
            let best = match goal {
                Goal::MaxAccuracy { within } => {
                    let fast =
                        |digits: &Vec<usize>| several.time(digits) <= within.signed().as_nanos();
                    let all = possible().filter(fast);
                    let best = all.map(|d| several.accuracy(&d)).fold(0.0, f64::max);
                    (found.accuracy().value - best).abs() < 1e-9
                }
                Goal::MinTime { at_least } => {
                    let accurate = possible().filter(|d| several.accuracy(d) >= at_least);
                    accurate.map(|d| several.time(&d)).min()
                        == Some(found.time().total().as_nanos())
                }
            };
            assert!(best, "{goal}: {found:?}");
        }
    }
}

#[test]
fn no_algorithm_plans_what_cannot_run() {
    for several in instances(2) {
        let problem = several.known();
        for goal in limits(&several) {
            let mut accuracies = Vec::new();
            for algorithm in [Algorithm::AllCpu, Algorithm::Heuristic, MLMP] {
                let outcome = several.plan(&problem, goal, algorithm);
                let digits = digits(&outcome);
                assert!(digits.is_none_or(|digits| several.can_run(&digits)));
                accuracies.push(outcome.plan().map(|plan| plan.accuracy().value));
            }
            assert!(accuracies[2].is_some(), "{goal}: mlmp has a plan");
            if let Goal::MaxAccuracy { .. } = goal {
                assert!(accuracies[2] >= accuracies[1] && accuracies[2] >= accuracies[0]);
            }
        }
    }
}

#[test]
fn all_npu_says_why_it_has_no_plan_and_a_sweep_goes_on() {
    let several = Several::new(6, 2, 1).without(1, &[(3, 3)]);
    let problem = several.known();
    let goals = time_limits(&problem, 3);
    let outcome = several.plan(&problem, goals[2], Algorithm::AllNpu);
    let Outcome::Infeasible(infeasible) = &outcome else {
        panic!("{outcome:?}")
    };
    let sentence = infeasible.to_string();
    let expected =
        ": the gpu cannot run layers 3..=3: it has no Elu; another algorithm places them elsewhere";
    assert!(sentence.ends_with(expected), "{sentence}");
    let outcomes = sweep(&problem, &goals, &Algorithm::in_figures()).expect("answers");
    assert_eq!(outcomes.len(), 3 * Algorithm::in_figures().len());
}

#[test]
fn the_checker_notices_what_cannot_run_and_what_can_after_all() {
    let free = Several::new(6, 2, 1);
    let bound = Several::new(6, 2, 1).without(1, &[(3, 3)]);
    let goal = time_limits(&bound.known(), 3)[2];
    let faults = |outcome: &Outcome, several: &Several| {
        let evidence = Evidence {
            layers: &several.layers,
            processors: &several.tables(),
            accuracy: &several.table,
            loss: Loss::Formula(&|_| 0.0),
        };
        check(outcome, &evidence)
    };
    let possible = plan(&free.known(), goal, Algorithm::AllNpu).expect("sensible");
    let found = faults(&possible, &bound);
    assert!(
        matches!(found[..], [Fault::Unsupported { processor: 1, .. }]),
        "{found:?}"
    );
    assert_eq!(
        found[0].to_string(),
        "111111 has layers 3..=3 on processor 1, which cannot run them: it has no Elu"
    );
    let refused = plan(&bound.known(), goal, Algorithm::AllNpu).expect("sensible");
    assert_eq!(faults(&refused, &bound), []);
    let found = faults(&refused, &free);
    assert!(
        matches!(found[..], [Fault::SupportedAfterAll { .. }]),
        "{found:?}"
    );
}

#[test]
fn a_plan_says_where_a_layer_cannot_run_and_so_do_exports() {
    let several = Several::new(6, 2, 1).without(1, &[(3, 3)]);
    let problem = several.known();
    let goal = time_limits(&problem, 3)[2];
    let outcome = several.plan(&problem, goal, MLMP);
    let reasons = outcome.plan().expect("feasible").reasons();
    let said: Vec<String> = reasons
        .iter()
        .filter(|reason| matches!(reason, Reason::Unsupported(_)))
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        said,
        ["layer 3 (conv3) runs on the CPU: the gpu cannot run it: it has no Elu"]
    );
    let source = Source {
        model: "chain".to_owned(),
        model_sha256: "0".repeat(64),
        device: "planted".to_owned(),
        cpu: "CPU".to_owned(),
        npu: "gpu".to_owned(),
        run: "r-0001".to_owned(),
        profile_digest: None,
        simulated: true,
        emulated: false,
        thermal: layerlab_profiles::soak::Thermal::Cold,
    };
    let json = outcomes_json(&source, &[outcome]).expect("a document");
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let layers = document["outcomes"][0]["plan"]["layers"]
        .as_array()
        .expect("a list");
    assert_eq!(layers.len(), 6);
    assert_eq!(layers[2]["verdict"], "moving-is-unsupported");
    assert_eq!(layers[2]["unsupported"], "it has no Elu");
    assert!(layers[2]["moving_changes_time_ns"].is_null());
    assert!(layers[1]["moving_changes_time_ns"].is_i64());
}

#[test]
fn the_dnn_partitioning_format_says_which_layers_the_accelerator_supports() {
    let source = Source {
        model: "chain".to_owned(),
        model_sha256: "0".repeat(64),
        device: "planted".to_owned(),
        cpu: "CPU".to_owned(),
        npu: "NPU".to_owned(),
        run: "r-0001".to_owned(),
        profile_digest: None,
        simulated: true,
        emulated: false,
        thermal: layerlab_profiles::soak::Thermal::Cold,
    };
    let several = Several::new(3, 2, 1).without(1, &[(2, 2)]);
    let text = dnn_partitioning(&several.layers, &several.times(), None, &source);
    let document: serde_json::Value =
        serde_json::from_str(&text.expect("a workload")).expect("JSON");
    let nodes = document["nodes"].as_array().expect("a list");
    let supported: Vec<_> = nodes
        .iter()
        .map(|node| node["supportedOnFpga"].as_u64())
        .collect();
    assert_eq!(supported, [0, 1, 0, 1, 0].map(Some));
    let together = Several::new(3, 2, 1).without(1, &[(1, 2)]);
    let error = dnn_partitioning(&together.layers, &together.times(), None, &source);
    assert!(matches!(error, Err(ExportError::Together { .. })));
}

#[test]
fn a_first_processor_that_lacks_a_layer_is_refused_and_so_is_a_time_that_is_missing() {
    let error = TimeTable::of(Several::new(3, 2, 1).without(0, &[(2, 2)]).tables());
    assert_eq!(
        error.expect_err("a layer runs nowhere").to_string(),
        "the CPU cannot run layers 2..=2: it has no Elu; plan with a first processor that runs every layer"
    );
    let mut tables = Several::new(3, 2, 1).without(1, &[(2, 2)]).tables();
    tables[1].unsupported.clear();
    let error = TimeTable::of(tables).expect_err("a time is missing");
    assert!(
        matches!(error, TimesError::MissingTime { layer: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_plan_that_nothing_else_than_the_fastest_beats_is_refused_with_its_time() {
    let several = Several::new(6, 3, 5)
        .without(1, &[(2, 2)])
        .without(2, &[(2, 2), (5, 6)]);
    let problem = several.known();
    let Goal::MaxAccuracy { within } = time_limits(&problem, 2)[0] else {
        unreachable!("time limits")
    };
    let too_soon = Goal::MaxAccuracy {
        within: layerlab_profiles::Nanos::from_nanos(within.as_nanos() - 1),
    };
    for algorithm in [Algorithm::Fastest, Algorithm::Exhaustive] {
        let outcome = several.plan(&problem, too_soon, algorithm);
        let Outcome::Infeasible(infeasible) = outcome else {
            panic!("faster than the fastest")
        };
        assert!(matches!(infeasible.why(), Why::FastestTooSlow { .. }));
    }
}
