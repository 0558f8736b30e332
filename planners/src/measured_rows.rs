//! Placements whose accuracy was measured after the profile was published, which is not changed: a file of their own, which
//! says of which profile they are, how they were measured and by what runs.

use layerlab_profiles::Placement;
use layerlab_profiles::document::{Evaluation, ProfileDigest, Provenance};
use serde::{Deserialize, Serialize};

use crate::rows::{AccuracyRow, Set};

/// The value of the field `format`.
const FORMAT: &str = "layerlab-measured-rows";

/// The version of the document.
const VERSION: u32 = 1;

/// The rows of one evaluation of one profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRows {
    format: String,
    version: u32,
    /// The digest of the profile that the rows are beside.
    profile_digest: String,
    /// The processor of the zeros.
    cpu: String,
    /// The processor of the ones; of several, their names with `+` between them.
    accelerator: String,
    /// SHA-256 of the evaluation set's file.
    set_sha256: String,
    /// How many answers each placement gave.
    answers: u64,
    /// The seed of the order of the answers.
    seed: u64,
    rows: Vec<MeasuredRow>,
    /// The runs in which they were measured.
    runs: Vec<Provenance>,
}

/// One placement that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRow {
    /// Which layer ran on which processor.
    pub combination: Placement,
    /// A(all-CPU) - A(L), a fraction, as it was measured.
    pub loss: f64,
    /// The 95 % interval of the loss.
    pub loss_ci95: (f64, f64),
    /// The identifier of the run that measured it.
    pub run: String,
}

/// A file of rows that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredRowsError {
    /// The file is no such document.
    #[error("it holds no measured rows: {0}")]
    Document(#[from] serde_json::Error),
    /// Another program wrote it, or a newer version.
    #[error(
        "it is `{format}` of version {version}; this program reads {FORMAT} of version {VERSION}"
    )]
    Format {
        /// What the file says it is.
        format: String,
        /// Of which version.
        version: u32,
    },
    /// The rows are of something else than the plan.
    #[error(
        "its rows were measured beside {rows} and the plan is made from {plan}; name another file"
    )]
    Other {
        /// What the rows are of.
        rows: String,
        /// What the plan is of.
        plan: String,
    },
    /// A row's run is not described.
    #[error("it does not describe the run `{0}`, which measured one of its rows")]
    UnknownRun(String),
}

impl MeasuredRows {
    /// No rows yet, of this evaluation of the profile with this digest.
    pub fn none_of(digest: &ProfileDigest, evaluation: &Evaluation) -> MeasuredRows {
        MeasuredRows {
            format: FORMAT.to_owned(),
            version: VERSION,
            profile_digest: digest.to_string(),
            cpu: evaluation.cpu.clone(),
            accelerator: evaluation.accelerator.clone(),
            set_sha256: evaluation.set_sha256.clone(),
            answers: evaluation.answers,
            seed: evaluation.seed,
            rows: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The rows in a file's text, which must be of this evaluation of the profile with this digest.
    pub fn read(
        text: &str,
        digest: &ProfileDigest,
        evaluation: &Evaluation,
    ) -> Result<MeasuredRows, MeasuredRowsError> {
        let found: MeasuredRows = serde_json::from_str(text)?;
        if (found.format.as_str(), found.version) != (FORMAT, VERSION) {
            let MeasuredRows {
                format, version, ..
            } = found;
            return Err(MeasuredRowsError::Format { format, version });
        }
        let expected = MeasuredRows::none_of(digest, evaluation);
        if found.of() != expected.of() {
            return Err(MeasuredRowsError::Other {
                rows: found.of(),
                plan: expected.of(),
            });
        }
        let is_known = |row: &&MeasuredRow| found.runs.iter().any(|run| run.run == row.run);
        match found.rows.iter().find(|row| !is_known(row)) {
            Some(row) => Err(MeasuredRowsError::UnknownRun(row.run.clone())),
            None => Ok(found),
        }
    }

    /// The document.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Adds what a run measured.
    pub fn add(&mut self, run: Provenance, rows: impl IntoIterator<Item = MeasuredRow>) {
        self.rows.extend(rows);
        self.runs.push(run);
    }

    /// The rows.
    pub fn rows(&self) -> &[MeasuredRow] {
        &self.rows
    }

    /// The rows as models learn from them.
    pub fn lessons(&self) -> Vec<AccuracyRow> {
        let lesson = |row: &MeasuredRow| AccuracyRow {
            combination: row.combination.clone(),
            set: Set::Train,
            loss: row.loss,
            loss_ci95: Some(row.loss_ci95),
        };
        self.rows.iter().map(lesson).collect()
    }

    /// Of what the rows are.
    fn of(&self) -> String {
        format!(
            "the profile {} on {} and {}, {} answers to the images {} in the order {}",
            self.profile_digest,
            self.cpu,
            self.accelerator,
            self.answers,
            self.set_sha256,
            self.seed
        )
    }
}
