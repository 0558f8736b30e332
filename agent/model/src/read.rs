//! From bytes to an ONNX message, telling a file of another kind from one that is cut short.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use prost::Message;
use tract_onnx::pb::ModelProto;

use crate::ModelError;

/// The largest protobuf message: its lengths are signed 32-bit numbers.
pub(crate) const PROTOBUF_LIMIT: u64 = i32::MAX as u64;

/// The bytes of the file at `path`, unless it is too large for a message.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, ModelError> {
    let unreadable = |source| ModelError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > PROTOBUF_LIMIT {
        return Err(ModelError::TooLarge {
            model: format!("`{}`", path.display()),
            bytes,
        });
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

/// Decodes `content`; errors speak of it as `subject`.
pub(crate) fn from_bytes(content: &[u8], subject: String) -> Result<ModelProto, ModelError> {
    let foreign = |reason: String| ModelError::NotOnnx {
        model: subject.clone(),
        reason,
    };
    match outline(content) {
        Outline::Foreign => Err(foreign("its bytes are of another kind".to_owned())),
        Outline::Empty => Err(foreign("it is empty".to_owned())),
        Outline::Truncated => Err(ModelError::Truncated {
            model: subject,
            length: content.len() as u64,
        }),
        Outline::Whole => ModelProto::decode(content).map_err(|error| foreign(error.to_string())),
    }
}

/// What the outermost fields of a message say about it.
#[derive(Debug, PartialEq)]
enum Outline {
    Empty,
    Foreign,
    Truncated,
    Whole,
}

/// Walks the outermost fields: a message that has been cut is one whose last field ends too early.
fn outline(content: &[u8]) -> Outline {
    // Every exporter writes fields in the order of their numbers, so that `ir_version` comes first.
    const FIRST_BYTE: u8 = 0x08;
    match content.first() {
        None => return Outline::Empty,
        Some(&FIRST_BYTE) => {}
        Some(_) => return Outline::Foreign,
    }
    let mut rest = content;
    while !rest.is_empty() {
        let Some(tag) = varint(&mut rest) else {
            return Outline::Truncated;
        };
        match (tag >> 3, tag & 7) {
            (1 | 5, 0) => {
                if varint(&mut rest).is_none() {
                    return Outline::Truncated;
                }
            }
            // 26 is newer than tract's copy of the format.
            (2..=4 | 6..=8 | 14 | 20 | 25 | 26, 2) => {
                let length = varint(&mut rest).and_then(|length| usize::try_from(length).ok());
                match length.and_then(|length| rest.get(length..)) {
                    Some(after) => rest = after,
                    None => return Outline::Truncated,
                }
            }
            _ => return Outline::Foreign,
        }
    }
    Outline::Whole
}

/// Takes a base-128 number off the front; none if it does not end within its ten bytes.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..10 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_file_is_told_from_a_foreign_one() {
        let model = ModelProto {
            ir_version: 8,
            producer_name: "me".into(),
            ..ModelProto::default()
        };
        let bytes = model.encode_to_vec();
        assert_eq!(outline(&bytes), Outline::Whole);
        assert_eq!(outline(&bytes[..bytes.len() - 1]), Outline::Truncated);
        assert_eq!(outline(&[]), Outline::Empty);
        for foreign in [
            &b"\x89PNG\r\n"[..],
            b"PK\x03\x04",
            b"hello",
            b"\x08\x01\xff\x01",
        ] {
            assert_eq!(outline(foreign), Outline::Foreign, "{foreign:?}");
        }
    }
}
