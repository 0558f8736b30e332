//! The checker finds what is wrong: an outcome held against tables that it was not made from.

use crate::planted;

use layerlab_planners::check::{Evidence, Fault, Loss, check};
use layerlab_planners::regress::{RidgeSettings, Settings};
use layerlab_planners::sweep::{accuracy_limits, time_limits};
use layerlab_planners::{
    AccuracyModel, AccuracyRow, AccuracyTable, Algorithm, Confidence, Goal, Outcome, Set, plan,
};
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Placement, SignedNanos};
use planted::{Planted, pair};

const MLMP: Algorithm = Algorithm::Mlmp;

/// The faults of an outcome where everything is as it was, but for what `change` changes.
fn faults(planted: &Planted, outcome: &Outcome, change: impl FnOnce(&mut Tables)) -> Vec<Fault> {
    let mut tables = Tables {
        cpu: planted.cpu.clone(),
        npu: planted.npu.clone(),
        accuracy: planted.table.clone(),
        more_loss: 0.0,
    };
    change(&mut tables);
    let formula = |combination: &Placement| planted.loss(combination) + tables.more_loss;
    let evidence = Evidence {
        layers: &planted.layers,
        processors: &pair(&tables.cpu, &tables.npu),
        accuracy: &tables.accuracy,
        loss: Loss::Formula(&formula),
    };
    check(outcome, &evidence)
}

struct Tables {
    cpu: Vec<LayerTime>,
    npu: Vec<LayerTime>,
    accuracy: AccuracyTable,
    more_loss: f64,
}

fn slower(times: &mut [LayerTime], nanos: i64) {
    for time in times {
        time.compute.value = time.compute.value + SignedNanos::from_nanos(nanos);
    }
}

fn mixed() -> (Planted, [Outcome; 2]) {
    let planted = Planted::new(10, 11);
    let problem = planted.known();
    let goals = [time_limits(&problem, 5)[2], accuracy_limits(&problem, 5)[2]];
    let outcomes = goals.map(|goal| plan(&problem, goal, MLMP).expect("sensible"));
    for outcome in &outcomes {
        let processors = outcome.plan().expect("feasible").combination().processors();
        assert!(processors.contains(&0) && processors.contains(&1));
    }
    (planted, outcomes)
}

#[test]
fn a_plan_that_is_what_it_says_has_no_fault() {
    let (planted, outcomes) = mixed();
    for outcome in &outcomes {
        assert_eq!(faults(&planted, outcome, |_| ()), []);
    }
}

#[test]
fn another_time_is_noticed_even_by_a_nanosecond() {
    let (planted, outcomes) = mixed();
    for outcome in &outcomes {
        for change in [
            |tables: &mut Tables| slower(&mut tables.cpu, 1),
            |tables: &mut Tables| slower(&mut tables.npu, -1),
            // Moved from one processor to the other, the sum staying the same.
            |tables: &mut Tables| {
                slower(&mut tables.cpu, 1);
                slower(&mut tables.npu, -1);
            },
        ] {
            let faults = faults(&planted, outcome, change);
            assert!(
                faults
                    .iter()
                    .any(|fault| matches!(fault, Fault::Time { .. })),
                "{faults:?}"
            );
        }
    }
}

#[test]
fn broken_limits_other_accuracies_and_missing_tables_are_noticed() {
    let (planted, [accurate, fast]) = mixed();
    let found = faults(&planted, &accurate, |tables| {
        slower(&mut tables.cpu, 1_000_000_000)
    });
    assert!(
        found
            .iter()
            .any(|fault| matches!(fault, Fault::TooSlow { .. })),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|fault| matches!(fault, Fault::Interval { .. })),
        "{found:?}"
    );
    let found = faults(&planted, &fast, |tables| tables.more_loss = 1e-6);
    assert!(matches!(found[..], [Fault::Accuracy { .. }]), "{found:?}");
    let found = faults(&planted, &fast, |tables| tables.more_loss = f64::NAN);
    assert!(matches!(found[..], [Fault::Accuracy { .. }]), "{found:?}");
    let found = faults(&planted, &fast, |tables| tables.npu.truncate(3));
    assert!(matches!(found[..], [Fault::Tables { .. }]), "{found:?}");
}

#[test]
fn a_false_infeasible_is_noticed() {
    let planted = Planted::new(10, 11);
    let problem = planted.known();
    let [tight, ..] = time_limits(&problem, 2)[..] else {
        panic!("two limits");
    };
    let Goal::MaxAccuracy { within } = tight else {
        panic!("time limits");
    };
    let within = layerlab_profiles::Nanos::from_nanos(within.as_nanos() - 1);
    let outcome = plan(&problem, Goal::MaxAccuracy { within }, MLMP).expect("sensible");
    assert!(outcome.plan().is_none());
    assert_eq!(faults(&planted, &outcome, |_| ()), []);
    let found = faults(&planted, &outcome, |tables| {
        slower(&mut tables.cpu, -10);
        slower(&mut tables.npu, -10);
    });
    assert!(
        found
            .iter()
            .any(|fault| matches!(fault, Fault::FeasibleAfterAll { .. })),
        "{found:?}"
    );
    let outcome = plan(&problem, tight, Algorithm::AllCpu).expect("sensible");
    let found = faults(&planted, &outcome, |tables| {
        slower(&mut tables.cpu, -1_000_000_000)
    });
    assert!(
        found
            .iter()
            .any(|fault| matches!(fault, Fault::FeasibleAfterAll { .. })),
        "{found:?}"
    );
    let outcome = plan(&problem, Goal::MaxAccuracy { within }, MLMP).expect("sensible");
    let found = faults(&planted, &outcome, |tables| {
        slower(&mut tables.cpu, -1_000_000_000)
    });
    assert!(
        found
            .iter()
            .any(|fault| matches!(fault, Fault::NotFastest { .. })),
        "{found:?}"
    );
}

#[test]
fn a_measured_accuracy_that_nobody_measured_is_noticed() {
    let planted = Planted::with_rows(5, 3, 31);
    let problem = planted.known();
    let goal = accuracy_limits(&problem, 5)[2];
    let outcome = plan(&problem, goal, MLMP).expect("sensible");
    let said = outcome.plan().expect("feasible").measured_accuracy();
    let said = said.expect("all placements were measured");
    let found = faults(&planted, &outcome, |tables| {
        let rows = tables
            .accuracy
            .rows()
            .iter()
            .filter(|row| row.set == Set::Reference);
        let singles: Vec<AccuracyRow> = rows.take(5).cloned().collect();
        tables.accuracy = AccuracyTable::new(5, planted::BASELINE, singles).expect("all singles");
    });
    assert!(matches!(found[..], [Fault::Measured { .. }]), "{found:?}");
    assert_eq!(
        found[0].to_string(),
        format!("the accuracy {said} is said to be measured and is not in the table")
    );
}

#[test]
fn other_intervals_and_a_limit_that_is_not_kept_with_confidence_are_noticed() {
    let planted = Planted::with_rows(8, 11, 300);
    let problem = planted.known().with_confidence(Some(Confidence::USUAL));
    let goals = [time_limits(&problem, 5)[2], accuracy_limits(&problem, 5)[2]];
    let [accurate, fast] = goals.map(|goal| plan(&problem, goal, MLMP).expect("sensible"));
    for outcome in [&accurate, &fast] {
        assert!(outcome.plan().expect("feasible").keeps_limit());
        assert_eq!(faults(&planted, outcome, |_| ()), []);
    }
    let found = faults(&planted, &accurate, |tables| {
        for time in tables.cpu.iter_mut().chain(&mut tables.npu) {
            let value = time.compute.value;
            time.compute = Estimate::normal(value, Some(value.as_nanos() as f64));
        }
    });
    assert!(
        matches!(
            found[..],
            [Fault::Interval { .. }, Fault::KeepsLimit { said: true }]
        ),
        "{found:?}"
    );
    assert_eq!(
        found[1].to_string(),
        "the limit is said to be kept with the plan's confidence, and by the tables it is not kept"
    );
    let found = faults(&planted, &fast, |tables| {
        let mut rows = tables.accuracy.rows().to_vec();
        for row in &mut rows {
            row.loss_ci95 = Some((row.loss, row.loss + 0.5));
        }
        tables.accuracy = AccuracyTable::new(8, planted::BASELINE, rows).expect("all singles");
    });
    assert!(
        matches!(
            found[..],
            [
                Fault::AccuracyInterval { .. },
                Fault::KeepsLimit { said: true }
            ]
        ),
        "{found:?}"
    );
}

#[test]
fn intervals_of_predictions_are_those_of_the_models_errors() {
    let planted = Planted::with_rows(12, 7, 300);
    let model = planted.train(Settings::Ridge(RidgeSettings { penalty: 1.0 }));
    let confidence = Confidence::of(0.8).expect("a share");
    let problem = planted.learnt(&model).with_confidence(Some(confidence));
    let goals = [time_limits(&problem, 9), accuracy_limits(&problem, 9)].concat();
    let mut predicted = 0;
    for goal in goals {
        let outcome = planted.plan(&problem, Some(&model), goal, MLMP);
        let Some(plan) = outcome.plan().filter(|plan| !plan.accuracy().is_measured) else {
            continue;
        };
        predicted += 1;
        let settings = model.settings();
        let without = AccuracyModel::with(&planted.layers, &planted.table, settings);
        let without = without.expect("trains");
        let evidence = Evidence {
            layers: &planted.layers,
            processors: &pair(&planted.cpu, &planted.npu),
            accuracy: &planted.table,
            loss: Loss::Model(&without),
        };
        let found = check(&outcome, &evidence);
        assert!(
            matches!(found[0], Fault::AccuracyInterval { found: None, .. }),
            "{plan:?}: {found:?}"
        );
    }
    assert!(predicted > 0);
}
