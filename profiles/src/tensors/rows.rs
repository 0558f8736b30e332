//! What came of each picture.

use super::TensorCodec;
use crate::accuracy::Tally;
use crate::units::{Bytes, Nanos};

/// How much of a tensor is zero for one picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroRow {
    /// The picture's place in the set, counted from 0.
    pub image: u64,
    /// The tensor.
    pub tensor: String,
    /// How many of its numbers are zero.
    pub zeros: u64,
    /// How many of its 8-bit codes are that of zero; none where a number is not finite.
    pub zero_codes: Option<u64>,
}

/// What one codec made of a tensor for one picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRow {
    /// The picture's place in the set, counted from 0.
    pub image: u64,
    /// The tensor.
    pub tensor: String,
    /// The codec.
    pub codec: TensorCodec,
    /// The packed size.
    pub bytes: Bytes,
    /// From floats to packed bytes; none on a simulated device.
    pub compress: Option<Nanos>,
    /// And back.
    pub decompress: Option<Nanos>,
}

/// What an answer got right and wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossingAnswer {
    /// The picture's place in the set, counted from 0.
    pub image: u64,
    /// The cut whose tensors were rounded to 8 bits, by the layer before it; none of the answer in 32 bits.
    pub cut: Option<u32>,
    /// What was right and wrong.
    pub tally: Tally,
}
