//! Tensors as they cross a link: 32-bit floats, one tensor after the other, the low byte first; or packed, each by itself.

use std::slice;

use layerlab_edge::PackedBytes;
use layerlab_model::{ElementType, TensorSpec};
use layerlab_profiles::tensors::TensorCodec;

use crate::compression::{compress, decompress};
use crate::runtime::Tensor;

const FLOAT_BYTES: usize = 4;

/// The bytes of these tensors.
///
/// # Errors
/// The reason, when one of them is not of 32-bit floats.
pub fn to_wire(tensors: &[Tensor]) -> Result<Vec<u8>, String> {
    let sizes = tensors.iter().map(|tensor| tensor.bytes().len());
    let mut bytes = Vec::with_capacity(sizes.sum());
    for tensor in tensors {
        if tensor.element() != ElementType::F32 {
            return Err(format!(
                "a tensor of {} cannot cross a link",
                tensor.element()
            ));
        }
        let (floats, _) = tensor.bytes().as_chunks::<FLOAT_BYTES>();
        bytes.extend(
            floats
                .iter()
                .flat_map(|it| f32::from_ne_bytes(*it).to_le_bytes()),
        );
    }
    Ok(bytes)
}

/// The bytes of these tensors, each packed by `codec`, or as it is without one.
///
/// # Errors
/// The reason, when one of them cannot be packed.
pub fn pack(
    codec: Option<TensorCodec>,
    tensors: &[Tensor],
) -> Result<(PackedBytes, Vec<u8>), String> {
    let (mut lengths, mut payload) = (Vec::with_capacity(tensors.len()), Vec::new());
    for tensor in tensors {
        let bytes = match codec {
            Some(codec) => compress(codec, tensor)
                .map_err(|reason| format!("a tensor cannot be packed by {codec}: {reason}"))?,
            None => to_wire(slice::from_ref(tensor))?,
        };
        lengths.push(bytes.len() as u64);
        payload.extend(bytes);
    }
    Ok((PackedBytes { codec, lengths }, payload))
}

/// The tensors of a frontier of which these are the packed bytes.
///
/// # Errors
/// The reason, when they are not.
pub fn unpack(
    frontier: &[TensorSpec],
    packed: &PackedBytes,
    mut payload: &[u8],
) -> Result<Vec<Tensor>, String> {
    if packed.lengths.len() != frontier.len() {
        return Err(format!(
            "{} tensors came, and {} cross the cut",
            packed.lengths.len(),
            frontier.len()
        ));
    }
    let mut tensors = Vec::with_capacity(frontier.len());
    for (spec, &length) in frontier.iter().zip(&packed.lengths) {
        let split = usize::try_from(length).ok();
        let split = split.and_then(|length| payload.split_at_checked(length));
        let (own, after) = split.ok_or("there are fewer bytes than the tensors have")?;
        payload = after;
        let Some(codec) = packed.codec else {
            tensors.extend(from_wire(slice::from_ref(spec), own)?);
            continue;
        };
        let shape: Vec<usize> = spec.shape.iter().map(|&axis| axis as usize).collect();
        let tensor = decompress(codec, &shape, own);
        tensors.push(tensor.map_err(|reason| {
            format!(
                "the tensor {} cannot be unpacked by {codec}: {reason}",
                spec.name
            )
        })?);
    }
    match payload.is_empty() {
        true => Ok(tensors),
        false => Err("there are more bytes than the tensors have".to_owned()),
    }
}

/// The tensors of a frontier in these bytes.
///
/// # Errors
/// The reason, when they are more or fewer than the frontier's.
pub fn from_wire(frontier: &[TensorSpec], mut bytes: &[u8]) -> Result<Vec<Tensor>, String> {
    let mut tensors = Vec::with_capacity(frontier.len());
    for spec in frontier {
        let shape: Vec<usize> = spec.shape.iter().map(|&axis| axis as usize).collect();
        let length = usize::try_from(spec.elements()).ok();
        let split = length
            .and_then(|elements| elements.checked_mul(FLOAT_BYTES))
            .and_then(|length| bytes.split_at_checked(length));
        let (own, after) = split.ok_or("there are fewer bytes than the tensors have")?;
        bytes = after;
        let (floats, _) = own.as_chunks::<FLOAT_BYTES>();
        let native = floats
            .iter()
            .flat_map(|it| f32::from_le_bytes(*it).to_ne_bytes());
        let tensor = Tensor::new(ElementType::F32, shape, native.collect());
        tensors.push(tensor.map_err(|error| error.to_string())?);
    }
    match bytes.is_empty() {
        true => Ok(tensors),
        false => Err("there are more bytes than the tensors have".to_owned()),
    }
}
