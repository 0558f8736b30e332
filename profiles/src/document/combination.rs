//! `combinations.csv`: what placements lose of the model's accuracy (docs/method.md §6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Profile, Provenance};
use crate::accuracy::{Features, Metric, Part, Preprocessing, Tally, features, loss};
use crate::layer::Layer;
use crate::segment::Combination;

/// How the accuracy of a model's placements was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The processor of the zeros, by its name.
    pub cpu: String,
    /// The processor of the ones, by its name.
    pub accelerator: String,
    /// The evaluation set's name.
    pub set: String,
    /// SHA-256 of the evaluation set's file, in hexadecimal.
    pub set_sha256: String,
    /// How images became tensors.
    pub preprocessing: Preprocessing,
    /// How answers were judged.
    pub metric: Metric,
    /// How many answers the model gave with all layers on the CPU. Placements gave as many, or the first
    /// of them.
    pub answers: u64,
    /// How many random combinations were asked for.
    pub samples: u64,
    /// Of the random combinations, of which of them are to learn from, and of the order of the answers.
    pub seed: u64,
    /// A placement was given no more answers when half the width of its loss's interval was at most this;
    /// `null` when all were given.
    pub stop_at_half_width: Option<f64>,
    /// Floating-point operations that were executed; placements share those that they have in common.
    pub executed_flop: u64,
    /// Floating-point operations that running every placement by itself would have taken.
    pub naive_flop: u64,
    /// Where it comes from; `null` if it was measured before this was noted.
    #[serde(default)]
    pub provenance: Option<Provenance>,
}

/// What one placement got right and lost.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinationRow {
    /// The processor of the zeros.
    pub cpu: String,
    /// The processor of the ones.
    pub accelerator: String,
    /// Which layers ran on the accelerator.
    pub combination: Combination,
    /// What the row is for.
    pub part: Part,
    /// How many answers were given.
    pub answers: u64,
    /// What they got right and wrong.
    pub tally: Tally,
    /// The placement's score on these answers: its accuracy A(L).
    pub score: f64,
    /// The score of all layers on the CPU on these answers, less `score`.
    pub loss: f64,
    /// The loss's 95 % confidence interval.
    pub loss_ci95: (f64, f64),
    /// What the placement looks like to a regressor.
    pub features: Features,
}

/// One placement's answers, as they were judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Which layers ran on the accelerator.
    pub combination: Combination,
    /// What it is for.
    pub part: Part,
    /// The tallies of its answers; where all layers on the CPU gave more, of the first ones.
    pub tallies: Vec<Tally>,
}

/// Answers of which no table can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// Losses are differences to all layers on the CPU.
    #[error(
        "the model was not evaluated with all layers on the CPU; there is nothing to compare with"
    )]
    NoBaseline,
    /// A placement has no answers, or more than the baseline.
    #[error("{combination} gave {given} answers and all layers on the CPU {all}; evaluate again")]
    Answers {
        /// The placement with too few or too many answers.
        combination: Combination,
        /// How many answers it gave.
        given: usize,
        /// How many there are to compare with.
        all: usize,
    },
    /// Features need the loss of each layer alone.
    #[error("layer {0} was not evaluated alone on the accelerator; features need its loss")]
    NoSingle(u32),
    /// A placement is of another model.
    #[error("{0} places another number of layers than the model has")]
    Length(Combination),
}

impl Profile {
    /// The profile with the accuracy of placements beside its times, in the place of what it said of the
    /// same two processors before.
    pub fn with_evaluation(
        mut self,
        evaluation: Evaluation,
        judged: &[Judged],
    ) -> Result<Profile, EvaluationError> {
        let rows = combination_rows(&self.layers, &evaluation, judged)?;
        let is_same = |cpu: &str, accelerator: &str| {
            cpu == evaluation.cpu && accelerator == evaluation.accelerator
        };
        self.combinations
            .retain(|row| !is_same(&row.cpu, &row.accelerator));
        self.combinations.extend(rows);
        self.evaluations
            .retain(|other| !is_same(&other.cpu, &other.accelerator));
        self.evaluations.push(evaluation);
        self.combinations.sort_by(|a, b| {
            let key = |row: &CombinationRow| {
                (
                    row.cpu.clone(),
                    row.accelerator.clone(),
                    row.combination.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        self.evaluations
            .sort_by(|a, b| (&a.cpu, &a.accelerator).cmp(&(&b.cpu, &b.accelerator)));
        Ok(self)
    }
}

/// The rows of an evaluation, without features: of placements that someone asked about, and of which single
/// layers may not be known.
pub fn judged_rows(
    evaluation: &Evaluation,
    judged: &[Judged],
) -> Result<Vec<CombinationRow>, EvaluationError> {
    let baseline = judged
        .iter()
        .find(|one| !one.combination.on_npu().contains(&true))
        .ok_or(EvaluationError::NoBaseline)?;
    let row = |one: &Judged| {
        let (given, all) = (one.tallies.len(), baseline.tallies.len());
        let shared = baseline.tallies.get(..given);
        let found = shared.and_then(|shared| loss(shared, &one.tallies));
        let found = found.ok_or_else(|| EvaluationError::Answers {
            combination: one.combination.clone(),
            given,
            all,
        })?;
        // The baseline differs from itself by nothing, and that is certain.
        let ci95 = match std::ptr::eq(one, baseline) {
            true => (0.0, 0.0),
            false => found.ci95,
        };
        let tally: Tally = one.tallies.iter().copied().sum();
        Ok(CombinationRow {
            cpu: evaluation.cpu.clone(),
            accelerator: evaluation.accelerator.clone(),
            combination: one.combination.clone(),
            part: one.part,
            answers: given as u64,
            tally,
            score: rounded(tally.score()),
            loss: rounded(found.value),
            loss_ci95: (rounded(ci95.0), rounded(ci95.1)),
            features: Features::default(),
        })
    };
    judged.iter().map(row).collect()
}

/// The rows with their features.
fn combination_rows(
    layers: &[Layer],
    evaluation: &Evaluation,
    judged: &[Judged],
) -> Result<Vec<CombinationRow>, EvaluationError> {
    if let Some(other) = judged
        .iter()
        .find(|one| one.combination.layers() != layers.len())
    {
        return Err(EvaluationError::Length(other.combination.clone()));
    }
    let mut rows = judged_rows(evaluation, judged)?;
    let singles = single_losses(layers.len(), &rows)
        .map_err(|place| EvaluationError::NoSingle(place as u32 + 1))?;
    for row in &mut rows {
        row.features = features(layers, &singles, &row.combination);
        row.features.mean_single_loss = rounded(row.features.mean_single_loss);
    }
    Ok(rows)
}

/// What each layer loses alone on the accelerator, layer 1 first; or the place of a layer of which no row
/// says it.
pub(crate) fn single_losses(layers: usize, rows: &[CombinationRow]) -> Result<Vec<f64>, usize> {
    let alone = |place: usize| {
        let is_alone = |row: &&CombinationRow| {
            let mut on = row.combination.on_npu().iter().enumerate();
            on.all(|(layer, &on)| on == (layer == place))
        };
        rows.iter().find(is_alone).map(|row| row.loss).ok_or(place)
    };
    (0..layers).map(alone).collect()
}

/// To six decimals, which the table has: a millionth is less than one answer of a large set.
pub(crate) fn rounded(share: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (share * 1e6).round() / 1e6 + 0.0
}
