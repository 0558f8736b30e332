//! What planners decide by: T(L) and A(L) of one model on two processors or more.

use std::collections::HashMap;

use layerlab_profiles::{Layer, SignedNanos};

use crate::features::{Candidate, FeaturesError, LayerColumns};
use crate::placement::PackedPlacement;
use crate::rows::AccuracyTable;
use crate::times::TimeTable;

/// Something that predicts the accuracy loss of many placements at once.
pub trait LossModel: Send + Sync {
    /// Loss(L) = A(all-CPU) - A(L) of each candidate, a fraction, in their order.
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64>;

    /// The mean absolute error of its predictions on combinations that it never saw, if that is known.
    fn mean_error(&self) -> Option<f64> {
        None
    }
}

/// Times and accuracies that do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// The layer table and the times are of different models.
    #[error(
        "the layer table has {layers} layers and the times are of {times}; both must be of one model"
    )]
    Times {
        /// Rows of the layer table.
        layers: usize,
        /// Layers with times.
        times: usize,
    },
    /// The times and the accuracies are of different processors.
    #[error(
        "there are times of {times} processors and losses of {losses}; both must be of the same"
    )]
    Processors {
        /// Processors with times.
        times: usize,
        /// Processors with losses, the CPU included.
        losses: usize,
    },
    /// The layer table and the accuracies do not fit.
    #[error(transparent)]
    Features(#[from] FeaturesError),
}

/// T(L) and A(L) of one model on two processors or more, of which processor 0 is the CPU.
pub struct Problem {
    names: Vec<String>,
    times: TimeTable,
    columns: LayerColumns,
    all_cpu: Candidate,
    baseline: f64,
    single_losses: Vec<f64>,
    model: Box<dyn LossModel>,
    measured: HashMap<PackedPlacement, f64>,
}

/// A(L) of one placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedAccuracy {
    /// A(L), a fraction between 0 and the accuracy with all layers on the CPU.
    pub value: f64,
    /// The predicted loss, which may lie outside of what is possible.
    pub loss: f64,
    /// Whether the prediction was impossible and therefore moved to the nearest possible accuracy.
    pub clamped: bool,
}

/// A placement with its time and its accuracy: a triple of the paper's.
#[derive(Clone, Copy, Debug)]
pub struct Triple {
    pub(crate) candidate: Candidate,
    pub(crate) time: i64,
    pub(crate) accuracy: PredictedAccuracy,
}

impl Problem {
    /// Puts together the layers of `layers.csv`, their times, what was measured of accuracy, and a model
    /// of the accuracy losses that were not measured.
    pub fn new(
        layers: &[Layer],
        times: TimeTable,
        measured: &AccuracyTable,
        model: Box<dyn LossModel>,
    ) -> Result<Problem, ProblemError> {
        if times.layers() != layers.len() {
            return Err(ProblemError::Times {
                layers: layers.len(),
                times: times.layers(),
            });
        }
        let single_losses = measured.single_losses().to_vec();
        let columns = LayerColumns::new(layers, &single_losses)?;
        if times.processors() != columns.processors() {
            return Err(ProblemError::Processors {
                times: times.processors(),
                losses: columns.processors(),
            });
        }
        let all_cpu = PackedPlacement::all_cpu(layers.len()).map_err(FeaturesError::from)?;
        let accuracy = |loss: f64| measured.baseline() - loss;
        let rows = measured.rows().iter().filter_map(|row| {
            let placement = PackedPlacement::of(&row.combination).ok()?;
            Some((placement, accuracy(row.loss)))
        });
        Ok(Problem {
            names: layers.iter().map(|layer| layer.name.clone()).collect(),
            times,
            all_cpu: columns.candidate(all_cpu),
            columns,
            baseline: measured.baseline(),
            single_losses,
            measured: rows.collect(),
            model,
        })
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.names.len()
    }

    /// How many processors there are, the CPU included.
    pub fn processors(&self) -> usize {
        self.times.processors()
    }

    /// The layers' names, layer 1 first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What each layer costs.
    pub fn times(&self) -> &TimeTable {
        &self.times
    }

    /// A(all-CPU), a fraction.
    pub fn baseline(&self) -> f64 {
        self.baseline
    }

    /// The loss of each layer alone on processor 1, layer 1 first, then on processor 2, and so on.
    pub fn single_losses(&self) -> &[f64] {
        &self.single_losses
    }

    /// A(L) as it was measured, if this placement was.
    pub fn measured_accuracy(&self, placement: &PackedPlacement) -> Option<f64> {
        if placement.layers_off_cpu() == 0 {
            return Some(self.baseline);
        }
        self.measured.get(placement).copied()
    }

    /// The mean absolute error of A(L) on combinations that the model never saw, if that is known.
    pub fn mean_error(&self) -> Option<f64> {
        self.model.mean_error()
    }

    /// T(L).
    pub fn time(&self, placement: &PackedPlacement) -> SignedNanos {
        SignedNanos::from_nanos(self.times.total(placement))
    }

    /// A(L) = A(all-CPU) - Loss(L) of each placement, in their order.
    pub fn accuracies(&self, placements: &[PackedPlacement]) -> Vec<PredictedAccuracy> {
        let candidates = placements
            .iter()
            .map(|&placement| self.columns.candidate(placement));
        self.predict(&candidates.collect::<Vec<_>>())
    }

    pub(crate) fn columns(&self) -> &LayerColumns {
        &self.columns
    }

    pub(crate) fn predict(&self, candidates: &[Candidate]) -> Vec<PredictedAccuracy> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let losses = self.model.losses(candidates);
        let pairs = candidates.iter().zip(losses);
        pairs
            .map(|(candidate, loss)| {
                // What the loss is measured against has none, whatever a model says.
                let loss = if candidate.placement.layers_off_cpu() == 0 {
                    0.0
                } else {
                    loss
                };
                let accuracy = self.baseline - loss;
                // A loss that is no number is the worst.
                let value = accuracy.max(0.0).min(self.baseline);
                PredictedAccuracy {
                    value,
                    loss,
                    clamped: value != accuracy,
                }
            })
            .collect()
    }

    /// All layers on the CPU.
    pub(crate) fn all_cpu(&self) -> Candidate {
        self.all_cpu
    }

    /// All layers on one of the processors.
    pub(crate) fn all_on(&self, processor: usize) -> Candidate {
        let on_cpu = self.all_cpu.placement;
        let all = (0..self.layers()).fold(on_cpu, |all, index| all.placed(index, processor));
        self.columns.candidate(all)
    }

    /// All layers on one of the processors but those that it cannot run, which are on the CPU.
    pub(crate) fn most_on(&self, processor: usize) -> Candidate {
        let on_cpu = self.all_cpu.placement;
        let can_run = |index: &usize| self.times.why_not(processor, *index).is_none();
        let layers = (0..self.layers()).filter(can_run);
        let most = layers.fold(on_cpu, |most, index| most.placed(index, processor));
        self.columns.candidate(most)
    }

    /// The triples of these candidates, in their order.
    pub(crate) fn triples(&self, candidates: &[Candidate]) -> Vec<Triple> {
        let pairs = candidates.iter().zip(self.predict(candidates));
        pairs
            .map(|(&candidate, accuracy)| Triple {
                time: self.times.total(&candidate.placement),
                candidate,
                accuracy,
            })
            .collect()
    }
}
