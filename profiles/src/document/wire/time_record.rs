//! A row of `times.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::unresolved::{self, COMPUTE};
use super::{JOINT, Table};
use crate::derive::{Includes, LayerTime};
use crate::document::{LayerTimeRow, Method, Origin, RowError};
use crate::summary::Estimate;
use crate::units::SignedNanos;

pub(in crate::document) const TIMES: Table = Table {
    file: "times.csv",
    columns: &[
        "layer",
        "processor",
        "compute_ns",
        "compute_ci95_low_ns",
        "compute_ci95_high_ns",
        "compute_includes",
        "to_processor_ns",
        "to_processor_ci95_low_ns",
        "to_processor_ci95_high_ns",
        "from_processor_ns",
        "from_processor_ci95_low_ns",
        "from_processor_ci95_high_ns",
        "unresolved",
        "method",
        "origin",
    ],
};

const TO_PROCESSOR: &str = "to_processor";
const FROM_PROCESSOR: &str = "from_processor";

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct TimeRecord<'a> {
    layer: u32,
    processor: Cow<'a, str>,
    compute_ns: SignedNanos,
    compute_ci95_low_ns: Option<SignedNanos>,
    compute_ci95_high_ns: Option<SignedNanos>,
    compute_includes: String,
    to_processor_ns: Option<SignedNanos>,
    to_processor_ci95_low_ns: Option<SignedNanos>,
    to_processor_ci95_high_ns: Option<SignedNanos>,
    from_processor_ns: Option<SignedNanos>,
    from_processor_ci95_low_ns: Option<SignedNanos>,
    from_processor_ci95_high_ns: Option<SignedNanos>,
    unresolved: String,
    method: Method,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a LayerTimeRow, Origin)> for TimeRecord<'a> {
    fn from((row, origin): (&'a LayerTimeRow, Origin)) -> Self {
        let LayerTime {
            compute,
            compute_includes,
            to_processor,
            from_processor,
        } = row.time;
        TimeRecord {
            layer: row.layer,
            processor: Cow::Borrowed(&row.processor),
            compute_ns: compute.value,
            compute_ci95_low_ns: compute.ci95.map(|(low, _)| low),
            compute_ci95_high_ns: compute.ci95.map(|(_, high)| high),
            compute_includes: includes_to_text(compute_includes),
            to_processor_ns: to_processor.map(|transfer| transfer.value),
            to_processor_ci95_low_ns: low(to_processor),
            to_processor_ci95_high_ns: high(to_processor),
            from_processor_ns: from_processor.map(|transfer| transfer.value),
            from_processor_ci95_low_ns: low(from_processor),
            from_processor_ci95_high_ns: high(from_processor),
            unresolved: unresolved::text(&[
                (COMPUTE, Some(compute)),
                (TO_PROCESSOR, to_processor),
                (FROM_PROCESSOR, from_processor),
            ]),
            method: row.method,
            origin,
        }
    }
}

impl TryFrom<TimeRecord<'_>> for LayerTimeRow {
    type Error = RowError;
    fn try_from(row: TimeRecord<'_>) -> Result<Self, RowError> {
        let compute = estimate(
            COMPUTE,
            Some(row.compute_ns),
            row.compute_ci95_low_ns,
            row.compute_ci95_high_ns,
        )?;
        let to_processor = estimate(
            TO_PROCESSOR,
            row.to_processor_ns,
            row.to_processor_ci95_low_ns,
            row.to_processor_ci95_high_ns,
        )?;
        let from_processor = estimate(
            FROM_PROCESSOR,
            row.from_processor_ns,
            row.from_processor_ci95_low_ns,
            row.from_processor_ci95_high_ns,
        )?;
        unresolved::refuse_other_text(
            &row.unresolved,
            &[
                (COMPUTE, compute),
                (TO_PROCESSOR, to_processor),
                (FROM_PROCESSOR, from_processor),
            ],
        )?;
        Ok(LayerTimeRow {
            layer: row.layer,
            processor: row.processor.into_owned(),
            time: LayerTime {
                compute: compute.ok_or(RowError::HalfInterval { value: COMPUTE })?,
                compute_includes: includes_from_text(&row.compute_includes)?,
                to_processor,
                from_processor,
            },
            method: row.method,
        })
    }
}

fn low(estimate: Option<Estimate>) -> Option<SignedNanos> {
    Some(estimate?.ci95?.0)
}

fn high(estimate: Option<Estimate>) -> Option<SignedNanos> {
    Some(estimate?.ci95?.1)
}

fn estimate(
    column: &'static str,
    value: Option<SignedNanos>,
    low: Option<SignedNanos>,
    high: Option<SignedNanos>,
) -> Result<Option<Estimate>, RowError> {
    match (value, low, high) {
        (None, None, None) => Ok(None),
        (Some(value), None, None) => Ok(Some(Estimate { value, ci95: None })),
        (Some(value), Some(low), Some(high)) => Ok(Some(Estimate {
            value,
            ci95: Some((low, high)),
        })),
        _ => Err(RowError::HalfInterval { value: column }),
    }
}

fn includes_to_text(includes: Includes) -> String {
    let names = [
        (includes.to_processor, TO_PROCESSOR),
        (includes.from_processor, FROM_PROCESSOR),
    ];
    let present: Vec<&str> = names
        .into_iter()
        .filter_map(|(included, name)| included.then_some(name))
        .collect();
    present.join(JOINT)
}

fn includes_from_text(text: &str) -> Result<Includes, RowError> {
    [(false, false), (true, false), (false, true), (true, true)]
        .map(|(to_processor, from_processor)| Includes {
            to_processor,
            from_processor,
        })
        .into_iter()
        .find(|&includes| includes_to_text(includes) == text)
        .ok_or_else(|| RowError::Includes(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn row() -> LayerTimeRow {
        LayerTimeRow {
            layer: 1,
            processor: "npu".to_owned(),
            time: LayerTime {
                compute: Estimate::normal(SignedNanos::from_nanos(-5), Some(2.0)),
                compute_includes: Includes {
                    to_processor: true,
                    from_processor: false,
                },
                to_processor: None,
                from_processor: Some(Estimate::normal(SignedNanos::from_nanos(9), None)),
            },
            method: Method::Differencing,
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        assert_columns_are_fields(TIMES, TimeRecord::from((&row(), Origin::Derived)));
    }

    #[test]
    fn a_time_comes_back_from_its_row() {
        let row = row();
        let wire = TimeRecord::from((&row, Origin::Derived));
        assert_eq!(LayerTimeRow::try_from(wire).expect("just made"), row);
    }

    #[test]
    fn an_interval_without_a_value_is_refused() {
        let row = row();
        let mut wire = TimeRecord::from((&row, Origin::Derived));
        wire.to_processor_ci95_low_ns = Some(SignedNanos::ZERO);
        wire.to_processor_ci95_high_ns = Some(SignedNanos::ZERO);
        assert!(LayerTimeRow::try_from(wire).is_err());
    }

    #[test]
    fn unknown_merged_transfers_are_refused() {
        for text in ["from_processor+to_processor", "both", " "] {
            assert!(includes_from_text(text).is_err(), "{text}");
        }
    }
}
