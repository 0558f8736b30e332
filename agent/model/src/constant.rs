//! Tensors whose value is in the file: each is brought into one form (raw little-endian bytes, inside the
//! model), so that a network is one file and nothing after this has to look at twelve fields.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

use tract_onnx::pb::tensor_proto::DataLocation;
use tract_onnx::pb::{AttributeProto, NodeProto, TensorProto};
use tract_onnx::prelude::{DatumType, Tensor};

use crate::ModelError;
use crate::tensor::{ElementType, TensorSpec};

/// A tensor with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    pub(crate) spec: TensorSpec,
    /// The little-endian elements, last axis fastest.
    bytes: Vec<u8>,
}

impl Constant {
    /// `bytes` are the little-endian elements, last axis fastest.
    pub(crate) fn new(spec: TensorSpec, bytes: Vec<u8>) -> Self {
        Constant { spec, bytes }
    }

    /// Reads `tensor`, whose external data are in `folder`; the constant is called `name`.
    pub(crate) fn read(
        tensor: TensorProto,
        name: &str,
        folder: Option<&Path>,
    ) -> Result<Self, ModelError> {
        let damaged = |reason: String| ModelError::DamagedConstant {
            tensor: name.to_owned(),
            reason,
        };
        let element = ElementType::from_onnx(tensor.data_type).map_err(|element| {
            ModelError::UnsupportedElement {
                tensor: name.to_owned(),
                element,
            }
        })?;
        let shape: Vec<u64> = tensor
            .dims
            .iter()
            .map(|&length| u64::try_from(length))
            .collect::<Result<_, _>>()
            .map_err(|_| damaged(format!("its shape is {:?}", tensor.dims)))?;
        let spec = TensorSpec {
            name: name.to_owned(),
            element,
            shape,
        };
        let expected = spec.bytes().as_bytes();
        let external = tensor.data_location == Some(DataLocation::External as i32);
        let bytes = if external {
            read_external(&tensor, name, expected, folder)?
        } else if tensor.raw_data.is_empty() {
            typed_bytes(&tensor, element)
        } else {
            tensor.raw_data
        };
        if bytes.len() as u64 != expected {
            return Err(damaged(format!(
                "its shape {:?} takes {expected} bytes and it has {}",
                spec.shape,
                bytes.len()
            )));
        }
        Ok(Constant { spec, bytes })
    }

    /// The value of a `Constant` node, under the name of its output.
    pub(crate) fn from_node(node: NodeProto, folder: Option<&Path>) -> Result<Self, ModelError> {
        let name = node.output.first().cloned().unwrap_or_default();
        let unreadable = |reason: &str| ModelError::DamagedConstant {
            tensor: name.clone(),
            reason: reason.to_owned(),
        };
        let [attribute] = <[AttributeProto; 1]>::try_from(node.attribute)
            .map_err(|_| unreadable("its node does not have exactly one value"))?;
        let of = |element: ElementType, shape: Vec<u64>, bytes: Vec<u8>| Constant {
            spec: TensorSpec {
                name: name.clone(),
                element,
                shape,
            },
            bytes,
        };
        Ok(match attribute.name.as_str() {
            "value" => {
                let tensor = attribute
                    .t
                    .ok_or_else(|| unreadable("its node has no tensor"))?;
                Constant::read(tensor, &name, folder)?
            }
            "value_float" => of(ElementType::F32, vec![], attribute.f.to_le_bytes().to_vec()),
            "value_int" => of(ElementType::I64, vec![], attribute.i.to_le_bytes().to_vec()),
            "value_floats" => of(
                ElementType::F32,
                vec![attribute.floats.len() as u64],
                attribute
                    .floats
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
            ),
            "value_ints" => of(
                ElementType::I64,
                vec![attribute.ints.len() as u64],
                attribute
                    .ints
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
            ),
            other => return Err(unreadable(&format!("it is given as `{other}`"))),
        })
    }

    /// A value that tract worked out; none if it is not made of numbers.
    pub(crate) fn from_tract(value: &Tensor, name: &str) -> Option<Self> {
        if !value.is_plain_ram() {
            return None;
        }
        let value = match value.datum_type() {
            DatumType::TDim => value.cast_to::<i64>().ok()?,
            _ => std::borrow::Cow::Borrowed(value),
        };
        let element = ElementType::from_tract(value.datum_type())?;
        let shape = value.shape().iter().map(|&length| length as u64).collect();
        let spec = TensorSpec {
            name: name.to_owned(),
            element,
            shape,
        };
        Some(Constant {
            spec,
            bytes: value.as_bytes().to_vec(),
        })
    }

    /// The little-endian elements, last axis fastest.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As an initialiser.
    pub(crate) fn to_proto(&self) -> TensorProto {
        TensorProto {
            name: self.spec.name.clone(),
            data_type: self.spec.element.onnx(),
            // Lengths came from signed numbers, of the file or of tract.
            dims: self
                .spec
                .shape
                .iter()
                .map(|&length| length as i64)
                .collect(),
            raw_data: self.bytes.clone(),
            ..TensorProto::default()
        }
    }
}

/// The elements from the field that ONNX has for their type.
fn typed_bytes(tensor: &TensorProto, element: ElementType) -> Vec<u8> {
    /// Narrow integers, and the bits of 16-bit floats, are kept in 32-bit fields.
    fn low_bytes(values: &[i32], count: usize) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes().into_iter().take(count))
            .collect()
    }
    match element {
        ElementType::F32 => tensor
            .float_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        ElementType::F64 => tensor
            .double_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        ElementType::I64 => tensor
            .int64_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        ElementType::U64 => tensor
            .uint64_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        ElementType::U32 => tensor
            .uint64_data
            .iter()
            .flat_map(|&v| (v as u32).to_le_bytes())
            .collect(),
        ElementType::I32 => low_bytes(&tensor.int32_data, 4),
        ElementType::U16 | ElementType::I16 | ElementType::F16 => low_bytes(&tensor.int32_data, 2),
        ElementType::U8 | ElementType::I8 | ElementType::Bool => low_bytes(&tensor.int32_data, 1),
    }
}

/// The data that `tensor` keeps in a file of the model's folder.
fn read_external(
    tensor: &TensorProto,
    name: &str,
    expected: u64,
    folder: Option<&Path>,
) -> Result<Vec<u8>, ModelError> {
    let entry = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key);
    let location = entry("location").map_or("", |entry| entry.value.as_str());
    let missing = |reason: String| ModelError::ExternalData {
        tensor: name.to_owned(),
        location: location.to_owned(),
        reason,
    };
    let outside = || ModelError::ExternalDataOutside {
        tensor: name.to_owned(),
        location: location.to_owned(),
    };
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(entry) => entry
            .value
            .parse::<u64>()
            .map(Some)
            .map_err(|_| missing(format!("its {key} `{}` is no number", entry.value))),
    };

    let Some(folder) = folder else {
        return Err(missing("the model came without its folder".to_owned()));
    };
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(location).components().all(inside) {
        return Err(outside());
    }
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let io = |error: std::io::Error| missing(error.to_string());
    let path = folder.join(location).canonicalize().map_err(io)?;
    // A link inside the folder can still point out of it.
    if !path.starts_with(folder.canonicalize().map_err(io)?) {
        return Err(outside());
    }

    let offset = number("offset")?.unwrap_or(0);
    let length = number("length")?.unwrap_or(expected);
    let mut file = File::open(&path).map_err(io)?;
    let available = file.metadata().map_err(io)?.len();
    if length != expected || offset.checked_add(length).is_none_or(|end| end > available) {
        return Err(missing(format!(
            "it has {available} bytes and the tensor takes {expected} at {offset}, {length} of them kept"
        )));
    }
    file.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::StringStringEntryProto;
    use tract_onnx::pb::tensor_proto::DataType;

    use super::*;

    fn external(location: &str, offset: u64) -> TensorProto {
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: key.into(),
            value,
        };
        TensorProto {
            dims: vec![2],
            data_type: DataType::Float as i32,
            data_location: Some(DataLocation::External as i32),
            external_data: vec![
                entry("location", location.into()),
                entry("offset", offset.to_string()),
                entry("length", "8".into()),
            ],
            ..TensorProto::default()
        }
    }

    #[test]
    fn every_field_of_elements_becomes_bytes() {
        for (tensor, bytes) in [
            (
                TensorProto {
                    data_type: DataType::Float16 as i32,
                    int32_data: vec![0x3c00],
                    ..TensorProto::default()
                },
                vec![0x00, 0x3c],
            ),
            (
                TensorProto {
                    data_type: DataType::Int8 as i32,
                    int32_data: vec![-2],
                    ..TensorProto::default()
                },
                vec![0xfe],
            ),
            (
                TensorProto {
                    data_type: DataType::Uint32 as i32,
                    uint64_data: vec![7],
                    ..TensorProto::default()
                },
                vec![7, 0, 0, 0],
            ),
            (
                TensorProto {
                    data_type: DataType::Float as i32,
                    float_data: vec![1.0],
                    ..TensorProto::default()
                },
                1f32.to_le_bytes().to_vec(),
            ),
        ] {
            assert_eq!(Constant::read(tensor, "t", None).unwrap().bytes, bytes);
        }
    }

    #[test]
    fn a_shape_that_does_not_fit_the_data_is_damage() {
        for dims in [vec![3], vec![-1], vec![i64::MAX, i64::MAX]] {
            let tensor = TensorProto {
                dims,
                data_type: DataType::Float as i32,
                float_data: vec![1.0, 2.0],
                ..TensorProto::default()
            };
            let error = Constant::read(tensor, "w", None).unwrap_err();
            assert!(
                matches!(error, ModelError::DamagedConstant { .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn external_data_are_read_from_the_folder_and_nowhere_else() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("model");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(
            folder.join("data"),
            [9, 9, 9, 9, 0, 0, 128, 63, 0, 0, 0, 64],
        )
        .unwrap();
        std::fs::write(outer.path().join("secret"), [0; 8]).unwrap();
        let read =
            |location: &str, offset| Constant::read(external(location, offset), "w", Some(&folder));

        assert_eq!(read("data", 4).unwrap().bytes, [0, 0, 128, 63, 0, 0, 0, 64]);
        assert!(matches!(
            read("data", 8),
            Err(ModelError::ExternalData { .. })
        ));
        assert!(matches!(
            read("data", u64::MAX),
            Err(ModelError::ExternalData { .. })
        ));
        assert!(matches!(
            read("gone", 0),
            Err(ModelError::ExternalData { .. })
        ));
        assert!(matches!(
            read("../secret", 0),
            Err(ModelError::ExternalDataOutside { .. })
        ));
        let absolute = outer.path().join("secret").display().to_string();
        assert!(matches!(
            read(&absolute, 0),
            Err(ModelError::ExternalDataOutside { .. })
        ));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
            assert!(matches!(
                read("link", 0),
                Err(ModelError::ExternalDataOutside { .. })
            ));
        }
    }
}
