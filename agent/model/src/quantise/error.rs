//! Why a network cannot be quantised.

use crate::{ModelError, NotATwin};

/// A network, or images, of which no int8 network can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantiseError {
    /// It computes in integers already.
    #[error(
        "node `{node}` is a `{operator}`: the model is quantised already; give the 32-bit float model that it was \
         made of"
    )]
    AlreadyQuantised {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
    },
    /// Its floats have 16 bits.
    #[error(
        "the tensor `{tensor}` has elements of type {element}, and 32-bit floats are quantised: give the model \
         with 32-bit floats"
    )]
    NotSingle {
        /// The tensor's name.
        tensor: String,
        /// Its element type.
        element: String,
    },
    /// Its operator set knows no scale for each channel.
    #[error(
        "the model uses operator set {found}, and scales for each channel need 13 or newer: export it with a newer \
         one, or choose --weights per-tensor"
    )]
    NoChannelScales {
        /// The version that the model names.
        found: i64,
    },
    /// Its operator set knows no quantisation at all.
    #[error(
        "the model uses operator set {found}, and QuantizeLinear needs 10 or newer: export it with a newer one"
    )]
    OldOpset {
        /// The version that the model names.
        found: i64,
    },
    /// It has several inputs, or none.
    #[error(
        "the model has {inputs} inputs, and ranges are found with the images of a set: give a model with one input"
    )]
    Inputs {
        /// How many inputs it has.
        inputs: usize,
    },
    /// There is nothing to find ranges with.
    #[error(
        "there is no image to find the ranges of activations with: give a set with at least one"
    )]
    NoImages,
    /// A tensor overflowed.
    #[error(
        "the tensor `{tensor}` is not finite for image {image}: no range holds it; check the model and how the set \
         was preprocessed"
    )]
    NotFinite {
        /// The tensor's name.
        tensor: String,
        /// The image's place among those used, counted from 1.
        image: usize,
    },
    /// A weight is infinite or no number.
    #[error("the constant `{tensor}` is not finite: no scale holds it; export the model again")]
    WeightNotFinite {
        /// The constant's name.
        tensor: String,
    },
    /// It could not be run.
    #[error("the model fails on image {image} ({reason}): check that the set was made for it")]
    Run {
        /// The image's place among those used, counted from 1.
        image: usize,
        /// What tract said, in one line.
        reason: String,
    },
    /// What was made of it does not have its layers.
    #[error(transparent)]
    NotATwin(#[from] NotATwin),
    /// It, or what was made of it, cannot be read.
    #[error(transparent)]
    Model(#[from] ModelError),
}
