//! A row of `loads.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Load, Origin, RowError};
use crate::segment::Segment;
use crate::units::{Bytes, Nanos};

pub(in crate::document) const LOADS: Table = Table {
    file: "loads.csv",
    columns: &[
        "processor",
        "first_layer",
        "last_layer",
        "load_ns",
        "memory_bytes",
        "compiled",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct LoadRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    load_ns: Nanos,
    memory_bytes: Bytes,
    compiled: Option<bool>,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a Load, Origin)> for LoadRecord<'a> {
    fn from((load, origin): (&'a Load, Origin)) -> Self {
        LoadRecord {
            processor: Cow::Borrowed(&load.processor),
            first_layer: load.segment.first(),
            last_layer: load.segment.last(),
            load_ns: load.duration,
            memory_bytes: load.memory,
            compiled: load.compiled,
            origin,
        }
    }
}

impl TryFrom<LoadRecord<'_>> for Load {
    type Error = RowError;
    fn try_from(row: LoadRecord<'_>) -> Result<Self, RowError> {
        Ok(Load {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            duration: row.load_ns,
            memory: row.memory_bytes,
            compiled: row.compiled,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let load = Load {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            duration: Nanos::from_nanos(1),
            memory: Bytes::from_bytes(1),
            compiled: None,
        };
        assert_columns_are_fields(LOADS, LoadRecord::from((&load, Origin::Measured)));
    }
}
