//! Why nothing could be decided about frames.

use layerlab_profiles::Nanos;

/// Why a stream, models or frames make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VideoError {
    /// Frames that arrive all at once.
    #[error("the time between two frames is 0; give that of the camera, such as 33333333 ns")]
    NoInterval,
    /// No time for an answer.
    #[error("the time limit of a frame is 0; give the time within which an answer is of use")]
    NoTimeLimit,
    /// More frames arrive before the first is due than are planned for.
    #[error(
        "{frames} frames arrive within the time limit {within}; plans are made for {most} at most"
    )]
    TooManyFramesWithin {
        /// T.
        within: Nanos,
        /// How many arrive.
        frames: u64,
        /// How many may.
        most: u64,
    },
    /// Not a share of right answers.
    #[error("{what} is {value}; it must be between 0 and 1")]
    NoFraction {
        /// What it is of.
        what: String,
        /// What it is.
        value: f64,
    },
    /// The weight of accuracy in the utility.
    #[error("the weight of accuracy in the utility is {0}; it must be finite and not below 0")]
    Weight(f64),
    /// Neither the phone nor the server can answer.
    #[error("there are no models; give at least one on the phone or on the server")]
    NoModels,
    /// A remote model's accuracies or a frame's sizes are not one for each resolution.
    #[error("{what} has {found} values; there are {resolutions} resolutions, and each needs one")]
    Resolutions {
        /// Whose values.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        resolutions: usize,
    },
    /// What the phone's models make of a frame is not one value for each model.
    #[error(
        "frame {frame} has {found} confidences; there are {models} models on the phone, and each needs one"
    )]
    LocalAnswers {
        /// The frame, counted from 0.
        frame: usize,
        /// How many there are.
        found: usize,
        /// How many there must be.
        models: usize,
    },
    /// A policy named a frame, model or resolution that there is not.
    #[error(
        "the policy asks for {asked} of frame {frame}, which there is not, has not arrived or is done already"
    )]
    Command {
        /// The frame, counted from 0.
        frame: usize,
        /// What was asked for.
        asked: &'static str,
    },
    /// Frames out of the order of their arrival.
    #[error(
        "frame {frame} arrives before the one in front of it; give frames in the order of their arrival"
    )]
    Order {
        /// The frame, counted from 0.
        frame: usize,
    },
    /// A window of no frames.
    #[error("the window has 0 frames; give at least 1")]
    NoWindow,
    /// Utility is to be had, and nothing says what accuracy is worth.
    #[error("max-utility needs the weight of accuracy in the utility; give it, such as 50")]
    NoWeight,
    /// An optimum that knows all frames beforehand is asked for on a link that changes.
    #[error(
        "an optimum is planned for a link of constant bandwidth, and this one is recorded; choose another policy, or a bandwidth"
    )]
    NotConstant,
    /// A policy that cannot is to decide about frames as they come: its name, and why it cannot.
    #[error("{0} {1}; choose another policy, or replay")]
    NotLive(&'static str, &'static str),
    /// There is nothing to decide about.
    #[error("there are no frames; give at least one")]
    NoFrames,
}

/// Refuses a `value` that is no share of right answers.
pub(super) fn refuse_unless_fraction(
    what: impl Fn() -> String,
    value: f64,
) -> Result<(), VideoError> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(()),
        false => Err(VideoError::NoFraction {
            what: what(),
            value,
        }),
    }
}
