//! The checker finds each number of an accuracy that is not the one that was planned with.

use layerlab_planners::check::Evidence;
use layerlab_planners::edge::{
    AccuracyFault, AccurateSplit, SplitAlgorithm, SplitGoal, SplitLimits, check_accuracy,
    split_accurately,
};
use layerlab_planners::{AccuracyTable, UnsupportedSegment};
use layerlab_profiles::Segment;

use crate::placed::Placed;

/// A split whose phone uses both of its processors.
fn planned(at_least: f64) -> (Placed, AccurateSplit) {
    let goal = SplitGoal {
        minimise: layerlab_planners::edge::Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let found = (0..200).map(|seed| 4 * seed + 3).find_map(|seed| {
        let placed = Placed::new(8, 2, seed);
        let limit = placed.limit(at_least);
        let outcome = split_accurately(
            &placed.placed_problem(),
            &limit,
            goal,
            SplitAlgorithm::Joint,
        );
        let split = outcome.expect("sensible").split()?.clone();
        let is_rich = split.placement().processors().contains(&1)
            && split.plan().pattern().len() > 1
            && !split.accuracy().is_measured;
        is_rich.then_some((placed, split))
    });
    found.expect("some plan uses everything")
}

fn faults(placed: &Placed, split: &AccurateSplit) -> Vec<AccuracyFault> {
    placed.with_evidence(|evidence| check_accuracy(split, Placed::digit_of(split), evidence))
}

#[test]
fn a_group_on_another_processor_is_found() {
    let (placed, split) = planned(0.4);
    assert_eq!(faults(&placed, &split), []);
    let said = split.placement().clone();
    placed.with_evidence(|evidence| {
        let found = check_accuracy(&split, |_| Some(0), evidence);
        let found = &found[..];
        assert!(
            matches!(found, [AccuracyFault::Placement { said: one, found }]
                if *one == said && found.is_all_on(0)),
            "{found:?}"
        );
        let found = check_accuracy(&split, |_| None, evidence);
        assert!(
            matches!(found[..], [AccuracyFault::NoDigit { .. }]),
            "{found:?}"
        );
    });
}

#[test]
fn every_number_that_the_accuracy_comes_from_counts() {
    let (placed, split) = planned(0.4);
    placed.with_evidence(|evidence| {
        let rows = evidence.accuracy.rows().to_vec();
        let layers = evidence.layers.len();
        let check = |evidence: &Evidence| check_accuracy(&split, Placed::digit_of(&split), evidence);
        // Another accuracy of the reference CPU is another one of everything.
        let table = |baseline| AccuracyTable::new(layers, baseline, rows.clone()).expect("rows");
        let lower = table(evidence.accuracy.baseline() - 0.05);
        let found = check(&Evidence {
            accuracy: &lower,
            ..*evidence
        });
        assert!(
            matches!(found[0], AccuracyFault::Accuracy { said, found } if (said - found - 0.05).abs() < 1e-9),
            "{found:?}"
        );
        assert!(matches!(found[1], AccuracyFault::Interval { .. }), "{found:?}");
        // So low that the requirement is not kept either.
        let lower = table(0.3);
        let found = check(&Evidence {
            accuracy: &lower,
            ..*evidence
        });
        assert!(
            matches!(found[..], [.., AccuracyFault::Limit { at_least: 0.4, .. }]),
            "{found:?}"
        );
        // A processor that cannot run what it is to run.
        let mut processors = evidence.processors.to_vec();
        let digits = split.placement().processors();
        let there = (1..).zip(digits).find(|(_, digit)| **digit == 1);
        let layer: u32 = there.expect("the NPU is used").0;
        processors[1].unsupported.push(UnsupportedSegment {
            segment: Segment::new(layer, layer).expect("one layer"),
            reason: "it has no Elu".to_owned(),
        });
        let found = check(&Evidence {
            processors: &processors,
            ..*evidence
        });
        assert!(
            matches!(found[..], [AccuracyFault::Impossible(_)]),
            "{found:?}"
        );
    });
}
