//! A row of `cuts.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use super::unresolved::{self, COST};
use crate::document::{self, Method, Origin, RowError};
use crate::summary::Estimate;
use crate::units::SignedNanos;

pub(in crate::document) const CUTS: Table = Table {
    file: "cuts.csv",
    columns: &[
        "after_layer",
        "processor",
        "cost_ns",
        "cost_ci95_low_ns",
        "cost_ci95_high_ns",
        "unresolved",
        "method",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct CutRecord<'a> {
    after_layer: u32,
    processor: Cow<'a, str>,
    cost_ns: SignedNanos,
    cost_ci95_low_ns: Option<SignedNanos>,
    cost_ci95_high_ns: Option<SignedNanos>,
    unresolved: String,
    method: Method,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a document::CutRow, Origin)> for CutRecord<'a> {
    fn from((row, origin): (&'a document::CutRow, Origin)) -> Self {
        let (low, high) = row.cost.ci95.unzip();
        CutRecord {
            after_layer: row.after_layer,
            processor: Cow::Borrowed(&row.processor),
            cost_ns: row.cost.value,
            cost_ci95_low_ns: low,
            cost_ci95_high_ns: high,
            unresolved: unresolved::text(&[(COST, Some(row.cost))]),
            method: row.method,
            origin,
        }
    }
}

impl TryFrom<CutRecord<'_>> for document::CutRow {
    type Error = RowError;
    fn try_from(row: CutRecord<'_>) -> Result<Self, RowError> {
        let ci95 = match (row.cost_ci95_low_ns, row.cost_ci95_high_ns) {
            (Some(low), Some(high)) => Some((low, high)),
            (None, None) => None,
            _ => return Err(RowError::HalfInterval { value: COST }),
        };
        let cost = Estimate {
            value: row.cost_ns,
            ci95,
        };
        unresolved::refuse_other_text(&row.unresolved, &[(COST, Some(cost))])?;
        Ok(document::CutRow {
            after_layer: row.after_layer,
            processor: row.processor.into_owned(),
            cost,
            method: row.method,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn row() -> document::CutRow {
        document::CutRow {
            after_layer: 1,
            processor: "npu".to_owned(),
            cost: Estimate::normal(SignedNanos::from_nanos(5), Some(4.0)),
            method: Method::Graph,
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        assert_columns_are_fields(CUTS, CutRecord::from((&row(), Origin::Derived)));
    }

    #[test]
    fn a_cut_comes_back_from_its_row_and_says_that_it_is_unresolved() {
        let row = row();
        let wire = CutRecord::from((&row, Origin::Derived));
        assert_eq!(wire.unresolved, "cost");
        assert_eq!(document::CutRow::try_from(wire).expect("just made"), row);
    }

    #[test]
    fn half_an_interval_and_a_wrong_mark_are_refused() {
        let row = row();
        let mut wire = CutRecord::from((&row, Origin::Derived));
        wire.cost_ci95_low_ns = None;
        assert!(document::CutRow::try_from(wire).is_err());
        let mut wire = CutRecord::from((&row, Origin::Derived));
        wire.unresolved.clear();
        assert!(document::CutRow::try_from(wire).is_err());
    }
}
