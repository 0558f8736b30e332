//! What came of an image in one form.

use layerlab_profiles::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// An image that was brought to a form's size, encoded, decoded, brought to the network's size and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormAnswer {
    /// The encoded image's size.
    pub bytes: Bytes,
    /// From the image to the form's size.
    pub resize_ns: Nanos,
    /// From pixels to a file in memory.
    pub encode_ns: Nanos,
    /// And back.
    pub decode_ns: Nanos,
    /// From the form's size to the network's.
    pub upscale_ns: Nanos,
    /// The inference.
    pub infer_ns: Nanos,
    /// The class of the largest score, the first of several; absent where no score is finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
}
