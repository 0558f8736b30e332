//! Does a split keep the accuracy that is required of it? Its placement is made again from what runs where, and the accuracy of
//! that calculated from the raw tables by [`crate::check`], which shares nothing with the planners.

use layerlab_profiles::{Placement, Segment};

use crate::check::{Evidence, Fault, checked_accuracy, impossible, is_near, is_same_interval};
use crate::edge::accurate::AccurateSplit;
use crate::edge::placed_group::PlacedGroup;
use crate::edge::side::Side;

/// What is wrong with the accuracy of a split.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccuracyFault {
    /// Nothing is known of the accuracy of what a processor of the phone computes.
    #[error("{segment} runs on a processor of the phone that placements have no digit for")]
    NoDigit {
        /// The group.
        segment: Segment,
    },
    /// The accuracy is that of another placement.
    #[error("the accuracy is said to be that of {said}, and what runs is {found}")]
    Placement {
        /// What is said.
        said: Placement,
        /// What the groups are.
        found: Placement,
    },
    /// A processor cannot run its layers, or its memory does not hold them.
    #[error("{0}")]
    Impossible(Box<Fault>),
    /// The accuracy is wrong.
    #[error("the accuracy is said to be {said}, and is {found}")]
    Accuracy {
        /// What is said.
        said: f64,
        /// What it is.
        found: f64,
    },
    /// The interval of the accuracy is wrong.
    #[error("the accuracy's interval is said to be {said:?}, and is {found:?}")]
    Interval {
        /// What is said.
        said: Option<(f64, f64)>,
        /// What it is.
        found: Option<(f64, f64)>,
    },
    /// The required accuracy is not kept with the confidence that is asked for.
    #[error("the accuracy is at least {least}, below the {at_least} that are required")]
    Limit {
        /// What is required.
        at_least: f64,
        /// What the accuracy is at least.
        least: f64,
    },
}

/// Calculates the accuracy of a split again: `digit` says which digit of placements the processor has that a group on the phone
/// runs on. Empty where it is what it is said to be, and enough.
pub fn check_accuracy(
    split: &AccurateSplit,
    digit: impl Fn(&PlacedGroup) -> Option<u8>,
    evidence: &Evidence,
) -> Vec<AccuracyFault> {
    let mut digits: Vec<u8> = Vec::new();
    for placed in split.plan().groups() {
        let here = match placed.side {
            // A server's 32-bit floats are the reference CPU's.
            Side::Server => Some(0),
            Side::Phone => digit(placed),
        };
        let Some(here) = here else {
            let segment = placed.segment;
            return vec![AccuracyFault::NoDigit { segment }];
        };
        digits.extend(std::iter::repeat_n(here, placed.segment.layers() as usize));
    }
    let found = Placement::new(digits);
    if found != *split.placement() {
        let said = split.placement().clone();
        return vec![AccuracyFault::Placement { said, found }];
    }
    if let Some(fault) = impossible(&found, evidence) {
        return vec![AccuracyFault::Impossible(Box::new(fault))];
    }
    let (mut faults, said) = (Vec::new(), split.accuracy());
    let found = checked_accuracy(&found, split.confidence(), evidence);
    if !is_near(said.value, found.value) {
        let (said, found) = (said.value, found.value);
        faults.push(AccuracyFault::Accuracy { said, found });
    }
    if !is_same_interval(said.interval, found.interval) {
        let (said, found) = (said.interval, found.interval);
        faults.push(AccuracyFault::Interval { said, found });
    }
    let (at_least, least) = (split.at_least(), found.least);
    // Which side of the limit it is on may be a question of rounding.
    if least < at_least && !is_near(least, at_least) {
        faults.push(AccuracyFault::Limit { at_least, least });
    }
    faults
}
