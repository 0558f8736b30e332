//! What came of a tensor that crosses cuts.

use layerlab_profiles::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A tensor of one image, packed by each of an order's codecs and unpacked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedTensor {
    /// How many of its numbers are zero.
    pub zeros: u64,
    /// How many of its 8-bit codes are that of zero; absent where a number is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_codes: Option<u64>,
    /// What each codec made of it, in the order's order.
    pub packed: Vec<Packing>,
}

/// What one codec made of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packing {
    /// The packed size.
    pub bytes: Bytes,
    /// From floats to packed bytes; absent on a simulated device, whose speed at it nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress_ns: Option<Nanos>,
    /// And back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decompress_ns: Option<Nanos>,
}
