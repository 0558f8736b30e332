//! Regressors that learn the accuracy loss from features: ridge, a small neural network, boosted trees
//! (mlmp §4.2.1). Each is exact about its own loss function and knows nothing of layers.

mod folds;
mod forest;
mod gbrt;
mod grid;
mod lbfgs;
mod mlp;
mod ridge;
mod rows;
pub mod scaling;
mod score;

pub use folds::folds;
pub use forest::{Forest, Tree};
pub use gbrt::GbrtSettings;
pub use grid::{Choice, Grid, GridError, search};
pub use lbfgs::{Stop, minimise};
pub use mlp::{Mlp, MlpSettings};
pub use ridge::{Ridge, RidgeSettings};
pub use rows::Rows;
pub use score::{MAPE_FLOOR, Score};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a regressor could not be trained.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// Rows and targets do not belong together, or there are none.
    #[error(
        "there are {rows} rows and {targets} targets; each row needs one, and there must be some"
    )]
    Lengths {
        /// How many rows.
        rows: usize,
        /// How many targets.
        targets: usize,
    },
    /// A feature or a target is no number.
    #[error("row {row} has a feature or a target that is not finite")]
    NotFinite {
        /// The row, counted from 0.
        row: usize,
    },
    /// A setting is out of its range.
    #[error("{setting} is {value}; it must be {range}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// The normal equations of ridge regression have no solution in this arithmetic.
    #[error("ridge regression has no solution with this penalty; take a larger one")]
    Singular,
    /// The boosting library refused.
    #[error("the trees could not be grown: {0}")]
    Trees(String),
}

/// What to train, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Settings {
    /// Linear regression with an L2 penalty.
    Ridge(RidgeSettings),
    /// A neural network of two hidden layers.
    Mlp(MlpSettings),
    /// Gradient-boosted regression trees.
    Gbrt(GbrtSettings),
}

/// Which sort of regressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Linear regression with an L2 penalty.
    Ridge,
    /// A neural network of two hidden layers.
    Mlp,
    /// Gradient-boosted regression trees.
    Gbrt,
}

impl Kind {
    /// All of them, in the order of the paper's Table 2.
    pub const ALL: [Kind; 3] = [Kind::Ridge, Kind::Mlp, Kind::Gbrt];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ridge => "ridge",
            Kind::Mlp => "mlp",
            Kind::Gbrt => "gbrt",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Settings {
    /// Which sort of regressor these settings are of.
    pub fn kind(&self) -> Kind {
        match self {
            Settings::Ridge(_) => Kind::Ridge,
            Settings::Mlp(_) => Kind::Mlp,
            Settings::Gbrt(_) => Kind::Gbrt,
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Settings::Ridge(ridge) => write!(f, "penalty {}", ridge.penalty),
            Settings::Mlp(mlp) => {
                let (first, second) = mlp.hidden;
                write!(f, "{first} and {second} neurons, penalty {}", mlp.penalty)
            }
            Settings::Gbrt(gbrt) => write!(
                f,
                "{} trees of depth {}, learning rate {}",
                gbrt.trees, gbrt.depth, gbrt.learning_rate
            ),
        }
    }
}

/// A trained regressor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Regressor {
    /// Linear regression with an L2 penalty.
    Ridge(Ridge),
    /// A neural network of two hidden layers.
    Mlp(Mlp),
    /// Gradient-boosted regression trees.
    Gbrt(Forest),
}

impl Regressor {
    /// Trains on `rows`, scaled, one target for each.
    pub fn train(settings: &Settings, rows: &Rows, targets: &[f64]) -> Result<Self, TrainError> {
        refuse_unfit(rows, targets)?;
        Ok(match settings {
            Settings::Ridge(settings) => Regressor::Ridge(Ridge::train(settings, rows, targets)?),
            Settings::Mlp(settings) => Regressor::Mlp(Mlp::train(settings, rows, targets)?),
            Settings::Gbrt(settings) => Regressor::Gbrt(gbrt::train(settings, rows, targets)?),
        })
    }

    /// The predictions for all `rows`, scaled as the training rows were.
    pub fn predict(&self, rows: &Rows) -> Vec<f64> {
        match self {
            Regressor::Ridge(ridge) => ridge.predict(rows),
            Regressor::Mlp(mlp) => mlp.predict(rows),
            Regressor::Gbrt(forest) => forest.predict(rows),
        }
    }

    /// Which sort of regressor it is.
    pub fn kind(&self) -> Kind {
        match self {
            Regressor::Ridge(_) => Kind::Ridge,
            Regressor::Mlp(_) => Kind::Mlp,
            Regressor::Gbrt(_) => Kind::Gbrt,
        }
    }
}

fn refuse_unfit(rows: &Rows, targets: &[f64]) -> Result<(), TrainError> {
    if rows.is_empty() || rows.len() != targets.len() {
        return Err(TrainError::Lengths {
            rows: rows.len(),
            targets: targets.len(),
        });
    }
    let finite = |(row, target): (&[f64], &f64)| {
        target.is_finite() && row.iter().all(|value| value.is_finite())
    };
    match rows.iter().zip(targets).position(|pair| !finite(pair)) {
        Some(row) => Err(TrainError::NotFinite { row }),
        None => Ok(()),
    }
}

/// Refuses a setting that is not a finite number above zero.
fn refuse_unless_positive(setting: &'static str, value: f64) -> Result<(), TrainError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(TrainError::Setting {
        setting,
        value,
        range: "above 0",
    })
}
