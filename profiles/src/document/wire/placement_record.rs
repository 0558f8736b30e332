//! A row of `placements.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{JOINT, Table};
use crate::document::{DocumentError, Origin, ProvedPlacement, RowError};
use crate::segment::Segment;

pub(in crate::document) const PLACEMENTS: Table = Table {
    file: "placements.csv",
    columns: &[
        "processor",
        "first_layer",
        "last_layer",
        "provider",
        "backend",
        "fallback_refused",
        "nodes",
        "operators",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct PlacementRecord<'a> {
    processor: Cow<'a, str>,
    first_layer: u32,
    last_layer: u32,
    provider: Cow<'a, str>,
    backend: Option<Cow<'a, str>>,
    fallback_refused: bool,
    nodes: u64,
    operators: String,
    pub(in crate::document) origin: Origin,
}

impl<'a> TryFrom<(&'a ProvedPlacement, Origin)> for PlacementRecord<'a> {
    type Error = DocumentError;
    fn try_from((placement, origin): (&'a ProvedPlacement, Origin)) -> Result<Self, DocumentError> {
        let unwritable = |name: &&String| name.is_empty() || name.contains(JOINT);
        if let Some(operator) = placement.operators.iter().find(unwritable) {
            return Err(DocumentError::Operator {
                layer: placement.segment.first(),
                operator: operator.clone(),
            });
        }
        let operators: Vec<&str> = placement.operators.iter().map(String::as_str).collect();
        Ok(PlacementRecord {
            processor: Cow::Borrowed(&placement.processor),
            first_layer: placement.segment.first(),
            last_layer: placement.segment.last(),
            provider: Cow::Borrowed(&placement.provider),
            backend: placement.backend.as_deref().map(Cow::Borrowed),
            fallback_refused: placement.fallback_refused,
            nodes: placement.nodes,
            operators: operators.join(JOINT),
            origin,
        })
    }
}

impl TryFrom<PlacementRecord<'_>> for ProvedPlacement {
    type Error = RowError;
    fn try_from(row: PlacementRecord<'_>) -> Result<Self, RowError> {
        let operators = row.operators.split(JOINT).filter(|name| !name.is_empty());
        Ok(ProvedPlacement {
            processor: row.processor.into_owned(),
            segment: Segment::new(row.first_layer, row.last_layer)?,
            provider: row.provider.into_owned(),
            backend: row.backend.map(Cow::into_owned),
            fallback_refused: row.fallback_refused,
            nodes: row.nodes,
            operators: operators.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn placement() -> ProvedPlacement {
        ProvedPlacement {
            processor: "npu".to_owned(),
            segment: Segment::single(1),
            provider: "QNNExecutionProvider".to_owned(),
            backend: Some("libQnnHtp.so".to_owned()),
            fallback_refused: true,
            nodes: 3,
            operators: ["Relu", "Conv"].map(str::to_owned).into(),
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        let placement = placement();
        let row = PlacementRecord::try_from((&placement, Origin::Emulated)).expect("plain names");
        assert_eq!(row.operators, "Conv+Relu");
        assert_columns_are_fields(PLACEMENTS, row);
    }

    #[test]
    fn an_operator_whose_name_joins_others_is_refused() {
        let mut placement = placement();
        placement.operators.insert("Conv+Relu".to_owned());
        assert!(PlacementRecord::try_from((&placement, Origin::Measured)).is_err());
    }
}
