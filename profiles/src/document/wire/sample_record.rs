//! A row of `samples.csv` and of `rejected.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Origin, RowError, Sample};
use crate::segment::Segment;
use crate::units::Nanos;

pub(in crate::document) const SAMPLES: Table = Table {
    file: "samples.csv",
    columns: &COLUMNS,
};

pub(in crate::document) const REJECTED: Table = Table {
    file: "rejected.csv",
    columns: &COLUMNS,
};

const COLUMNS: [&str; 9] = [
    "processor",
    "first_layer",
    "last_layer",
    "order",
    "block",
    "index",
    "started_ns",
    "duration_ns",
    "origin",
];

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct SampleRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    order: u32,
    block: u32,
    index: u64,
    started_ns: Nanos,
    duration_ns: Nanos,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a Sample, Origin)> for SampleRecord<'a> {
    fn from((sample, origin): (&'a Sample, Origin)) -> Self {
        SampleRecord {
            processor: Cow::Borrowed(&sample.processor),
            first_layer: sample.segment.first(),
            last_layer: sample.segment.last(),
            order: sample.order,
            block: sample.block,
            index: sample.index,
            started_ns: sample.started,
            duration_ns: sample.duration,
            origin,
        }
    }
}

impl TryFrom<SampleRecord<'_>> for Sample {
    type Error = RowError;
    fn try_from(row: SampleRecord<'_>) -> Result<Self, RowError> {
        Ok(Sample {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            order: row.order,
            block: row.block,
            index: row.index,
            started: row.started_ns,
            duration: row.duration_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let sample = Sample {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            order: 0,
            block: 0,
            index: 0,
            started: Nanos::ZERO,
            duration: Nanos::from_nanos(1),
        };
        assert_columns_are_fields(SAMPLES, SampleRecord::from((&sample, Origin::Measured)));
    }
}
