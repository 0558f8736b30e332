//! What tensors become when they are compressed, as it is published.

use super::derived::{self, CrossingAccuracy, TensorRow};
use super::{CrossingAnswer, PackedRow, TensorsHeader, ZeroRow};

/// The file that says what the files beside it are.
pub const TENSORS_JSON: &str = "tensors.json";

/// The tensors that cross cuts of one network, compressed on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorsDocument {
    /// `tensors.json`.
    pub header: TensorsHeader,
    /// `tensor_zeros.csv`.
    pub zeros: Vec<ZeroRow>,
    /// `tensor_samples.csv`.
    pub packed: Vec<PackedRow>,
    /// `crossing_answers.csv`; none where nothing was judged.
    pub answers: Vec<CrossingAnswer>,
    /// `tensors.csv`, which follows from them.
    pub tensors: Vec<TensorRow>,
    /// `crossing_accuracy.csv`, which follows from them.
    pub crossings: Vec<CrossingAccuracy>,
}

impl TensorsDocument {
    /// The document of these rows. What follows from them is filled in.
    pub fn new(
        header: TensorsHeader,
        zeros: Vec<ZeroRow>,
        packed: Vec<PackedRow>,
        answers: Vec<CrossingAnswer>,
    ) -> TensorsDocument {
        TensorsDocument {
            tensors: derived::tensors(&header, &zeros, &packed),
            crossings: derived::crossings(&header, &answers),
            header,
            zeros,
            packed,
            answers,
        }
    }
}
