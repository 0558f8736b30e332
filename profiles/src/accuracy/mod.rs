//! Accuracy (docs/method.md §6): what a network's answers to labelled images are worth, and what placing layers on
//! other processors loses of it.

mod bad_answer;
mod chosen;
mod decoder;
mod detection;
mod features;
mod metric;
mod picture;
mod pixels;
mod sampler;
mod set;
mod tally;
mod threshold;

pub use bad_answer::BadAnswer;
pub use chosen::chosen_placements;
pub use decoder::{Decoder, PriorGrid, Priors, SsdOutputs};
pub use features::{Features, features};
pub use metric::Metric;
pub use picture::{NoPictures, Picture};
pub use pixels::{PixelRun, pixel_runs};
pub use sampler::{Part, is_reference, references, references_on, sample, sample_on, split};
pub use set::{EvaluationSet, ObjectBox, Preprocessing, Resize, SetError, Truth, Values};
pub use tally::{Loss, Tally, loss};
pub use threshold::best_threshold;

pub(crate) use chosen::{chosen_in_version_3, number_of_placements};
pub(crate) use tally::interval_centre;
