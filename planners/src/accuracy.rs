//! The accuracy model: what a combination loses, learnt from the combinations that were measured
//! (mlmp §4.2.1).

use layerlab_profiles::Layer;

use crate::features::{Candidate, FeaturesError, LayerColumns};
use crate::problem::LossModel;
use crate::regress::scaling::Scaling;
use crate::regress::{
    Choice, Grid, GridError, Kind, Regressor, Rows, Score, Settings, TrainError, search,
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
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Debug)]
pub struct AccuracyModel {
    columns: LayerColumns,
    scaling: Scaling,
    regressor: Regressor,
    settings: Settings,
    test: Option<Score>,
    tried: Vec<Tried>,
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
        let choices = search(grid, &lesson.rows, &lesson.targets)?;
        let models: Vec<(Choice, AccuracyModel)> = choices
            .into_iter()
            .map(|choice| Ok((choice, lesson.fit(choice.settings)?)))
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
        let (_, best) = models
            .into_iter()
            .min_by(by_error)
            .ok_or(GridError::NoKinds)?;
        Ok(AccuracyModel { tried, ..best })
    }

    /// Trains one regressor with given settings on all training rows.
    pub fn with(
        layers: &[Layer],
        table: &AccuracyTable,
        settings: Settings,
    ) -> Result<AccuracyModel, AccuracyError> {
        Lesson::new(layers, table)?.fit(settings)
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

    fn mean_error(&self) -> Option<f64> {
        self.test.map(|score| score.mae)
    }
}

/// The training rows as numbers, and the test rows.
struct Lesson<'a> {
    columns: LayerColumns,
    /// The rows before their features are scaled.
    rows: Rows,
    targets: Vec<f64>,
    test: Vec<&'a AccuracyRow>,
}

impl<'a> Lesson<'a> {
    fn new(layers: &[Layer], table: &'a AccuracyTable) -> Result<Lesson<'a>, AccuracyError> {
        let columns = LayerColumns::new(layers, table.single_losses())?;
        let mut rows = Rows::new(columns.width());
        let mut targets = Vec::new();
        for row in table.of(Set::Train) {
            let candidate = columns.candidate_of(&row.combination)?;
            rows.push_with(|values| columns.write(&candidate, values));
            targets.push(row.loss);
        }
        if rows.is_empty() {
            return Err(AccuracyError::NoTraining);
        }
        Ok(Lesson {
            columns,
            rows,
            targets,
            test: table.of(Set::Test).collect(),
        })
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
