//! Wrong use is refused, in one sentence that says what to do.

use crate::planted;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::regress::{GbrtSettings, Grid, MlpSettings, RidgeSettings, Settings};
use layerlab_planners::times::TimeTable;
use layerlab_planners::{
    AccuracyRow, AccuracyTable, Algorithm, Goal, Problem, Set, plan, plan_keeping,
};
use layerlab_profiles::Nanos;
use planted::Planted;

fn row(bits: &str, set: Set, loss: f64) -> AccuracyRow {
    AccuracyRow {
        combination: bits.parse().expect("zeros and ones"),
        set,
        loss,
        loss_ci95: None,
    }
}

/// The sentence of an error.
fn sentence<T, E: std::error::Error>(result: Result<T, E>) -> String {
    let error = result.err().expect("refused");
    let text = error.to_string();
    assert!(
        !text.is_empty() && !text.ends_with('.') && !text.contains('\n'),
        "{text}"
    );
    text
}

#[test]
fn goals_that_make_no_sense_are_refused() {
    let planted = Planted::new(5, 1);
    let problem = planted.known();
    let ask = |goal, algorithm| sentence(plan(&problem, goal, algorithm));
    let within = |within| Goal::MaxAccuracy { within };
    let at_least = |at_least| Goal::MinTime { at_least };
    let mlmp = Algorithm::Mlmp;
    assert_eq!(
        ask(within(Nanos::ZERO), mlmp),
        "the time limit is 0; give the time that one inference may take"
    );
    assert_eq!(
        ask(at_least(0.81), mlmp),
        "the accuracy requirement 0.81 is above the model's own accuracy 0.8, which it has with all layers on the CPU"
    );
    for odd in [-0.1, 60.0, f64::NAN] {
        assert!(ask(at_least(odd), mlmp).contains("must be a fraction between 0 and 1"));
    }
    assert_eq!(
        sentence(plan_keeping(
            &problem,
            at_least(0.5),
            Algorithm::MlmpPaper,
            Some(0)
        )),
        "mlmp-paper is to keep 0 triples per step; keep at least 1"
    );
    assert_eq!(
        sentence(plan_keeping(&problem, at_least(0.5), mlmp, Some(50))),
        "mlmp keeps no triples, so that there is nothing to say how many; K is of mlmp-paper"
    );
    let large = Planted::new(21, 1).known();
    assert_eq!(
        sentence(plan(&large, at_least(0.5), Algorithm::Exhaustive)),
        "the model has 21 layers; all placements are tried up to 20"
    );
    assert_eq!(
        sentence("simplex".parse::<Algorithm>()),
        "`simplex` is no algorithm; use all-cpu, all-npu, heuristic, mlmp-paper, mlmp, fastest or exhaustive"
    );
}

#[test]
fn rows_that_are_no_measurement_are_refused() {
    let singles = || {
        vec![
            row("10", Set::Reference, 0.1),
            row("01", Set::Reference, 0.2),
        ]
    };
    let with = |more: Vec<AccuracyRow>| {
        let rows = [singles(), more].concat();
        sentence(AccuracyTable::new(2, 0.8, rows))
    };
    assert!(sentence(AccuracyTable::new(2, 0.8, Vec::new())).contains("no measured combinations"));
    assert!(sentence(AccuracyTable::new(2, 1.2, singles())).contains("above 0 and at most 1"));
    assert!(sentence(AccuracyTable::new(2, f64::NAN, singles())).contains("above 0 and at most 1"));
    assert_eq!(
        with(vec![row("110", Set::Train, 0.1)]),
        "the combination 110 has 3 layers, the model 2"
    );
    assert_eq!(
        with(vec![row("11", Set::Train, f64::NAN)]),
        "the loss of 11 is NaN; a loss lies between -1 and 1"
    );
    let odd = AccuracyRow {
        loss_ci95: Some((0.2, 0.3)),
        ..row("11", Set::Train, 0.1)
    };
    assert_eq!(
        with(vec![odd]),
        "the interval 0.2 to 0.3 of 11 does not contain its loss 0.1"
    );
    assert!(with(vec![row("11", Set::Train, 0.1), row("11", Set::Test, 0.1)]).contains("twice"));
    assert!(with(vec![row("10", Set::Train, 0.3)]).contains("twice"));
    let alone = vec![row("10", Set::Reference, 0.1)];
    assert!(sentence(AccuracyTable::new(2, 0.8, alone)).contains("layer 2 alone"));
    let again = [singles(), vec![row("10", Set::Train, 0.1)]].concat();
    assert!(
        AccuracyTable::new(2, 0.8, again).is_ok(),
        "a sample may be a single layer"
    );
}

#[test]
fn models_that_cannot_be_trained_are_refused() {
    let planted = Planted::with_rows(6, 1, 40);
    let train = |settings| {
        sentence(AccuracyModel::with(
            &planted.layers,
            &planted.table,
            settings,
        ))
    };
    let penalty = |penalty| train(Settings::Ridge(RidgeSettings { penalty }));
    assert_eq!(penalty(0.0), "the penalty is 0; it must be above 0");
    assert!(penalty(f64::NAN).contains("it must be above 0"));
    let mlp = MlpSettings {
        hidden: (4, 0),
        penalty: 1.0,
        iterations: 10,
        seed: 0,
    };
    assert!(train(Settings::Mlp(mlp)).contains("neurons"));
    let gbrt = |trees, depth, learning_rate| {
        train(Settings::Gbrt(GbrtSettings {
            trees,
            depth,
            learning_rate,
        }))
    };
    assert!(gbrt(0, 3, 0.1).contains("number of trees"));
    assert!(gbrt(10, 9, 0.1).contains("1 to 8"));
    assert!(gbrt(10, 3, 1.5).contains("at most 1"));
    let few = Planted::with_rows(6, 1, 6);
    let grid = Grid::default();
    assert!(
        sentence(AccuracyModel::train(&few.layers, &few.table, &grid))
            .contains("cross-validation needs")
    );
    let none = Planted::new(6, 1);
    assert!(
        sentence(AccuracyModel::train(&none.layers, &none.table, &grid))
            .contains("nothing to learn")
    );
    let no_kinds = Grid {
        kinds: Vec::new(),
        ..Grid::default()
    };
    assert!(
        sentence(AccuracyModel::train(
            &planted.layers,
            &planted.table,
            &no_kinds
        ))
        .contains("no kind")
    );
}

#[test]
fn tables_of_different_models_are_refused() {
    let (small, large) = (Planted::with_rows(5, 1, 30), Planted::new(6, 1));
    let settings = Settings::Ridge(RidgeSettings { penalty: 1.0 });
    let model = AccuracyModel::with(&small.layers, &small.table, settings).expect("trains");
    let problem = Problem::new(
        &small.layers,
        large.times(),
        &small.table,
        Box::new(model.clone()),
    );
    assert!(
        sentence(problem.map(|_| ()))
            .contains("the layer table has 5 layers and the times are of 6")
    );
    let problem = Problem::new(&large.layers, large.times(), &small.table, Box::new(model));
    assert!(sentence(problem.map(|_| ())).contains("5 single-layer losses for 6 layers"));
    let times = TimeTable::new(small.cpu.clone(), large.npu.clone(), None);
    assert!(sentence(times).contains("5 layers and the NPU's 6"));
    let mut npu = small.npu.clone();
    npu[2].to_processor = None;
    assert!(
        sentence(TimeTable::new(small.cpu.clone(), npu, None))
            .contains("layer 3 has no transfer time")
    );
    assert!(sentence(PackedPlacement::all_cpu(300)).contains("the planners take 1 to 256"));
}
