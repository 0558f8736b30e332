//! A verdict on a profile, in its run's row.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::{Verdict, one};

#[derive(Serialize, Deserialize)]
pub(super) struct VerdictRow {
    against: PathBuf,
    is_baseline: bool,
    // Since version 6.
    #[serde(default = "one")]
    good: usize,
    tolerance: f64,
    alpha: f64,
    numbers: usize,
    worse: Vec<String>,
    may_be_worse: usize,
    changed: Vec<String>,
    repeat_alarmed: Option<bool>,
}

impl From<Verdict> for VerdictRow {
    fn from(verdict: Verdict) -> VerdictRow {
        VerdictRow {
            against: verdict.against,
            is_baseline: verdict.is_baseline,
            good: verdict.good,
            tolerance: verdict.tolerance,
            alpha: verdict.alpha,
            numbers: verdict.numbers,
            worse: verdict.worse,
            may_be_worse: verdict.may_be_worse,
            changed: verdict.changed,
            repeat_alarmed: verdict.repeat_alarmed,
        }
    }
}

impl From<VerdictRow> for Verdict {
    fn from(row: VerdictRow) -> Verdict {
        Verdict {
            against: row.against,
            is_baseline: row.is_baseline,
            good: row.good,
            tolerance: row.tolerance,
            alpha: row.alpha,
            numbers: row.numbers,
            worse: row.worse,
            may_be_worse: row.may_be_worse,
            changed: row.changed,
            repeat_alarmed: row.repeat_alarmed,
        }
    }
}
