//! A row of `combinations.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::accuracy::{Features, Part, Tally};
use crate::document::{CombinationRow as Row, Origin, RowError};
use crate::placement::Placement;
use crate::units::Bytes;

pub(in crate::document) const COMBINATIONS: Table = Table {
    file: "combinations.csv",
    columns: &[
        "cpu",
        "accelerator",
        "combination",
        "part",
        "answers",
        "hits",
        "false_alarms",
        "misses",
        "score",
        "loss",
        "loss_ci95_low",
        "loss_ci95_high",
        "npu_layers",
        "mean_single_loss",
        "npu_parameter_bytes",
        "npu_input_bytes",
        "npu_output_bytes",
        "npu_additions",
        "npu_multiplications",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct CombinationRecord<'a> {
    cpu: Cow<'a, str>,
    accelerator: Cow<'a, str>,
    combination: String,
    part: Part,
    answers: u64,
    hits: u64,
    false_alarms: u64,
    misses: u64,
    score: f64,
    loss: f64,
    loss_ci95_low: f64,
    loss_ci95_high: f64,
    npu_layers: u32,
    mean_single_loss: f64,
    npu_parameter_bytes: Bytes,
    npu_input_bytes: Bytes,
    npu_output_bytes: Bytes,
    npu_additions: u64,
    npu_multiplications: u64,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a Row, Origin)> for CombinationRecord<'a> {
    fn from((row, origin): (&'a Row, Origin)) -> Self {
        let Row { features, .. } = row;
        CombinationRecord {
            cpu: Cow::Borrowed(&row.cpu),
            accelerator: Cow::Borrowed(&row.accelerator),
            combination: row.combination.to_string(),
            part: row.part,
            answers: row.answers,
            hits: row.tally.hits,
            false_alarms: row.tally.false_alarms,
            misses: row.tally.misses,
            score: row.score,
            loss: row.loss,
            loss_ci95_low: row.loss_ci95.0,
            loss_ci95_high: row.loss_ci95.1,
            npu_layers: features.npu_layers,
            mean_single_loss: features.mean_single_loss,
            npu_parameter_bytes: features.parameters,
            npu_input_bytes: features.inputs,
            npu_output_bytes: features.outputs,
            npu_additions: features.additions,
            npu_multiplications: features.multiplications,
            origin,
        }
    }
}

impl TryFrom<CombinationRecord<'_>> for Row {
    type Error = RowError;
    fn try_from(row: CombinationRecord<'_>) -> Result<Self, RowError> {
        let combination: Placement = row
            .combination
            .parse()
            .map_err(|error| RowError::Placement(format!("{error}")))?;
        Ok(Row {
            cpu: row.cpu.into_owned(),
            accelerator: row.accelerator.into_owned(),
            combination,
            part: row.part,
            answers: row.answers,
            tally: Tally {
                hits: row.hits,
                false_alarms: row.false_alarms,
                misses: row.misses,
            },
            score: row.score,
            loss: row.loss,
            loss_ci95: (row.loss_ci95_low, row.loss_ci95_high),
            features: Features {
                npu_layers: row.npu_layers,
                mean_single_loss: row.mean_single_loss,
                parameters: row.npu_parameter_bytes,
                inputs: row.npu_input_bytes,
                outputs: row.npu_output_bytes,
                additions: row.npu_additions,
                multiplications: row.npu_multiplications,
            },
        })
    }
}
