//! What was measured of accuracy: the loss of each combination that was run (docs/method.md §6).

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::Placement;
use layerlab_profiles::placement::PlacementError;

use crate::placement::PlacementLimitError;

/// Rows with which five-fold cross-validation begins to make sense.
const LEAST_TRAINING_ROWS: usize = 10;

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Accuracy models learn from it.
    Train,
    /// Accuracy models are judged by it, and never see it before.
    Test,
    /// Measured beside the random combinations: single layers, all layers. Gives features, not lessons.
    Reference,
}

/// One combination of layers that was run over the evaluation set.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyRow {
    /// Which layer ran on which processor.
    pub combination: Placement,
    /// What the row is for.
    pub set: Set,
    /// A(all-CPU) - A(L), a fraction. Negative where the combination did better.
    pub loss: f64,
    /// The 95 % interval of the loss, over images drawn like those of the evaluation set, if it is known.
    pub loss_ci95: Option<(f64, f64)>,
}

/// All measured losses of one model on two processors or more, of which processor 0 is the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyTable {
    layers: usize,
    processors: usize,
    baseline: f64,
    rows: Vec<AccuracyRow>,
    single_losses: Vec<f64>,
    /// How many placements the processors can run.
    possible: u128,
}

/// Rows that planners cannot use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RowsError {
    /// Nothing was measured.
    #[error(
        "there are no measured combinations; measure the accuracy of this model on this device first"
    )]
    None,
    /// The accuracy of the model itself is no accuracy.
    #[error(
        "the accuracy with all layers on the CPU is {baseline}; it must be above 0 and at most 1"
    )]
    Baseline {
        /// The accuracy that was given for all layers on the CPU.
        baseline: f64,
    },
    /// A row is of another model.
    #[error("the combination {combination} has {given} layers, the model {expected}")]
    Length {
        /// The row's combination.
        combination: Placement,
        /// How many layers the row's combination has.
        given: usize,
        /// The model's layers.
        expected: usize,
    },
    /// A loss is no difference of two accuracies.
    #[error("the loss of {combination} is {loss}; a loss lies between -1 and 1")]
    Loss {
        /// The row's combination.
        combination: Placement,
        /// The loss that was given.
        loss: f64,
    },
    /// An interval does not contain its loss.
    #[error("the interval {low} to {high} of {combination} does not contain its loss {loss}")]
    Interval {
        /// The row's combination.
        combination: Placement,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
        /// The loss.
        loss: f64,
    },
    /// A combination has two rows that disagree or are both to learn or judge from.
    #[error(
        "the combination {combination} was measured twice; each may be trained on or tested once"
    )]
    Twice {
        /// The combination with two rows.
        combination: Placement,
    },
    /// A layer was never run alone on a processor.
    #[error(
        "the loss of layer {layer} alone on {processor} was not measured; it is a feature of the accuracy model"
    )]
    NoSingle {
        /// The layer, counted from 1.
        layer: usize,
        /// The processor, in words.
        processor: String,
    },
    /// There are more processors than planners take, or too few.
    #[error(transparent)]
    Limit(#[from] PlacementLimitError),
    /// A row names a processor that there is not.
    #[error(transparent)]
    Processor(#[from] PlacementError),
}

impl AccuracyTable {
    /// The table of a CPU and an NPU: of a model of `layers` layers whose accuracy with all of them on the CPU
    /// is `baseline`.
    ///
    /// There must be a row for each layer alone on the NPU, of any set.
    pub fn new(
        layers: usize,
        baseline: f64,
        rows: Vec<AccuracyRow>,
    ) -> Result<AccuracyTable, RowsError> {
        AccuracyTable::on_processors(layers, 2, baseline, rows)
    }

    /// The table of so many processors. There must be a row for each layer alone on each of them but
    /// processor 0, of any set.
    pub fn on_processors(
        layers: usize,
        processors: usize,
        baseline: f64,
        rows: Vec<AccuracyRow>,
    ) -> Result<AccuracyTable, RowsError> {
        AccuracyTable::where_supported(layers, processors, baseline, rows, |_, _| true)
    }

    /// The table of so many processors that cannot run every layer: those and those layers alone for which
    /// `is_supported` holds, both counted from 0, need a row. The loss of another counts as 0; no placement has it.
    pub fn where_supported(
        layers: usize,
        processors: usize,
        baseline: f64,
        rows: Vec<AccuracyRow>,
        is_supported: impl Fn(usize, usize) -> bool,
    ) -> Result<AccuracyTable, RowsError> {
        PlacementLimitError::refuse_processors(processors)?;
        if rows.is_empty() {
            return Err(RowsError::None);
        }
        if !(baseline > 0.0 && baseline <= 1.0) {
            return Err(RowsError::Baseline { baseline });
        }
        let mut known: BTreeMap<&Placement, &AccuracyRow> = BTreeMap::new();
        for row in &rows {
            refuse_odd_row(row, layers, processors)?;
            let Some(other) = known.insert(&row.combination, row) else {
                continue;
            };
            let one_is_reference = row.set == Set::Reference || other.set == Set::Reference;
            if !one_is_reference || row.loss != other.loss {
                let combination = row.combination.clone();
                return Err(RowsError::Twice { combination });
            }
            if row.set == Set::Reference {
                known.insert(&row.combination, other);
            }
        }
        let single = |processor: usize, index: usize| {
            if !is_supported(processor, index) {
                return Ok(0.0);
            }
            let row = known.get(&Placement::alone_on(processor as u8, index, layers));
            row.map(|row| row.loss).ok_or_else(|| RowsError::NoSingle {
                layer: index + 1,
                processor: match processors {
                    2 => "the NPU".to_owned(),
                    _ => format!("processor {processor}"),
                },
            })
        };
        let single_losses = (1..processors)
            .flat_map(|processor| (0..layers).map(move |index| (processor, index)))
            .map(|(processor, index)| single(processor, index))
            .collect::<Result<_, _>>()?;
        let choices = (0..layers).map(|index| {
            let can_run = |processor: &usize| is_supported(*processor, index);
            1 + (1..processors).filter(can_run).count() as u128
        });
        let possible = choices.fold(1, u128::saturating_mul);
        Ok(AccuracyTable {
            layers,
            processors,
            baseline,
            rows,
            single_losses,
            possible,
        })
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// A(all-CPU), a fraction.
    pub fn baseline(&self) -> f64 {
        self.baseline
    }

    /// How many processors there are, the CPU included.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The loss of each layer alone on processor 1, layer 1 first, then on processor 2, and so on: with two
    /// processors, of each layer alone on the NPU.
    pub fn single_losses(&self) -> &[f64] {
        &self.single_losses
    }

    /// All rows, as given.
    pub fn rows(&self) -> &[AccuracyRow] {
        &self.rows
    }

    /// The rows to learn from: those to train on. Where every placement was measured nothing needs to be learnt, and all
    /// rows are lessons if there are few to train on, as of models of four layers or fewer.
    pub fn lessons(&self) -> Vec<&AccuracyRow> {
        let train: Vec<&AccuracyRow> = self.of(Set::Train).collect();
        match self.is_complete() && train.len() < LEAST_TRAINING_ROWS {
            true => self.rows.iter().collect(),
            false => train,
        }
    }

    /// Whether every placement that the processors can run was measured.
    pub fn is_complete(&self) -> bool {
        let measured: BTreeSet<&Placement> = self
            .rows
            .iter()
            .map(|row| &row.combination)
            .filter(|placement| !placement.is_all_on(0))
            .collect();
        measured.len() as u128 + 1 == self.possible
    }

    /// The same with placements that were measured afterwards, none of which may be there already.
    pub fn with_more(mut self, rows: Vec<AccuracyRow>) -> Result<AccuracyTable, RowsError> {
        let mut known: BTreeSet<Placement> = self
            .rows
            .iter()
            .map(|row| row.combination.clone())
            .collect();
        for row in rows {
            refuse_odd_row(&row, self.layers, self.processors)?;
            if row.combination.is_all_on(0) || !known.insert(row.combination.clone()) {
                let combination = row.combination;
                return Err(RowsError::Twice { combination });
            }
            self.rows.push(row);
        }
        Ok(self)
    }

    /// The rows of one set, in their order.
    pub fn of(&self, set: Set) -> impl Iterator<Item = &AccuracyRow> {
        self.rows.iter().filter(move |row| row.set == set)
    }
}

fn refuse_odd_row(row: &AccuracyRow, layers: usize, processors: usize) -> Result<(), RowsError> {
    let combination = || row.combination.clone();
    if row.combination.layers() != layers {
        return Err(RowsError::Length {
            combination: combination(),
            given: row.combination.layers(),
            expected: layers,
        });
    }
    row.combination.refuse_beyond(processors)?;
    let (low, high) = row.loss_ci95.unwrap_or((row.loss, row.loss));
    if !(-1.0..=1.0).contains(&row.loss) {
        return Err(RowsError::Loss {
            combination: combination(),
            loss: row.loss,
        });
    }
    // Written so that an end that is no number is refused.
    if !(low <= row.loss && row.loss <= high) {
        return Err(RowsError::Interval {
            combination: combination(),
            low,
            high,
            loss: row.loss,
        });
    }
    Ok(())
}
