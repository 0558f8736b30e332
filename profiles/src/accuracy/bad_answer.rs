//! Answers that a metric cannot judge.

/// An answer that the metric cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// The answer has another length than the metric expects.
    #[error(
        "the network answers with {found} values and the metric of this evaluation set needs {expected}"
    )]
    Length {
        /// How many values there are.
        found: usize,
        /// How many are needed.
        expected: usize,
    },
    /// The answer cannot be cut into boxes.
    #[error(
        "the network answers with {found} values, and the metric of this evaluation set takes {each} for each box"
    )]
    NotBoxes {
        /// How many values there are.
        found: usize,
        /// How many each box has.
        each: usize,
    },
    /// The network's outputs are not those of the decoder.
    #[error(
        "the network's outputs are {found}, and the metric of this evaluation set takes {expected}"
    )]
    Outputs {
        /// The shapes that there are.
        found: String,
        /// The shapes that are needed.
        expected: String,
    },
    /// The answer is to another number of images than the metric takes together.
    #[error("the metric of this evaluation set does not judge {0} images together")]
    Images(usize),
    /// The set's labels are of another kind than the metric's.
    #[error("the labels of this evaluation set are not of the kind that its metric judges by")]
    Truth,
}

/// Shapes for a person: `1x3x4 and 1x2`.
pub(super) fn shapes_text(shapes: &[Vec<u64>]) -> String {
    let shapes = shapes.iter().map(|shape| {
        let lengths: Vec<String> = shape.iter().map(ToString::to_string).collect();
        lengths.join("x")
    });
    shapes.collect::<Vec<_>>().join(" and ")
}
