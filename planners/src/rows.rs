//! What was measured of accuracy: the loss of each combination that was run (docs/method.md §6).

use std::collections::BTreeMap;

use layerlab_profiles::Combination;

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
    /// Which layers ran on the NPU.
    pub combination: Combination,
    /// What the row is for.
    pub set: Set,
    /// A(all-CPU) - A(L), a fraction. Negative where the combination did better.
    pub loss: f64,
}

/// All measured losses of one model on one CPU and one NPU.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyTable {
    layers: usize,
    baseline: f64,
    rows: Vec<AccuracyRow>,
    single_losses: Vec<f64>,
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
        combination: Combination,
        /// How many layers the row's combination has.
        given: usize,
        /// The model's layers.
        expected: usize,
    },
    /// A loss is no difference of two accuracies.
    #[error("the loss of {combination} is {loss}; a loss lies between -1 and 1")]
    Loss {
        /// The row's combination.
        combination: Combination,
        /// The loss that was given.
        loss: f64,
    },
    /// A combination has two rows that disagree or are both to learn or judge from.
    #[error(
        "the combination {combination} was measured twice; each may be trained on or tested once"
    )]
    Twice {
        /// The combination with two rows.
        combination: Combination,
    },
    /// A layer was never run alone on the NPU.
    #[error(
        "the loss of layer {layer} alone on the NPU was not measured; it is a feature of the accuracy model"
    )]
    NoSingle {
        /// The layer, counted from 1.
        layer: usize,
    },
}

impl AccuracyTable {
    /// The table of a model of `layers` layers whose accuracy with all of them on the CPU is `baseline`.
    ///
    /// There must be a row for each layer alone on the NPU, of any set.
    pub fn new(
        layers: usize,
        baseline: f64,
        rows: Vec<AccuracyRow>,
    ) -> Result<AccuracyTable, RowsError> {
        if rows.is_empty() {
            return Err(RowsError::None);
        }
        if !(baseline > 0.0 && baseline <= 1.0) {
            return Err(RowsError::Baseline { baseline });
        }
        let mut known: BTreeMap<&Combination, &AccuracyRow> = BTreeMap::new();
        for row in &rows {
            refuse_odd_row(row, layers)?;
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
        let single = |index: usize| {
            let alone = Combination::new((0..layers).map(|other| other == index).collect());
            let row = known.get(&alone);
            row.map(|row| row.loss)
                .ok_or(RowsError::NoSingle { layer: index + 1 })
        };
        let single_losses = (0..layers).map(single).collect::<Result<_, _>>()?;
        Ok(AccuracyTable {
            layers,
            baseline,
            rows,
            single_losses,
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

    /// The loss of each layer alone on the NPU, layer 1 first.
    pub fn single_losses(&self) -> &[f64] {
        &self.single_losses
    }

    /// All rows, as given.
    pub fn rows(&self) -> &[AccuracyRow] {
        &self.rows
    }

    /// The rows of one set, in their order.
    pub fn of(&self, set: Set) -> impl Iterator<Item = &AccuracyRow> {
        self.rows.iter().filter(move |row| row.set == set)
    }
}

fn refuse_odd_row(row: &AccuracyRow, layers: usize) -> Result<(), RowsError> {
    let combination = || row.combination.clone();
    if row.combination.layers() != layers {
        return Err(RowsError::Length {
            combination: combination(),
            given: row.combination.layers(),
            expected: layers,
        });
    }
    if !(-1.0..=1.0).contains(&row.loss) {
        return Err(RowsError::Loss {
            combination: combination(),
            loss: row.loss,
        });
    }
    Ok(())
}
