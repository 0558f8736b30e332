//! What the tensors that cross cuts become when they are compressed, how long that takes, and what rounding them to 8 bits costs
//! in accuracy (jointdnn §4.2).
//!
//! [`TensorsDocument`] is what is published: `tensors.json` and five tables. docs/edge.md says what is measured, and every field
//! and column.

mod codec;
mod derived;
mod document;
mod drawn;
mod files;
mod findings;
mod header;
mod records;
mod rows;

pub use codec::{TensorCodec, UnknownCodec};
pub use derived::{CrossingAccuracy, TensorRow, TimeRow};
pub use document::{TENSORS_JSON, TensorsDocument};
pub use drawn::drawn_pictures;
pub use findings::{check_tensors, check_tensors_directory};
pub use header::{
    LeftOut, TENSORS_FORMAT, TENSORS_VERSION, TensorDescription, TensorsHeader, TensorsModel,
    TensorsSet, Timed,
};
pub use rows::{CrossingAnswer, PackedRow, ZeroRow};
