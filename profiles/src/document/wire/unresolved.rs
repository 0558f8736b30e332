//! The column `unresolved`: which numbers of a row cannot be told from zero. It follows from their
//! intervals, and is written so that nobody has to calculate it to notice.

use super::JOINT;
use crate::document::RowError;
use crate::summary::Estimate;

pub(super) const COMPUTE: &str = "compute";
pub(super) const COST: &str = "cost";

/// The names of the unresolved ones among these numbers.
pub(super) fn text(numbers: &[(&'static str, Option<Estimate>)]) -> String {
    let names: Vec<&str> = numbers
        .iter()
        .filter(|(_, estimate)| estimate.is_some_and(|estimate| estimate.is_unresolved()))
        .map(|(name, _)| *name)
        .collect();
    names.join(JOINT)
}

/// Refuses a row whose mark does not follow from its intervals.
pub(super) fn refuse_other_text(
    found: &str,
    numbers: &[(&'static str, Option<Estimate>)],
) -> Result<(), RowError> {
    let expected = text(numbers);
    if found == expected {
        Ok(())
    } else {
        Err(RowError::Unresolved {
            found: found.to_owned(),
            expected,
        })
    }
}
