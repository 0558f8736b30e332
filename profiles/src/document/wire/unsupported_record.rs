//! `unsupported.csv`. Its column `needed_bytes` is there where some row has such a need: a profile of processors whose memory
//! holds all that they can run has the bytes that it had before there was that column.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Origin, RowError, Unsupported};
use crate::segment::Segment;
use crate::units::Bytes;

pub(in crate::document) const UNSUPPORTED: Table = Table {
    file: "unsupported.csv",
    columns: &["processor", "first_layer", "last_layer", "reason", "origin"],
};

/// The same file where memory does not hold something.
pub(in crate::document) const UNSUPPORTED_IN_MEMORY: Table = Table {
    file: UNSUPPORTED.file,
    columns: &[
        "processor",
        "first_layer",
        "last_layer",
        "reason",
        "needed_bytes",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct UnsupportedRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    reason: Cow<'a, str>,
    pub(in crate::document) origin: Origin,
}

/// A row where memory does not hold something.
#[derive(Serialize, Deserialize)]
pub(in crate::document) struct InMemoryRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    reason: Cow<'a, str>,
    needed_bytes: Option<Bytes>,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a Unsupported, Origin)> for UnsupportedRecord<'a> {
    fn from((row, origin): (&'a Unsupported, Origin)) -> UnsupportedRecord<'a> {
        UnsupportedRecord {
            processor: Cow::Borrowed(&row.processor),
            first_layer: row.segment.first(),
            last_layer: row.segment.last(),
            reason: Cow::Borrowed(&row.reason),
            origin,
        }
    }
}

impl<'a> From<(&'a Unsupported, Origin)> for InMemoryRecord<'a> {
    fn from((row, origin): (&'a Unsupported, Origin)) -> InMemoryRecord<'a> {
        InMemoryRecord {
            processor: Cow::Borrowed(&row.processor),
            first_layer: row.segment.first(),
            last_layer: row.segment.last(),
            reason: Cow::Borrowed(&row.reason),
            needed_bytes: row.needed,
            origin,
        }
    }
}

impl TryFrom<UnsupportedRecord<'_>> for Unsupported {
    type Error = RowError;
    fn try_from(row: UnsupportedRecord<'_>) -> Result<Self, RowError> {
        Ok(Unsupported {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            reason: row.reason.into_owned(),
            needed: None,
        })
    }
}

impl TryFrom<InMemoryRecord<'_>> for Unsupported {
    type Error = RowError;
    fn try_from(row: InMemoryRecord<'_>) -> Result<Self, RowError> {
        Ok(Unsupported {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            reason: row.reason.into_owned(),
            needed: row.needed_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let row = Unsupported {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            reason: "no such operator".to_owned(),
            needed: Some(Bytes::from_bytes(1)),
        };
        assert_columns_are_fields(
            UNSUPPORTED,
            UnsupportedRecord::from((&row, Origin::Measured)),
        );
        assert_columns_are_fields(
            UNSUPPORTED_IN_MEMORY,
            InMemoryRecord::from((&row, Origin::Measured)),
        );
    }
}
