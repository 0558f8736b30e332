//! From measured combinations to plans: every kind of regressor, the choice between them, and the figures.

use crate::planted;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::export::{
    Source, VerifiedPlacement, outcomes_csv, outcomes_json, tried_csv,
};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::regress::{Grid, Kind};
use layerlab_planners::sweep::{accuracy_limits, sweep, time_limits};
use layerlab_planners::{Algorithm, Goal, Outcome};
use planted::{BASELINE, Planted};

fn source() -> Source {
    Source {
        model: "chain".to_owned(),
        model_sha256: "0".repeat(64),
        device: "planted".to_owned(),
        cpu: "cpu".to_owned(),
        npu: "npu".to_owned(),
        run: "r-0001".to_owned(),
        profile_digest: None,
        simulated: true,
        emulated: false,
        thermal: layerlab_profiles::soak::Thermal::Cold,
    }
}

#[test]
fn every_kind_of_regressor_is_tried_judged_and_plans_what_the_checker_finds_again() {
    let planted = Planted::with_rows(12, 3, 300);
    for kind in Kind::ALL {
        let grid = Grid {
            kinds: vec![kind],
            ..Grid::default()
        };
        let model = AccuracyModel::train(&planted.layers, &planted.table, &grid).expect("trains");
        let test = model.test().expect("50 test rows");
        assert_eq!(test.rows, 50);
        assert!(test.r2.expect("losses differ") > 0.8, "{kind}: {test:?}");
        let problem = planted.learnt(&model);
        for goal in [time_limits(&problem, 3)[1], accuracy_limits(&problem, 3)[1]] {
            for algorithm in Algorithm::in_figures()
                .into_iter()
                .chain([Algorithm::Exhaustive])
            {
                planted.plan(&problem, Some(&model), goal, algorithm);
            }
        }
    }
}

#[test]
fn the_kind_that_does_best_on_held_back_rows_is_kept() {
    let planted = Planted::with_rows(10, 5, 150);
    let model =
        AccuracyModel::train(&planted.layers, &planted.table, &Grid::default()).expect("trains");
    let tried = model.tried();
    assert_eq!(
        tried.iter().map(|tried| tried.kind).collect::<Vec<_>>(),
        Kind::ALL
    );
    let least = tried
        .iter()
        .map(|tried| tried.held_back.mse)
        .fold(f64::INFINITY, f64::min);
    let kept = tried
        .iter()
        .find(|tried| tried.settings == model.settings())
        .expect("one of them");
    assert_eq!(kept.held_back.mse, least);
    assert_eq!(kept.test, model.test());
    let again =
        AccuracyModel::train(&planted.layers, &planted.table, &Grid::default()).expect("trains");
    assert_eq!(again.tried(), tried, "the same rows give the same model");
    let table = tried_csv(&source(), tried).expect("a table");
    assert_eq!(table.lines().count(), 1 + Kind::ALL.len());
    assert!(table.starts_with("model,device,simulated,emulated,regressor,settings,"));
}

#[test]
fn all_layers_on_the_cpu_lose_nothing_whatever_a_model_says() {
    let planted = Planted::with_rows(9, 2, 120);
    let grid = Grid {
        kinds: vec![Kind::Gbrt],
        ..Grid::default()
    };
    let model = AccuracyModel::train(&planted.layers, &planted.table, &grid).expect("trains");
    let problem = planted.learnt(&model);
    let all_cpu = PackedPlacement::all_cpu(9).expect("few layers");
    let accuracy = problem.accuracies(&[all_cpu])[0];
    assert_eq!((accuracy.value, accuracy.clamped), (BASELINE, false));
    assert_eq!(problem.measured_accuracy(&all_cpu), Some(BASELINE));
}

#[test]
fn sweeps_give_a_row_for_each_goal_and_algorithm_and_looser_limits_are_never_worse() {
    let planted = Planted::with_rows(14, 7, 300);
    let grid = Grid {
        kinds: vec![Kind::Gbrt],
        ..Grid::default()
    };
    let model = AccuracyModel::train(&planted.layers, &planted.table, &grid).expect("trains");
    let problem = planted.learnt(&model);
    let algorithms = [Algorithm::in_figures().as_slice(), &[Algorithm::Exhaustive]].concat();
    for goals in [time_limits(&problem, 9), accuracy_limits(&problem, 9)] {
        assert_eq!(goals.len(), 9);
        let outcomes = sweep(&problem, &goals, &algorithms).expect("sensible goals");
        assert_eq!(outcomes.len(), goals.len() * algorithms.len());
        for outcome in &outcomes {
            planted.assert_checked(Some(&model), outcome);
        }
        let optima: Vec<&Outcome> = outcomes.iter().skip(5).step_by(6).collect();
        for pair in optima.windows(2) {
            let plans = [
                pair[0].plan().expect("feasible"),
                pair[1].plan().expect("feasible"),
            ];
            match goals[0] {
                // Longer limits.
                Goal::MaxAccuracy { .. } => {
                    assert!(plans[0].accuracy().value <= plans[1].accuracy().value);
                }
                // Higher requirements.
                Goal::MinTime { .. } => assert!(plans[0].time().total() <= plans[1].time().total()),
            }
        }
        // As if the first plan had been run on a device.
        let verified = VerifiedPlacement {
            time_ns: 1_234_567,
            time_ci95_ns: Some((1_234_000, 1_235_000)),
            accuracy: Some((0.7654, (0.75, 0.78))),
            energy: None,
        };
        let first = outcomes.iter().find_map(Outcome::plan).expect("a plan");
        let verified = [(first.combination().clone(), verified)].into();
        let table = outcomes_csv(&source(), &outcomes, &verified).expect("a table");
        assert_eq!(table.lines().count(), outcomes.len() + 1);
        assert!(
            table.contains(",1234567,1234000,1235000,0.7654,0.75,0.78,"),
            "{table}"
        );
        let json = outcomes_json(&source(), &outcomes).expect("a document");
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(document["source"]["simulated"], true);
        let plan = &document["outcomes"][4]["plan"];
        assert_eq!(plan["layers"].as_array().map(Vec::len), Some(14));
    }
}

/// Word for word: the numbers are those of the plan, which the checker has recalculated.
#[test]
fn what_is_to_be_said_about_a_plan_reads_as_sentences() {
    let planted = Planted::with_rows(6, 4, 60);
    let grid = Grid {
        kinds: vec![Kind::Ridge],
        ..Grid::default()
    };
    let model = AccuracyModel::train(&planted.layers, &planted.table, &grid).expect("trains");
    let problem = planted.learnt(&model);
    let goal = time_limits(&problem, 5)[2];
    let outcome = planted.plan(&problem, Some(&model), goal, Algorithm::Mlmp);
    let plan = outcome.plan().expect("feasible");
    assert_eq!(plan.combination().to_string(), "000110");
    let reasons: Vec<String> = plan.reasons().iter().map(ToString::to_string).collect();
    assert_eq!(reasons, REASONS);

    let infeasible = planted.plan(&problem, Some(&model), goal, Algorithm::AllCpu);
    let Outcome::Infeasible(infeasible) = infeasible else {
        panic!("all layers on the CPU take the longest");
    };
    let Goal::MaxAccuracy { within } = goal else {
        panic!("a time limit");
    };
    let time = problem
        .times()
        .time(&PackedPlacement::all_cpu(6).expect("few layers"));
    assert_eq!(
        infeasible.to_string(),
        format!(
            "all-cpu has no plan for the highest accuracy within {within}: its placement 000000 takes {} at accuracy \
             {BASELINE:.4}; another algorithm may have one",
            time.total()
        )
    );
}

const REASONS: [&str; 7] = [
    "layer 1 (conv1) runs on the CPU: on the NPU the time would change by -4.586 ms and the accuracy by -0.0332, which is worse",
    "layer 2 (conv2) runs on the CPU: on the NPU the time would change by +4.238 ms and the accuracy by -0.0299, which is worse",
    "layer 3 (conv3) runs on the CPU: on the NPU the time would change by -5.814 ms and the accuracy by -0.0711, which is worse",
    "layer 4 (conv4) runs on the NPU: on the CPU the time would change by +23.71 ms and the accuracy by +0.0352, which breaks the limit",
    "layer 5 (conv5) runs on the NPU: on the CPU the time would change by +27.70 ms and the accuracy by -0.0001, which breaks the limit",
    "layer 6 (conv6) runs on the CPU: on the NPU the time would change by -5.116 ms and the accuracy by -0.0655, which is worse",
    "exactly this combination was measured: its accuracy is 0.7647, predicted 0.7589",
];
