//! Layers that a model's file names: nodes that are one layer together, such as the attention of a block of a transformer.
//! They are an entry of the file's metadata, so that whoever has the file divides it in the same way.

use prost::Message;
use serde::{Deserialize, Serialize};
use tract_onnx::pb::{ModelProto, StringStringEntryProto};

use crate::ModelError;

/// The key of the entry.
const KEY: &str = "layerlab.layers";

/// Nodes that are one layer together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLayer {
    /// What the layer is called.
    pub name: String,
    /// The names of its nodes. What lies between two of them is part of the layer as well.
    pub nodes: Vec<String>,
}

impl NamedLayer {
    /// `onnx`, the bytes of a model that names no layers, with an entry that names `layers`; all else stays as it is.
    pub fn name_in(layers: &[NamedLayer], mut onnx: Vec<u8>) -> Vec<u8> {
        let entry = ModelProto {
            metadata_props: metadata(layers),
            ..ModelProto::default()
        };
        // A message behind another is one with the fields of both.
        onnx.extend(entry.encode_to_vec());
        onnx
    }
}

/// The layers that a file names, none where it leaves that to the rule.
pub(crate) fn read(model: &ModelProto) -> Result<Vec<NamedLayer>, ModelError> {
    let mut entries = model.metadata_props.iter().filter(|prop| prop.key == KEY);
    match (entries.next(), entries.next()) {
        (None, _) => Ok(Vec::new()),
        (Some(entry), None) => {
            serde_json::from_str(&entry.value).map_err(|error| ModelError::NamedLayers {
                reason: error.to_string(),
            })
        }
        (Some(_), Some(_)) => Err(ModelError::NamedLayers {
            reason: "there are two such entries".to_owned(),
        }),
    }
}

/// The metadata of a file that names `layers`; none where there are none.
pub(crate) fn metadata(layers: &[NamedLayer]) -> Vec<StringStringEntryProto> {
    if layers.is_empty() {
        return Vec::new();
    }
    let value = serde_json::to_string(layers);
    let value = value.unwrap_or_else(|_| unreachable!("names are texts"));
    vec![StringStringEntryProto {
        key: KEY.to_owned(),
        value,
    }]
}
