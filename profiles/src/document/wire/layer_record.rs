//! A row of `layers.csv`. Its columns `model_input_bytes` and `model_output_bytes` are there where some layer has such bytes, and
//! `shortcuts` where some layer has such: a profile of any other model has the bytes that it had before there were these columns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{JOINT, Table};
use crate::document::{DocumentError, RowError};
use crate::layer::{Layer, Shortcut};
use crate::units::Bytes;

/// The columns of every such file, and then these.
macro_rules! columns {
    ($($more:literal),*) => {
        &[
            "layer",
            "name",
            "operators",
            "parameter_bytes",
            "input_bytes",
            "output_bytes",
            "additions",
            "multiplications",
            $($more),*
        ]
    };
}

pub(in crate::document) const LAYERS: Table = Table {
    file: "layers.csv",
    columns: columns![],
};

/// The same file of a model of which inner layers take inputs or give outputs.
pub(in crate::document) const LAYERS_BESIDE_CUTS: Table = Table {
    file: LAYERS.file,
    columns: columns!["model_input_bytes", "model_output_bytes"],
};

/// The same files of a model of which layers give tensors to others than the next.
pub(in crate::document) const LAYERS_WITH_SHORTCUTS: Table = Table {
    file: LAYERS.file,
    columns: columns!["shortcuts"],
};
pub(in crate::document) const LAYERS_BESIDE_CUTS_WITH_SHORTCUTS: Table = Table {
    file: LAYERS.file,
    columns: columns!["model_input_bytes", "model_output_bytes", "shortcuts"],
};

/// A row of either with its shortcuts: the last layer that reads them and their bytes, as in `5:802816`, one after the other.
#[derive(Serialize, Deserialize)]
pub(in crate::document) struct WithShortcuts<R> {
    row: R,
    shortcuts: String,
}

impl<'a, R: TryFrom<&'a Layer>> TryFrom<&'a Layer> for WithShortcuts<R> {
    type Error = R::Error;
    fn try_from(layer: &'a Layer) -> Result<Self, R::Error> {
        let written = |shortcut: &Shortcut| {
            let bytes = shortcut.bytes.as_bytes();
            format!("{}:{bytes}", shortcut.to_layer)
        };
        let shortcuts: Vec<String> = layer.shortcuts.iter().map(written).collect();
        Ok(WithShortcuts {
            row: R::try_from(layer)?,
            shortcuts: shortcuts.join(" "),
        })
    }
}

impl<R: TryInto<Layer, Error = RowError>> TryFrom<WithShortcuts<R>> for Layer {
    type Error = RowError;
    fn try_from(with: WithShortcuts<R>) -> Result<Self, RowError> {
        let read = |written: &str| {
            let (to_layer, bytes) = written.split_once(':')?;
            Some(Shortcut {
                to_layer: to_layer.parse().ok()?,
                bytes: Bytes::from_bytes(bytes.parse().ok()?),
            })
        };
        let shortcuts: Option<Vec<Shortcut>> = match with.shortcuts.as_str() {
            "" => Some(Vec::new()),
            all => all.split(' ').map(read).collect(),
        };
        Ok(Layer {
            shortcuts: shortcuts.ok_or_else(|| RowError::Field {
                column: "shortcuts".to_owned(),
                reason: format!("`{}` is no list of LAYER:BYTES", with.shortcuts),
            })?,
            ..with.row.try_into()?
        })
    }
}

/// A row of it.
#[derive(Serialize, Deserialize)]
pub(in crate::document) struct LayerBesideCutsRecord<'a> {
    layer: LayerRecord<'a>,
    model_input_bytes: Bytes,
    model_output_bytes: Bytes,
}

impl<'a> TryFrom<&'a Layer> for LayerBesideCutsRecord<'a> {
    type Error = DocumentError;
    fn try_from(layer: &'a Layer) -> Result<Self, DocumentError> {
        Ok(LayerBesideCutsRecord {
            layer: LayerRecord::try_from(layer)?,
            model_input_bytes: layer.model_input_bytes,
            model_output_bytes: layer.model_output_bytes,
        })
    }
}

impl TryFrom<LayerBesideCutsRecord<'_>> for Layer {
    type Error = RowError;
    fn try_from(row: LayerBesideCutsRecord<'_>) -> Result<Self, RowError> {
        Ok(Layer {
            model_input_bytes: row.model_input_bytes,
            model_output_bytes: row.model_output_bytes,
            ..Layer::try_from(row.layer)?
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct LayerRecord<'a> {
    layer: u32,
    name: Cow<'a, str>,
    operators: String,
    parameter_bytes: Bytes,
    input_bytes: Bytes,
    output_bytes: Bytes,
    additions: u64,
    multiplications: u64,
}

impl<'a> TryFrom<&'a Layer> for LayerRecord<'a> {
    type Error = DocumentError;
    fn try_from(layer: &'a Layer) -> Result<Self, DocumentError> {
        let unwritable = |name: &&String| name.is_empty() || name.contains(JOINT);
        if let Some(operator) = layer.operators.iter().find(unwritable) {
            return Err(DocumentError::Operator {
                layer: layer.number,
                operator: operator.clone(),
            });
        }
        Ok(LayerRecord {
            layer: layer.number,
            name: Cow::Borrowed(&layer.name),
            operators: layer.operators.join(JOINT),
            parameter_bytes: layer.parameter_bytes,
            input_bytes: layer.input_bytes,
            output_bytes: layer.output_bytes,
            additions: layer.additions,
            multiplications: layer.multiplications,
        })
    }
}

impl TryFrom<LayerRecord<'_>> for Layer {
    type Error = RowError;
    fn try_from(row: LayerRecord<'_>) -> Result<Self, RowError> {
        let operators: Vec<String> = match row.operators.as_str() {
            "" => Vec::new(),
            joined => joined.split(JOINT).map(str::to_owned).collect(),
        };
        if operators.iter().any(String::is_empty) {
            return Err(RowError::Field {
                column: "operators".to_owned(),
                reason: format!("`{}` has an operator without a name", row.operators),
            });
        }
        Ok(Layer {
            number: row.layer,
            name: row.name.into_owned(),
            operators,
            parameter_bytes: row.parameter_bytes,
            input_bytes: row.input_bytes,
            output_bytes: row.output_bytes,
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: row.additions,
            multiplications: row.multiplications,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn layer(operators: &[&str]) -> Layer {
        Layer {
            number: 1,
            name: "conv, \"one\"".to_owned(),
            operators: operators.iter().map(|&name| name.to_owned()).collect(),
            parameter_bytes: Bytes::from_bytes(4),
            input_bytes: Bytes::from_bytes(8),
            output_bytes: Bytes::from_bytes(16),
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: 2,
            multiplications: 3,
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        let layer = layer(&["Conv", "Relu"]);
        assert_columns_are_fields(LAYERS, LayerRecord::try_from(&layer).expect("plain names"));
        let beside = LAYERS_BESIDE_CUTS.columns.strip_prefix(LAYERS.columns);
        assert_eq!(
            beside,
            Some(&["model_input_bytes", "model_output_bytes"][..])
        );
        let shortcuts = Some(&["shortcuts"][..]);
        let more = LAYERS_WITH_SHORTCUTS.columns;
        assert_eq!(more.strip_prefix(LAYERS.columns), shortcuts);
        let more = LAYERS_BESIDE_CUTS_WITH_SHORTCUTS.columns;
        assert_eq!(more.strip_prefix(LAYERS_BESIDE_CUTS.columns), shortcuts);
    }

    #[test]
    fn a_layer_with_a_cache_comes_back_from_its_row() {
        let layer = Layer {
            model_input_bytes: Bytes::from_bytes(32),
            model_output_bytes: Bytes::from_bytes(64),
            ..layer(&["MatMul"])
        };
        let row = LayerBesideCutsRecord::try_from(&layer).expect("plain names");
        assert_eq!(Layer::try_from(row).expect("just made"), layer);
    }

    #[test]
    fn a_layer_with_shortcuts_comes_back_from_its_row() {
        let shortcut = |to_layer, bytes| Shortcut {
            to_layer,
            bytes: Bytes::from_bytes(bytes),
        };
        let layer = Layer {
            shortcuts: vec![shortcut(4, 100), shortcut(7, 802_816)],
            ..layer(&["Add"])
        };
        let row = WithShortcuts::<LayerRecord<'_>>::try_from(&layer).expect("plain names");
        assert_eq!(row.shortcuts, "4:100 7:802816");
        assert_eq!(Layer::try_from(row).expect("just made"), layer);
    }

    #[test]
    fn shortcuts_that_are_none_are_refused() {
        for written in ["5", "5:", ":5", "a:5", "4:1  5:1", "4:1 ", " "] {
            let layer = layer(&["Add"]);
            let with = WithShortcuts {
                row: LayerRecord::try_from(&layer).expect("plain names"),
                shortcuts: written.to_owned(),
            };
            assert!(Layer::try_from(with).is_err(), "{written:?}");
        }
    }

    #[test]
    fn a_layer_comes_back_from_its_row() {
        for operators in [&["Conv", "Relu"][..], &["MaxPool"], &[]] {
            let layer = layer(operators);
            let row = LayerRecord::try_from(&layer).expect("plain names");
            assert_eq!(Layer::try_from(row).expect("just made"), layer);
        }
    }

    #[test]
    fn operators_that_could_not_be_told_apart_are_refused() {
        for operators in [&["A+B"][..], &[""]] {
            assert!(LayerRecord::try_from(&layer(operators)).is_err());
        }
    }
}
