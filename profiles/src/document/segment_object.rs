//! A segment in `profile.json`: an object of its first and its last layer.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::segment::Segment;

/// Layers that run as one unit.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentObject {
    /// The first layer, counted from 1.
    first_layer: u32,
    /// The last layer.
    last_layer: u32,
}

pub(super) fn serialize<S: Serializer>(
    segment: &Option<Segment>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let object = segment.map(|segment| SegmentObject {
        first_layer: segment.first(),
        last_layer: segment.last(),
    });
    object.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Segment>, D::Error> {
    let object = Option::<SegmentObject>::deserialize(deserializer)?;
    let segment = object.map(|object| Segment::new(object.first_layer, object.last_layer));
    segment.transpose().map_err(serde::de::Error::custom)
}
