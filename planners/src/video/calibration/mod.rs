//! Making a network's confidence say how often it is right (cbo §III-B).
//!
//! A score vector has one score for each class: softmax probabilities, or sigmoids where an image shows several objects.
//! Its confidence is its largest score. [`OneVsRest`] trains a model for each class (cbo Figure 6), [`Top1`] one for all
//! answers; either by [`Platt`] or [`Isotonic`]. [`choose`] takes the one with the least error on held-out answers.

mod answers;
mod choose;
mod document;
mod error;
mod isotonic;
mod one_vs_rest;
mod platt;
mod reliability;
mod score_map;
mod top1;

pub use answers::Answers;
pub use choose::{CalibrationTrial, Calibrator, ChosenCalibration, choose};
pub use document::{CALIBRATION_FORMAT, CALIBRATION_VERSION, CalibrationDocument, FittedOn};
pub use error::CalibrationError;
pub use isotonic::Isotonic;
pub use one_vs_rest::{FEWEST_POSITIVES, OneVsRest};
pub use platt::Platt;
pub use reliability::{BINS, ConfidenceBin, Reliability};
pub use score_map::{CalibrationMethod, ScoreMap};
pub use top1::Top1;
