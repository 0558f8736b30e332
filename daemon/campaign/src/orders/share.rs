//! What one stretch of layers has of a device time that is of all stretches of its processor.

use layerlab_profiles::{Nanos, Segment};

/// The share of a stretch where all stretches together have so many layers: by how many of them it has.
pub(crate) fn share(time: Nanos, stretch: Segment, layers: u32) -> Nanos {
    let part = u128::from(time.as_nanos()) * u128::from(stretch.layers());
    Nanos::from_nanos(u64::try_from(part / u128::from(layers.max(1))).unwrap_or(u64::MAX))
}
