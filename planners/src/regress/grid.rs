//! Grid search: settings judged by cross-validation inside the training rows (mlmp §5).
//!
//! Most settings are far from the best, which one fold shows: all are tried on the first, and the best quarter on the others
//! (successive halving, Jamieson and Talwalkar 2016, with one round).

use rayon::prelude::*;

use super::gbrt::GbrtSettings;
use super::scaling::Scaling;
use super::{
    Kind, MlpSettings, Regressor, RidgeSettings, Rows, Score, Settings, TrainError, folds,
};

/// What to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Which sorts of regressors.
    pub kinds: Vec<Kind>,
    /// Parts of the cross-validation, at least 2.
    pub folds: usize,
    /// Of the folds and of the networks' first weights.
    pub seed: u64,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid {
            kinds: Kind::ALL.to_vec(),
            folds: 5,
            seed: 0,
        }
    }
}

/// Why no setting could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GridError {
    /// There is nothing to try.
    #[error("the grid names no kind of regressor")]
    NoKinds,
    /// There are too few rows or folds to hold any back.
    #[error(
        "cross-validation needs at least 2 folds and 2 rows for each; there are {folds} folds and {rows} rows"
    )]
    TooFew {
        /// How many folds.
        folds: usize,
        /// How many training rows.
        rows: usize,
    },
    /// A regressor could not be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// The best settings of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The settings that did best in cross-validation.
    pub settings: Settings,
    /// How they did on the rows that were held back.
    pub held_back: Score,
    /// For each row what a model predicts that did not see it.
    pub predictions: Vec<f64>,
}

/// The best settings of each kind, by the mean squared error on held-back rows, in the order of the grid.
///
/// `rows` are unscaled training rows: each fold is scaled by its own training part.
pub fn search(grid: &Grid, rows: &Rows, targets: &[f64]) -> Result<Vec<Choice>, GridError> {
    if grid.kinds.is_empty() {
        return Err(GridError::NoKinds);
    }
    super::refuse_unfit(rows, targets)?;
    if grid.folds < 2 || rows.len() < 2 * grid.folds {
        return Err(GridError::TooFew {
            folds: grid.folds,
            rows: rows.len(),
        });
    }
    let folds = folds(rows.len(), grid.folds, grid.seed);
    let parts: Vec<Part> = folds
        .iter()
        .map(|fold| Part::new(rows, targets, fold))
        .collect();
    grid.kinds
        .iter()
        .map(|&kind| best(kind, grid.seed, &parts))
        .collect()
}

/// One fold: what is trained on, and what is held back.
struct Part<'a> {
    rows: Rows,
    targets: Vec<f64>,
    held_rows: Rows,
    held_targets: Vec<f64>,
    /// Which rows are held back.
    places: &'a [usize],
}

impl<'a> Part<'a> {
    fn new(rows: &Rows, targets: &[f64], fold: &'a [usize]) -> Part<'a> {
        let kept: Vec<usize> = (0..rows.len()).filter(|row| !fold.contains(row)).collect();
        let pick = |places: &[usize]| places.iter().map(|&place| targets[place]).collect();
        let scaling = Scaling::of(&rows.at(&kept));
        Part {
            rows: scaling.scaled(rows.at(&kept)),
            targets: pick(&kept),
            held_rows: scaling.scaled(rows.at(fold)),
            held_targets: pick(fold),
            places: fold,
        }
    }

    /// The predictions for the held-back rows by each of these settings, which share one training.
    fn predictions(&self, family: &[Settings]) -> Result<Vec<Vec<f64>>, TrainError> {
        let Some(longest) = family.last() else {
            return Ok(Vec::new());
        };
        let regressor = Regressor::train(longest, &self.rows, &self.targets)?;
        Ok(match regressor {
            // Boosting adds tree after tree: a shorter forest is the beginning of the longer one.
            Regressor::Gbrt(forest) => {
                let stages: Vec<usize> = family.iter().map(trees_of).collect();
                forest.predict_stages(&self.held_rows, &stages)
            }
            other => vec![other.predict(&self.held_rows)],
        })
    }
}

fn trees_of(settings: &Settings) -> usize {
    match settings {
        Settings::Gbrt(gbrt) => gbrt.trees,
        _ => 0,
    }
}

fn best(kind: Kind, seed: u64, parts: &[Part]) -> Result<Choice, GridError> {
    let mut families: Vec<Family> = families(kind, seed).into_iter().map(Family::new).collect();
    let (first, others) = parts.split_at(1);
    hold_back(&mut families, first)?;
    families.sort_by(|a, b| a.least_error(first).total_cmp(&b.least_error(first)));
    // Ridge costs next to nothing.
    if kind != Kind::Ridge {
        families.truncate((families.len() / 4).max(1));
    }
    hold_back(&mut families, others)?;
    let choices = families.iter().flat_map(|family| family.choices(parts));
    let by_error = |a: &Choice, b: &Choice| a.held_back.mse.total_cmp(&b.held_back.mse);
    choices.min_by(by_error).ok_or(GridError::NoKinds)
}

/// Has each family predict the rows that each part holds back.
fn hold_back(families: &mut [Family], parts: &[Part]) -> Result<(), TrainError> {
    let jobs: Vec<(&[Settings], &Part)> = families
        .iter()
        .flat_map(|family| parts.iter().map(|part| (&family.settings[..], part)))
        .collect();
    let predicted: Vec<Vec<Vec<f64>>> = jobs
        .par_iter()
        .map(|(settings, part)| part.predictions(settings))
        .collect::<Result<_, TrainError>>()?;
    let mut predicted = predicted.into_iter();
    for family in families {
        family.by_part.extend(predicted.by_ref().take(parts.len()));
    }
    Ok(())
}

/// Settings that share one training, and what they predict for the rows that parts hold back.
struct Family {
    settings: Vec<Settings>,
    /// For each part, for each setting.
    by_part: Vec<Vec<Vec<f64>>>,
}

impl Family {
    fn new(settings: Vec<Settings>) -> Family {
        Family {
            settings,
            by_part: Vec::new(),
        }
    }

    /// How each setting does on the rows that these parts hold back, which are the first that were predicted.
    fn choices<'a>(&'a self, parts: &'a [Part]) -> impl Iterator<Item = Choice> + 'a {
        let settings = self.settings.iter().enumerate();
        settings.filter_map(move |(place, &settings)| {
            let predicted = self.by_part.iter().flat_map(|part| &part[place]).copied();
            let predicted: Vec<f64> = predicted.collect();
            let targets: Vec<f64> = parts
                .iter()
                .flat_map(|part| part.held_targets.clone())
                .collect();
            let held_back = Score::of(&targets, &predicted)?;
            let places = parts.iter().flat_map(|part| part.places);
            let mut by_row: Vec<(usize, f64)> = places.copied().zip(predicted).collect();
            by_row.sort_by_key(|(row, _)| *row);
            Some(Choice {
                settings,
                held_back,
                predictions: by_row.into_iter().map(|(_, predicted)| predicted).collect(),
            })
        })
    }

    fn least_error(&self, parts: &[Part]) -> f64 {
        let errors = self.choices(parts).map(|choice| choice.held_back.mse);
        errors.fold(f64::INFINITY, f64::min)
    }
}

/// The settings that are tried, in groups that share one training: those that differ in trees alone,
/// ascending.
fn families(kind: Kind, seed: u64) -> Vec<Vec<Settings>> {
    match kind {
        Kind::Ridge => [1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0]
            .map(|penalty| vec![Settings::Ridge(RidgeSettings { penalty })])
            .to_vec(),
        Kind::Mlp => {
            let pairs = [(16, 8), (32, 16)].into_iter();
            let pairs = pairs.flat_map(|hidden| [0.01, 0.1, 1.0].map(|penalty| (hidden, penalty)));
            let settings = pairs.map(|(hidden, penalty)| MlpSettings {
                hidden,
                penalty,
                iterations: 200,
                seed,
            });
            settings
                .map(|settings| vec![Settings::Mlp(settings)])
                .collect()
        }
        Kind::Gbrt => {
            let pairs = [2, 3, 4].into_iter();
            let pairs = pairs.flat_map(|depth| [0.05, 0.1, 0.2].map(|rate| (depth, rate)));
            pairs
                .map(|(depth, learning_rate)| {
                    let settings = [50, 100, 200, 300].map(|trees| GbrtSettings {
                        trees,
                        depth,
                        learning_rate,
                    });
                    settings.map(Settings::Gbrt).to_vec()
                })
                .collect()
        }
    }
}
