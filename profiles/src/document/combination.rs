//! `combinations.csv`: what placements lose of the model's accuracy (docs/method.md §6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Header, Profile, Provenance};
use crate::accuracy::{Features, Metric, Part, Preprocessing, Tally, features, loss};
use crate::layer::Layer;
use crate::placement::{MOST_PROCESSORS, Placement, PlacementError};
use crate::supported::SupportedLayers;

/// How the accuracy of a model's placements was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The processor of the zeros, by its name.
    pub cpu: String,
    /// The processor of the ones, by its name; of several accelerators, their names in the order of their
    /// digits, with `+` between them.
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
    /// True when neighbours on one processor were loaded and run as one segment, as placements run them; absent where each
    /// layer was by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_runs: bool,
    /// Floating-point operations that were executed; placements share those that they have in common.
    pub executed_flop: u64,
    /// Floating-point operations that running every placement by itself would have taken.
    pub naive_flop: u64,
    /// Where it comes from; `null` if it was measured before this was noted.
    pub provenance: Option<Provenance>,
}

/// What one placement got right and lost.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinationRow {
    /// The processor of the zeros.
    pub cpu: String,
    /// The processor of the ones, or several, as in the evaluation.
    pub accelerator: String,
    /// Which layer ran on which processor.
    pub combination: Placement,
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
    /// Which layer ran on which processor.
    pub combination: Placement,
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
        combination: Placement,
        /// How many answers it gave.
        given: usize,
        /// How many there are to compare with.
        all: usize,
    },
    /// Features need the loss of each layer alone.
    #[error("layer {layer} was not evaluated alone on {processor}; features need its loss")]
    NoSingle {
        /// The layer, counted from 1.
        layer: u32,
        /// The processor, in words.
        processor: String,
    },
    /// A placement names a processor of which the evaluation does not speak.
    #[error(transparent)]
    Processor(#[from] PlacementError),
    /// A placement is of another model.
    #[error("{0} places another number of layers than the model has")]
    Length(Placement),
}

impl Evaluation {
    /// The processors of the digits, that of the zeros first. Between the names of several accelerators
    /// `accelerator` has a `+`, unless it is the name of one processor of the profile.
    pub fn processors(&self, header: &Header) -> Vec<&str> {
        processors_of_digits(header, &self.cpu, &self.accelerator)
    }
}

/// The processors of the digits of an evaluation or a row with these fields.
pub(super) fn processors_of_digits<'a>(
    header: &Header,
    cpu: &'a str,
    accelerator: &'a str,
) -> Vec<&'a str> {
    let mut named = header.processors.iter();
    let accelerators = match named.any(|processor| processor.name == accelerator) {
        true => vec![accelerator],
        false => accelerator.splitn(MOST_PROCESSORS - 1, '+').collect(),
    };
    [vec![cpu], accelerators].concat()
}

impl Profile {
    /// The profile with the accuracy of placements beside its times, in the place of what it said of the
    /// same processors before.
    pub fn with_evaluation(
        mut self,
        evaluation: Evaluation,
        judged: &[Judged],
    ) -> Result<Profile, EvaluationError> {
        let processors = evaluation.processors(&self.header);
        let supported: Vec<_> = processors.iter().map(|name| self.supported(name)).collect();
        let rows = combination_rows(&self.layers, &processors, &supported, &evaluation, judged)?;
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
        .find(|one| one.combination.is_all_on(0))
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
    processors: &[&str],
    supported: &[SupportedLayers],
    evaluation: &Evaluation,
    judged: &[Judged],
) -> Result<Vec<CombinationRow>, EvaluationError> {
    for one in judged {
        if one.combination.layers() != layers.len() {
            return Err(EvaluationError::Length(one.combination.clone()));
        }
        one.combination.refuse_beyond(processors.len())?;
    }
    let mut rows = judged_rows(evaluation, judged)?;
    let singles = single_losses(supported, &rows).map_err(|missing| EvaluationError::NoSingle {
        layer: missing.index as u32 + 1,
        processor: match processors {
            [_, _] => "the accelerator".to_owned(),
            _ => format!("`{}`", processors[usize::from(missing.processor)]),
        },
    })?;
    for row in &mut rows {
        row.features = features(layers, &singles, &row.combination);
        row.features.mean_single_loss = rounded(row.features.mean_single_loss);
    }
    Ok(rows)
}

/// A layer of which no row says what it loses alone on a processor.
pub(crate) struct MissingSingle {
    /// The layer, counted from 0.
    index: usize,
    processor: u8,
}

/// What each layer loses alone on processor 1, layer 1 first, then what each loses alone on processor 2, and
/// so on, of processors that can run these layers. A layer that one cannot run counts as losing nothing there: no placement
/// has it.
pub(crate) fn single_losses(
    supported: &[SupportedLayers],
    rows: &[CombinationRow],
) -> Result<Vec<f64>, MissingSingle> {
    let layers = supported.first().map_or(0, SupportedLayers::layers) as usize;
    let alone = |processor: u8, index: usize| {
        if !supported[usize::from(processor)].has(index as u32 + 1) {
            return Ok(0.0);
        }
        let alone = Placement::alone_on(processor, index, layers);
        let row = rows.iter().find(|row| row.combination == alone);
        row.map(|row| row.loss)
            .ok_or(MissingSingle { index, processor })
    };
    (1..supported.len() as u8)
        .flat_map(|processor| (0..layers).map(move |index| (processor, index)))
        .map(|(processor, index)| alone(processor, index))
        .collect()
}

/// To six decimals, which the table has: a millionth is less than one answer of a large set.
pub(crate) fn rounded(share: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (share * 1e6).round() / 1e6 + 0.0
}
