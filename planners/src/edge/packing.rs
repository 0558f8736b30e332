//! What a tensor may be packed into before it crosses a link: fewer bytes, for time on both sides (jointdnn §4.2).

use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Nanos};

use super::side::{Direction, Side};

/// A form in which a tensor may cross the link in the place of its bytes as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// What packs it.
    pub codec: TensorCodec,
    /// What becomes of it on the way to the server.
    pub upload: Packed,
    /// On the way to the phone.
    pub download: Packed,
}

/// A packed tensor on one of its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Its size on the link.
    pub bytes: Bytes,
    /// What the side that sends it takes to pack it.
    pub pack: Nanos,
    /// What the side that gets it takes to unpack it.
    pub unpack: Nanos,
}

impl Packing {
    /// What becomes of the tensor that way.
    pub const fn one_way(&self, direction: Direction) -> Packed {
        match direction {
            Direction::Upload => self.upload,
            Direction::Download => self.download,
        }
    }
}

impl Packed {
    /// What a side computes when the tensor arrives on the side `to`.
    pub fn on(&self, side: Side, to: Side) -> Nanos {
        match side == to {
            true => self.unpack,
            false => self.pack,
        }
    }
}
