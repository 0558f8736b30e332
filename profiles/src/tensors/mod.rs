//! What the tensors that cross cuts become when they are compressed (docs/edge.md).

mod codec;

pub use codec::{TensorCodec, UnknownCodec};
