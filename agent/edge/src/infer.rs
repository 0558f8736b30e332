//! What a request to run layers says.

use crate::fields::{Fields, HASH_BYTES, count};
use crate::frame::{MAX_FIELDS_BYTES, MAX_PAYLOAD_BYTES};

/// The bytes of an element: all tensors cross as 32-bit floats.
const ELEMENT_BYTES: u64 = 4;

/// The length of each axis of a tensor of 32-bit floats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorShape(pub Vec<u32>);

impl TensorShape {
    /// How many bytes a tensor of this shape has on the wire; `None` if no frame holds them.
    pub fn bytes(&self) -> Option<u64> {
        let elements = self
            .0
            .iter()
            .try_fold(1_u64, |product, &axis| product.checked_mul(u64::from(axis)));
        let bytes = elements?.checked_mul(ELEMENT_BYTES)?;
        (bytes <= MAX_PAYLOAD_BYTES).then_some(bytes)
    }
}

/// How many bytes tensors of these shapes have on the wire, one after the other; `None` if no frame holds them.
pub fn payload_bytes(shapes: &[TensorShape]) -> Option<u64> {
    let mut sum = 0_u64;
    for shape in shapes {
        sum = sum.checked_add(shape.bytes()?)?;
    }
    (sum <= MAX_PAYLOAD_BYTES).then_some(sum)
}

/// The bytes of a SHA-256 in hexadecimal digits, if it is one.
pub fn hash_bytes(hex: &str) -> Option<[u8; 32]> {
    let (digits, []) = hex.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.iter().map(byte).collect();
    bytes?.try_into().ok()
}

/// Layers that run on one processor of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The last of them; the first follows the stretch before.
    pub last: u32,
    /// The processor, as the server's profile calls it.
    pub processor: String,
}

/// Layers to be run, and the shapes of the tensors that cross the cut before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferRequest {
    /// The SHA-256 of the model's file, as profiles give it.
    pub model: [u8; HASH_BYTES],
    /// The first layer, counted from 1.
    pub first: u32,
    /// What runs where, one after the other; at least one.
    pub stretches: Vec<Stretch>,
    /// The tensors that the payload has, in the order in which they cross.
    pub tensors: Vec<TensorShape>,
}

impl InferRequest {
    /// The last layer.
    pub fn last(&self) -> u32 {
        self.stretches.last().map_or(0, |stretch| stretch.last)
    }

    /// How many bytes of payload it has; `None` if no frame holds them.
    pub fn payload_bytes(&self) -> Option<u64> {
        payload_bytes(&self.tensors)
    }

    /// Whether a frame holds its fields, and they read back as they are.
    pub fn fits_a_frame(&self) -> bool {
        let fields = self.fields();
        fields.len() <= MAX_FIELDS_BYTES as usize
            && InferRequest::parse(&fields).as_ref() == Some(self)
    }

    pub(crate) fn fields(&self) -> Vec<u8> {
        let mut fields = self.model.to_vec();
        fields.extend(self.first.to_be_bytes());
        fields.extend(count(self.stretches.len()));
        for stretch in &self.stretches {
            fields.extend(stretch.last.to_be_bytes());
            fields.extend(count(stretch.processor.len()));
            fields.extend(stretch.processor.as_bytes());
        }
        fields.extend(shape_fields(&self.tensors));
        fields
    }

    /// The request of these fields, if they are one whose layers are in order.
    pub(crate) fn parse(fields: &[u8]) -> Option<InferRequest> {
        let mut left = Fields(fields);
        let asked = InferRequest::parse_first(&mut left)?;
        left.0.is_empty().then_some(asked)
    }

    /// The request of the first of these fields.
    pub(crate) fn parse_first(left: &mut Fields<'_>) -> Option<InferRequest> {
        let model = left.array()?;
        let first = u32::from_be_bytes(left.array()?);
        let mut stretches = Vec::new();
        let mut next = first.max(1);
        for _ in 0..left.count()? {
            let last = u32::from_be_bytes(left.array()?);
            let processor = left.text()?;
            if last < next {
                return None;
            }
            next = last.checked_add(1)?;
            stretches.push(Stretch { last, processor });
        }
        let tensors = shapes(left)?;
        (first >= 1 && !stretches.is_empty()).then_some(InferRequest {
            model,
            first,
            stretches,
            tensors,
        })
    }
}

/// The fields of tensors alone: how many, and of each the axes.
pub(crate) fn shape_fields(tensors: &[TensorShape]) -> Vec<u8> {
    let mut fields = count(tensors.len()).to_vec();
    for TensorShape(axes) in tensors {
        fields.extend(count(axes.len()));
        fields.extend(axes.iter().flat_map(|axis| axis.to_be_bytes()));
    }
    fields
}

/// The tensors that these fields are, if they are nothing else.
pub(crate) fn parse_shapes(fields: &[u8]) -> Option<Vec<TensorShape>> {
    let mut left = Fields(fields);
    let shapes = shapes(&mut left)?;
    left.0.is_empty().then_some(shapes)
}

pub(crate) fn shapes(left: &mut Fields<'_>) -> Option<Vec<TensorShape>> {
    let mut shapes = Vec::new();
    for _ in 0..left.count()? {
        let axes = left.count()?;
        let (axes, _) = left.take(axes.checked_mul(4)?)?.as_chunks::<4>();
        shapes.push(TensorShape(
            axes.iter().map(|axis| u32::from_be_bytes(*axis)).collect(),
        ));
    }
    Some(shapes)
}

/// Tensors that were computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// Their shapes, in the order in which they cross the cut.
    pub tensors: Vec<TensorShape>,
    /// Their elements, one tensor after the other: 32-bit floats, the low byte first.
    pub payload: Vec<u8>,
}
