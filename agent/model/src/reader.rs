//! What reads models: tract, with operators of our own.

use tract_onnx::Onnx;

use crate::{attention, quantise_linear};

/// Value infos are left out because they can carry the open dimensions that have been fixed.
pub(crate) fn reader() -> Onnx {
    let mut reader = tract_onnx::onnx().with_ignore_value_info(true);
    quantise_linear::register(&mut reader.op_register);
    attention::register(&mut reader.op_register);
    reader
}
