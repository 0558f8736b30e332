//! The times that a gate tests: of layers, of cuts and of the whole model. Where published times are medians and visits tell
//! how robust times of the same samples err, these are tested in their place, for they err less (docs/method.md §8).

use super::{Candidate, GatedNumber};
use crate::compare::{CompareError, ROUNDING_NS, names, pairs};
use crate::derive::graph::ErrorVariance;
use crate::document::{KnownErrors, Profile};

/// The times that both profiles have with an error, and how many they have without one. A layer whose compute time contains
/// other transfers in one of them, because a neighbour cannot run there, is left out.
pub(super) fn candidates(
    one: &Profile,
    other: &Profile,
) -> Result<(Vec<Candidate>, usize), CompareError> {
    let mut found = Vec::new();
    for processor in names(one).filter(|name| names(other).any(|known| known == *name)) {
        let errors = [one.known_errors(processor), other.known_errors(processor)];
        let alike = divided_alike(one, other, processor);
        let is_alike = one.supported(processor) == other.supported(processor);
        for (row, counterpart) in pairs(one, other, processor) {
            let includes = [row, counterpart].map(|row| row.time.compute_includes);
            if includes[0] != includes[1] {
                if !is_alike {
                    continue;
                }
                return Err(CompareError::DifferentMeaning {
                    layer: row.layer,
                    processor: processor.to_owned(),
                });
            }
            let number = GatedNumber::Layer {
                processor: processor.to_owned(),
                layer: row.layer,
            };
            let robust = errors.each_ref().map(|known| known.robust_layer(row.layer));
            if let [Some(ours), Some(theirs)] = robust {
                let of = [Some(ours.1), Some(theirs.1)];
                found.push(candidate(number, [ours.0, theirs.0], of));
                continue;
            }
            let computed = alike
                .as_ref()
                .map(|alike| alike.each_ref().map(|known| known.compute(row.layer)));
            if let Some([Some(ours), Some(theirs)]) = computed {
                let of = [Some(ours.1), Some(theirs.1)];
                found.push(candidate(number, [ours.0, theirs.0], of));
                continue;
            }
            let values = [row, counterpart].map(|row| row.time.compute.value.as_nanos() as f64);
            let of = [
                errors[0].of_layer(row).compute,
                errors[1].of_layer(counterpart).compute,
            ];
            found.push(candidate(number, values, of));
        }
        let of_processor = |profile: &'_ Profile| {
            let rows = profile.cuts.iter();
            rows.filter(|row| row.processor == processor)
                .cloned()
                .collect::<Vec<_>>()
        };
        let counterparts = of_processor(other);
        for row in of_processor(one) {
            let mut same = counterparts.iter();
            let Some(counterpart) = same.find(|found| found.after_layer == row.after_layer) else {
                continue;
            };
            let number = GatedNumber::Cut {
                processor: processor.to_owned(),
                after_layer: row.after_layer,
            };
            let values = [&row, counterpart].map(|row| row.cost.value.as_nanos() as f64);
            let of = [errors[0].of_cut(&row), errors[1].of_cut(counterpart)];
            found.push(candidate(number, values, of));
        }
        let robust = errors.each_ref().map(KnownErrors::robust_whole);
        let whole = match robust {
            [Some(ours), Some(theirs)] => [Some(ours), Some(theirs)],
            _ => errors.each_ref().map(KnownErrors::whole),
        };
        if let [Some(ours), Some(theirs)] = whole {
            let number = GatedNumber::Whole {
                processor: processor.to_owned(),
            };
            let of = [Some(ours.1), Some(theirs.1)];
            found.push(candidate(number, [ours.0, theirs.0], of));
        }
    }
    let all = found.len();
    let known: Vec<Candidate> = found.into_iter().flatten().collect();
    let untested = all - known.len();
    Ok((known, untested))
}

/// How the cost of a cut divides into moving in and out is the device's, and changes no T(L): the layers of both profiles are
/// taken as the first one's probes divide the cuts, so that what probes do not know of them cancels; and half and half where the
/// probes of one of them did not say. Nothing where both are half and half already, or not by least squares.
fn divided_alike<'a>(
    one: &'a Profile,
    other: &'a Profile,
    processor: &'a str,
) -> Option<[KnownErrors<'a>; 2]> {
    let moving = [one, other].map(|profile| profile.moving_of_times(processor));
    let moving = match moving {
        [None, None] => return None,
        [Some(ours), Some(_)] => Some(ours.without_error()),
        _ => None,
    };
    Some([
        one.known_errors_divided(processor, moving.clone())?,
        other.known_errors_divided(processor, moving)?,
    ])
}

/// `None` where one of the two has no interval.
fn candidate(
    number: GatedNumber,
    [one, other]: [f64; 2],
    errors: [Option<ErrorVariance>; 2],
) -> Option<Candidate> {
    let [Some(ours), Some(theirs)] = errors else {
        return None;
    };
    Some(Candidate {
        number,
        one,
        other,
        worse: other - one,
        errors: [ours, theirs],
        between: None,
        rounding: ROUNDING_NS as f64,
    })
}
