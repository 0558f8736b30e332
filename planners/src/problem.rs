//! What planners decide by: T(L) and A(L) of one model on two processors or more.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use layerlab_profiles::{Layer, SignedNanos};

use crate::confidence::Confidence;
use crate::features::{Candidate, FeaturesError, LayerColumns};
use crate::front::Front;
use crate::placement::PackedPlacement;
use crate::rows::AccuracyTable;
use crate::times::TimeTable;

/// Something that predicts the accuracy loss of many placements at once.
pub trait LossModel: Send + Sync {
    /// Loss(L) = A(all-CPU) - A(L) of each candidate, a fraction, in their order.
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64>;

    /// By how much the loss may differ from a predicted one, a possible one, with this confidence; nothing if that is not
    /// known. 0 of a model that does not err.
    fn half_width(&self, _predicted: f64, _confidence: Confidence) -> Option<f64> {
        Some(0.0)
    }

    /// The same of the loss that measuring on the same images gives: without the luck of images.
    fn prediction_error(&self, predicted: f64, confidence: Confidence) -> Option<f64> {
        self.half_width(predicted, confidence)
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

/// T(L) and A(L) of one model on two processors or more, of which processor 0 is the CPU, and how sure a plan is to be of
/// its limit.
#[derive(Clone)]
pub struct Problem {
    names: Vec<String>,
    times: TimeTable,
    columns: LayerColumns,
    all_cpu: Candidate,
    baseline: f64,
    single_losses: Vec<f64>,
    model: Arc<dyn LossModel>,
    measured: HashMap<PackedPlacement, MeasuredLoss>,
    confidence: Option<Confidence>,
    front: OnceLock<Front>,
}

/// A loss as it was measured.
#[derive(Clone, Copy)]
struct MeasuredLoss {
    loss: f64,
    ci95: Option<(f64, f64)>,
}

/// A(L) of one placement: measured, where exactly this placement was, otherwise predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedAccuracy {
    /// A(L), a fraction. A predicted one lies between 0 and the accuracy with all layers on the CPU.
    pub value: f64,
    /// The measured loss, or the predicted one, which may lie outside of what is possible.
    pub loss: f64,
    /// Whether the prediction was impossible and therefore moved to the nearest possible accuracy.
    pub clamped: bool,
    /// Whether it was measured.
    pub is_measured: bool,
    /// Its interval over images drawn like those of the evaluation set, given A(all-CPU): of the confidence that plans are to
    /// have, 95 % where they are to have none. Nothing if it is not known.
    pub interval: Option<(f64, f64)>,
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
        let rows = measured.rows().iter().filter_map(|row| {
            let placement = PackedPlacement::of(&row.combination).ok()?;
            let (loss, ci95) = (row.loss, row.loss_ci95);
            Some((placement, MeasuredLoss { loss, ci95 }))
        });
        Ok(Problem {
            names: layers.iter().map(|layer| layer.name.clone()).collect(),
            times,
            all_cpu: columns.candidate(all_cpu),
            columns,
            baseline: measured.baseline(),
            single_losses,
            measured: rows.collect(),
            model: Arc::from(model),
            confidence: None,
            front: OnceLock::new(),
        })
    }

    /// The same problem, where plans keep their limits with this confidence: the end of the interval meets the limit. With
    /// none, as a problem is first, what is most probable meets it.
    pub fn with_confidence(self, confidence: Option<Confidence>) -> Problem {
        Problem {
            confidence,
            front: OnceLock::new(),
            ..self
        }
    }

    /// The same problem where other numbers, such as energies, stand in the place of times.
    pub(crate) fn with_times(self, times: TimeTable) -> Problem {
        Problem {
            times,
            front: OnceLock::new(),
            ..self
        }
    }

    /// With which confidence plans keep their limits.
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// The same problem with the front that was found of it before.
    pub fn with_front(self, front: Front) -> Problem {
        Problem {
            front: OnceLock::from(front),
            ..self
        }
    }

    /// The front, which `search` finds if nobody asked for it before.
    ///
    /// Nothing is locked during a search: it predicts in parallel, and a thread that waits for others may be given another
    /// question about the same front. Threads that ask at once search each for themselves.
    pub(crate) fn front_or(&self, search: impl FnOnce(&Problem) -> Front) -> &Front {
        match self.front.get() {
            Some(front) => front,
            None => {
                let found = search(self);
                self.front.get_or_init(|| found)
            }
        }
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
        let measured = self.measured.get(placement)?;
        Some(self.baseline - measured.loss)
    }

    /// The placements that were measured, in no order.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &PackedPlacement> {
        self.measured.keys()
    }

    /// A(L) as the model predicts it, whether it was measured or not.
    pub(crate) fn predicted_accuracy(&self, candidate: &Candidate) -> f64 {
        let loss = self.model.losses(std::slice::from_ref(candidate));
        self.possible(self.baseline - loss.first().copied().unwrap_or(f64::NAN))
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
            .map(|(candidate, predicted)| {
                // What the loss is measured against has none, whatever a model says.
                let reference = || MeasuredLoss {
                    loss: 0.0,
                    ci95: Some((0.0, 0.0)),
                };
                let all_cpu = candidate.placement.layers_off_cpu() == 0;
                let measured = all_cpu.then(reference);
                match measured.or_else(|| self.measured.get(&candidate.placement).copied()) {
                    Some(measured) => self.measured_as(measured),
                    None => self.predicted_as(predicted),
                }
            })
            .collect()
    }

    fn measured_as(&self, MeasuredLoss { loss, ci95 }: MeasuredLoss) -> PredictedAccuracy {
        let value = self.baseline - loss;
        let stretch = self.confidence.unwrap_or(Confidence::USUAL).stretch();
        PredictedAccuracy {
            value,
            loss,
            clamped: false,
            is_measured: true,
            interval: ci95.map(|(low, high)| {
                (
                    value - (high - loss) * stretch,
                    value + (loss - low) * stretch,
                )
            }),
        }
    }

    fn predicted_as(&self, loss: f64) -> PredictedAccuracy {
        let accuracy = self.baseline - loss;
        let value = self.possible(accuracy);
        let confidence = self.confidence.unwrap_or(Confidence::USUAL);
        let half_width = self.model.half_width(self.baseline - value, confidence);
        PredictedAccuracy {
            value,
            loss,
            clamped: value != accuracy,
            is_measured: false,
            interval: half_width.map(|half| (value - half, value + half)),
        }
    }

    /// By how much measuring a placement may show another accuracy than the predicted one, with this confidence; nothing if it
    /// may show any.
    pub(crate) fn prediction_error(
        &self,
        accuracy: &PredictedAccuracy,
        confidence: Confidence,
    ) -> Option<f64> {
        let predicted = self.baseline - accuracy.value;
        self.model.prediction_error(predicted, confidence)
    }

    /// By how much the accuracy that is counted with lies below the measured one, were a placement of this predicted accuracy
    /// measured: half its interval, with the confidence that plans are to have; nothing where estimates decide.
    pub(crate) fn sampling(&self, accuracy: &PredictedAccuracy) -> f64 {
        let Some(confidence) = self.confidence else {
            return 0.0;
        };
        let predicted = self.baseline - accuracy.value;
        let both = self.model.half_width(predicted, confidence).unwrap_or(0.0);
        let error = self.prediction_error(accuracy, confidence).unwrap_or(0.0);
        (both * both - error * error).max(0.0).sqrt()
    }

    /// The possible accuracy that is nearest to a predicted one. One that is no number is the worst.
    fn possible(&self, accuracy: f64) -> f64 {
        accuracy.max(0.0).min(self.baseline)
    }

    /// The accuracy that a placement has at least, with the confidence that plans are to have; with none, A(L). No accuracy
    /// is below 0, wherever an interval ends.
    pub(crate) fn least_accuracy(&self, accuracy: &PredictedAccuracy) -> f64 {
        let least = match (self.confidence, accuracy.interval) {
            (None, _) => accuracy.value,
            (Some(_), Some((low, _))) => low.min(accuracy.value),
            // Whatever is not known may be the worst.
            (Some(_), None) => 0.0,
        };
        least.max(0.0)
    }

    /// The time in ns that a placement takes at most, with the confidence that plans are to have; with none, or where a
    /// published time has no interval, T(L).
    pub(crate) fn longest_time(&self, placement: &PackedPlacement) -> i64 {
        match self.confidence {
            Some(confidence) => self.longest_time_at(placement, confidence),
            None => self.times.total(placement),
        }
    }

    /// The time in ns that a placement takes at most, with this confidence; T(L) where a published time has no interval.
    pub(crate) fn longest_time_at(
        &self,
        placement: &PackedPlacement,
        confidence: Confidence,
    ) -> i64 {
        self.times.longest(placement, confidence)
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
