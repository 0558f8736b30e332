//! Accuracy (METHOD §6): what a network's answers to labelled images are worth, and what placing layers on
//! other processors loses of it.

mod metric;
mod set;
mod tally;

pub use metric::{BadAnswer, Metric};
pub use set::{EvaluationSet, ObjectBox, Preprocessing, Resize, SetError, Truth, Values, sha256};
pub use tally::{Loss, Tally, loss};
