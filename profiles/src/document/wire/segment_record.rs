//! A row of `segments.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{self, Origin, RowError};
use crate::segment::Segment;
use crate::summary::Summary;
use crate::units::Nanos;

pub(in crate::document) const SEGMENTS: Table = Table {
    file: "segments.csv",
    columns: &[
        "processor",
        "first_layer",
        "last_layer",
        "samples",
        "median_ns",
        "median_ci95_low_ns",
        "median_ci95_high_ns",
        "mad_ns",
        "p5_ns",
        "p95_ns",
        "min_ns",
        "max_ns",
        "histogram",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct SegmentRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    samples: u64,
    median_ns: Nanos,
    median_ci95_low_ns: Option<Nanos>,
    median_ci95_high_ns: Option<Nanos>,
    mad_ns: Nanos,
    p5_ns: Nanos,
    p95_ns: Nanos,
    min_ns: Nanos,
    max_ns: Nanos,
    histogram: Cow<'a, str>,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a document::SegmentRow, Origin)> for SegmentRecord<'a> {
    fn from((row, origin): (&'a document::SegmentRow, Origin)) -> Self {
        let summary = &row.summary;
        SegmentRecord {
            processor: Cow::Borrowed(&row.processor),
            first_layer: row.segment.first(),
            last_layer: row.segment.last(),
            samples: summary.count,
            median_ns: summary.median,
            median_ci95_low_ns: summary.median_ci95.map(|(low, _)| low),
            median_ci95_high_ns: summary.median_ci95.map(|(_, high)| high),
            mad_ns: summary.median_absolute_deviation,
            p5_ns: summary.p5,
            p95_ns: summary.p95,
            min_ns: summary.min,
            max_ns: summary.max,
            histogram: Cow::Borrowed(&row.histogram),
            origin,
        }
    }
}

impl TryFrom<SegmentRecord<'_>> for document::SegmentRow {
    type Error = RowError;
    fn try_from(row: SegmentRecord<'_>) -> Result<Self, RowError> {
        let median_ci95 = match (row.median_ci95_low_ns, row.median_ci95_high_ns) {
            (Some(low), Some(high)) => Some((low, high)),
            (None, None) => None,
            _ => return Err(RowError::HalfInterval { value: "median" }),
        };
        Ok(document::SegmentRow {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            summary: Summary {
                count: row.samples,
                median: row.median_ns,
                median_absolute_deviation: row.mad_ns,
                p5: row.p5_ns,
                p95: row.p95_ns,
                min: row.min_ns,
                max: row.max_ns,
                median_ci95,
            },
            histogram: row.histogram.into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn row() -> document::SegmentRow {
        document::SegmentRow {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            summary: Summary::of(&[Nanos::from_nanos(7)]).expect("one sample"),
            histogram: String::new(),
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        assert_columns_are_fields(SEGMENTS, SegmentRecord::from((&row(), Origin::Measured)));
    }

    #[test]
    fn half_an_interval_is_refused() {
        let row = row();
        let mut wire = SegmentRecord::from((&row, Origin::Measured));
        wire.median_ci95_low_ns = Some(Nanos::from_nanos(1));
        assert!(document::SegmentRow::try_from(wire).is_err());
    }
}
