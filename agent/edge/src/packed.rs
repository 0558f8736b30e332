//! Requests to run layers whose tensors, or whose answer's, cross packed into fewer bytes than their numbers have. What packs
//! them is for others to know: here are their lengths.

use layerlab_profiles::tensors::TensorCodec;

use crate::fields::Fields;
use crate::frame::{MAX_FIELDS_BYTES, MAX_PAYLOAD_BYTES};
use crate::infer::{InferRequest, TensorShape, shapes};

/// The bytes in which tensors cross, one tensor after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedBytes {
    /// What all of them are packed by; nothing where they cross as they are.
    pub codec: Option<TensorCodec>,
    /// How many bytes each has.
    pub lengths: Vec<u64>,
}

impl PackedBytes {
    /// How many bytes they have together; `None` if no frame holds them.
    pub fn payload_bytes(&self) -> Option<u64> {
        let mut sum = 0_u64;
        for &length in &self.lengths {
            sum = sum.checked_add(length)?;
        }
        (sum <= MAX_PAYLOAD_BYTES).then_some(sum)
    }

    pub(crate) fn fields(&self) -> Vec<u8> {
        let mut fields = vec![number(self.codec)];
        fields.extend(self.lengths.iter().flat_map(|length| length.to_be_bytes()));
        fields
    }

    /// The next fields, if they are the bytes of tensors of these shapes.
    fn parse(left: &mut Fields<'_>, shapes: &[TensorShape]) -> Option<PackedBytes> {
        let codec = codec(left.array()?)?;
        let mut lengths = Vec::with_capacity(shapes.len());
        for shape in shapes {
            let length = u64::from_be_bytes(left.array()?);
            // However few bytes cross, there must be room for what they become.
            let unpacked = shape.bytes()?;
            if codec.is_none() && length != unpacked {
                return None;
            }
            lengths.push(length);
        }
        Some(PackedBytes { codec, lengths })
    }
}

/// Layers to be run on tensors that cross packed, or whose answer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRequest {
    /// The layers, and the shapes of the tensors as they are once they are unpacked.
    pub layers: InferRequest,
    /// What the answer's tensors are to be packed by; nothing where they are to cross as they are.
    pub answer: Option<TensorCodec>,
    /// The bytes of the payload.
    pub tensors: PackedBytes,
}

impl PackedRequest {
    /// Whether a frame holds its fields, and they read back as they are.
    pub fn fits_a_frame(&self) -> bool {
        let fields = self.fields();
        fields.len() <= MAX_FIELDS_BYTES as usize
            && PackedRequest::parse(&fields).as_ref() == Some(self)
    }

    pub(crate) fn fields(&self) -> Vec<u8> {
        let mut fields = self.layers.fields();
        fields.push(number(self.answer));
        fields.extend(self.tensors.fields());
        fields
    }

    /// The request of these fields, if they are one whose layers are in order and whose tensors a frame would hold unpacked.
    pub(crate) fn parse(fields: &[u8]) -> Option<PackedRequest> {
        let mut left = Fields(fields);
        let layers = InferRequest::parse_first(&mut left)?;
        layers.payload_bytes()?;
        let answer = codec(left.array()?)?;
        let tensors = PackedBytes::parse(&mut left, &layers.tensors)?;
        left.0.is_empty().then_some(PackedRequest {
            layers,
            answer,
            tensors,
        })
    }
}

/// The tensors, and the bytes in which they cross, that these fields are, if they are nothing else.
pub(crate) fn parse_packed(fields: &[u8]) -> Option<(Vec<TensorShape>, PackedBytes)> {
    let mut left = Fields(fields);
    let tensors = shapes(&mut left)?;
    let packed = PackedBytes::parse(&mut left, &tensors)?;
    left.0.is_empty().then_some((tensors, packed))
}

/// Tensors that were computed, and packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedAnswer {
    /// Their shapes once they are unpacked, in the order in which they cross the cut.
    pub tensors: Vec<TensorShape>,
    /// The bytes of `payload`.
    pub packed: PackedBytes,
    /// All bytes, one tensor after the other.
    pub payload: Vec<u8>,
}

/// What a codec is called in frames. Never another than it was.
fn number(codec: Option<TensorCodec>) -> u8 {
    match codec {
        None => 0,
        Some(TensorCodec::U8) => 1,
        Some(TensorCodec::U8Png) => 2,
        Some(TensorCodec::U8Zstd) => 3,
        Some(TensorCodec::U8Lz4) => 4,
        Some(TensorCodec::F32Zstd) => 5,
        Some(TensorCodec::F32Lz4) => 6,
    }
}

/// The codec of this number, if one has it.
fn codec([byte]: [u8; 1]) -> Option<Option<TensorCodec>> {
    let mut known = TensorCodec::ALL.into_iter().map(Some);
    match byte {
        0 => Some(None),
        _ => known.find(|&codec| number(codec) == byte),
    }
}
