//! Why nothing could be calibrated.

/// Why confidences could not be calibrated, or their calibration not be measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// There is nothing to learn from.
    #[error("there are no answers; give at least one")]
    NoAnswers,
    /// Two lists do not belong together.
    #[error("there are {scores} scores and {labels} labels; each score needs one label")]
    Lengths {
        /// How many scores.
        scores: usize,
        /// How many labels.
        labels: usize,
    },
    /// A score is no number.
    #[error("the score of answer {answer} is not finite")]
    NotFinite {
        /// The answer, counted from 0.
        answer: usize,
    },
    /// A confidence is no probability.
    #[error("the confidence of answer {answer} is {confidence}; it must be between 0 and 1")]
    NoProbability {
        /// The answer, counted from 0.
        answer: usize,
        /// What it is.
        confidence: f64,
    },
    /// Score vectors of different lengths.
    #[error("answer {answer} has {found} scores; the network has {classes} classes")]
    Classes {
        /// The answer, counted from 0.
        answer: usize,
        /// How many scores it has.
        found: usize,
        /// How many it must have.
        classes: usize,
    },
    /// A label that is no class.
    #[error(
        "the label of answer {answer} is class {label}; classes are counted from 0 and there are {classes}"
    )]
    Label {
        /// The answer, counted from 0.
        answer: usize,
        /// What it says.
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
}
