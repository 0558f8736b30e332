//! The accuracy model: what a combination loses, learnt from the combinations that were measured
//! (mlmp §4.2.1).

use layerlab_profiles::Layer;
use serde::{Deserialize, Serialize};

use crate::confidence::Confidence;
use crate::error_bands::{ErrorBands, HeldBackRow};
use crate::features::{Candidate, FeaturesError, LayerColumns};
use crate::problem::LossModel;
use crate::regress::scaling::Scaling;
use crate::regress::{
    Choice, Grid, GridError, Kind, Regressor, RidgeSettings, Rows, Score, Settings, TrainError,
    search,
};
use crate::rows::{AccuracyRow, AccuracyTable, Set};

/// Why there is no accuracy model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccuracyError {
    /// The layers and the measured losses do not fit.
    #[error(transparent)]
    Features(#[from] FeaturesError),
    /// There is nothing to learn from.
    #[error(
        "no measured combination is marked `train`; there is nothing to learn the accuracy loss from"
    )]
    NoTraining,
    /// No setting could be chosen.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The regressor could not be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// One line of the paper's Table 2: how one kind of regressor did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The kind of regressor.
    pub kind: Kind,
    /// The best settings of this kind.
    pub settings: Settings,
    /// On rows held back in cross-validation: what the choice is made by.
    pub held_back: Score,
    /// On the test rows, which had no part in any choice; nothing if there are none.
    pub test: Option<Score>,
}

/// A trained model of Loss(L).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccuracyModel {
    columns: LayerColumns,
    scaling: Scaling,
    regressor: Regressor,
    settings: Settings,
    test: Option<Score>,
    tried: Vec<Tried>,
    errors: ErrorBands,
}

impl AccuracyModel {
    /// Searches the grid by cross-validation inside the training rows, trains the best settings of each
    /// kind on all training rows, judges them by the test rows, and keeps the kind that did best in
    /// cross-validation.
    pub fn train(
        layers: &[Layer],
        table: &AccuracyTable,
        grid: &Grid,
    ) -> Result<AccuracyModel, AccuracyError> {
        let lesson = Lesson::new(layers, table)?;
        let choices = match search(grid, &lesson.rows, &lesson.targets) {
            // Nothing is to be predicted that was not measured.
            Err(GridError::TooFew { .. }) if table.is_complete() => {
                return lesson.fit(Settings::Ridge(RidgeSettings { penalty: 1.0 }));
            }
            choices => choices?,
        };
        let models: Vec<(Choice, AccuracyModel)> = choices
            .into_iter()
            .map(|choice| {
                let model = lesson.fit(choice.settings)?;
                Ok((choice, model))
            })
            .collect::<Result<_, AccuracyError>>()?;
        let tried = models.iter().map(|(choice, model)| Tried {
            kind: choice.settings.kind(),
            settings: choice.settings,
            held_back: choice.held_back,
            test: model.test,
        });
        let tried: Vec<Tried> = tried.collect();
        let by_error =
            |a: &(Choice, _), b: &(Choice, _)| a.0.held_back.mse.total_cmp(&b.0.held_back.mse);
        let (choice, best) = models
            .into_iter()
            .min_by(by_error)
            .ok_or(GridError::NoKinds)?;
        let errors = lesson.errors(table.baseline(), &choice.predictions);
        Ok(AccuracyModel { tried, ..best }.with_errors(errors))
    }

    /// Trains one regressor with given settings on all training rows. How far its predictions are off is not known.
    pub fn with(
        layers: &[Layer],
        table: &AccuracyTable,
        settings: Settings,
    ) -> Result<AccuracyModel, AccuracyError> {
        Lesson::new(layers, table)?.fit(settings)
    }

    /// The same model, whose predictions are off by so much.
    pub fn with_errors(self, errors: ErrorBands) -> AccuracyModel {
        AccuracyModel { errors, ..self }
    }

    /// What was trained.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// How it did on the test rows; nothing if there are none.
    pub fn test(&self) -> Option<Score> {
        self.test
    }

    /// The best of each kind that was tried, in the order of the grid: the paper's Table 2. Empty if the
    /// settings were given.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The trained regressor, which takes features scaled by [`AccuracyModel::scaling`].
    pub fn regressor(&self) -> &Regressor {
        &self.regressor
    }

    /// How far predictions are off; of given settings that is not known.
    pub fn errors(&self) -> &ErrorBands {
        &self.errors
    }

    /// The ranges of the training rows' features.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    fn predict(&self, candidates: impl Iterator<Item = Candidate>) -> Vec<f64> {
        let mut rows = Rows::new(self.scaling.ranges().len());
        for candidate in candidates {
            rows.push_with(|row| self.columns.write(&candidate, row));
        }
        self.regressor.predict(&self.scaling.scaled(rows))
    }
}

impl LossModel for AccuracyModel {
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64> {
        self.predict(candidates.iter().copied())
    }

    fn half_width(&self, predicted: f64, confidence: Confidence) -> Option<f64> {
        self.errors.half_width(predicted, confidence)
    }

    fn prediction_error(&self, predicted: f64, confidence: Confidence) -> Option<f64> {
        self.errors.prediction_error(predicted, confidence)
    }
}

/// The training rows as numbers, and the test rows.
struct Lesson<'a> {
    columns: LayerColumns,
    /// The rows before their features are scaled.
    rows: Rows,
    targets: Vec<f64>,
    /// Half the width of each row's interval.
    sampling: Vec<f64>,
    test: Vec<&'a AccuracyRow>,
}

impl<'a> Lesson<'a> {
    fn new(layers: &[Layer], table: &'a AccuracyTable) -> Result<Lesson<'a>, AccuracyError> {
        let columns = LayerColumns::new(layers, table.single_losses())?;
        let mut rows = Rows::new(columns.width());
        let (mut targets, mut sampling) = (Vec::new(), Vec::new());
        for row in table.lessons() {
            let candidate = columns.candidate_of(&row.combination)?;
            rows.push_with(|values| columns.write(&candidate, values));
            targets.push(row.loss);
            sampling.push(row.loss_ci95.map_or(0.0, |(low, high)| (high - low) / 2.0));
        }
        if rows.is_empty() {
            return Err(AccuracyError::NoTraining);
        }
        Ok(Lesson {
            columns,
            rows,
            targets,
            sampling,
            test: table.of(Set::Test).collect(),
        })
    }

    /// The errors of predictions for rows that were held back.
    fn errors(&self, baseline: f64, predictions: &[f64]) -> ErrorBands {
        let rows = predictions.iter().zip(&self.targets).zip(&self.sampling);
        let rows = rows.map(|((&predicted, &measured), &sampling)| HeldBackRow {
            // As `Problem` moves it: a loss that is no number is the greatest.
            predicted: predicted.min(baseline).max(0.0),
            measured,
            sampling,
        });
        ErrorBands::of(&rows.collect::<Vec<_>>())
    }

    fn fit(&self, settings: Settings) -> Result<AccuracyModel, AccuracyError> {
        let scaling = Scaling::of(&self.rows);
        let scaled = scaling.scaled(self.rows.clone());
        let regressor = Regressor::train(&settings, &scaled, &self.targets)?;
        let mut model = AccuracyModel {
            columns: self.columns.clone(),
            scaling,
            regressor,
            settings,
            test: None,
            tried: Vec::new(),
            errors: ErrorBands::default(),
        };
        let of_row = |row: &&AccuracyRow| self.columns.candidate_of(&row.combination);
        let candidates = self.test.iter().map(of_row);
        let candidates: Vec<Candidate> = candidates.collect::<Result<_, _>>()?;
        if !candidates.is_empty() {
            let predictions = model.predict(candidates.into_iter());
            let measured: Vec<f64> = self.test.iter().map(|row| row.loss).collect();
            model.test = Score::of(&measured, &predictions);
        }
        Ok(model)
    }
}
