//! A run in the store.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoredRecord;
use super::states::RunStateRow;
use super::verdict::VerdictRow;
use crate::record::{JobId, Run, RunNumber, Spent};

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct RunRow {
    number: RunNumber,
    job: JobId,
    model: usize,
    selector: usize,
    only: Option<String>,
    repeat: u32,
    state: RunStateRow,
    phone: Option<String>,
    attempt: u32,
    // Since version 5.
    #[serde(default)]
    host: Option<String>,
    failed_on: Vec<String>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    reason: Option<String>,
    profile: Option<PathBuf>,
    // Since version 3.
    #[serde(default)]
    video: Option<PathBuf>,
    // Since version 4.
    #[serde(default)]
    link: Option<PathBuf>,
    // Since version 2.
    #[serde(default)]
    verdict: Option<VerdictRow>,
    // Version 0 began without these three.
    #[serde(default)]
    spent: SpentRow,
    #[serde(default)]
    journals_removed: Option<Timestamp>,
    // Its name in the bodies that people have.
    #[serde(default, rename = "visits_without_block")]
    stays_without_block: u32,
}

#[derive(Default, Serialize, Deserialize)]
struct SpentRow {
    wall_ms: u64,
    busy_ms: u64,
    cool_down_ms: u64,
    waiting_ms: u64,
}

impl StoredRecord for Run {
    const WHAT: &'static str = "a run";
    const VERSION: u32 = 6;
    type Row = RunRow;
}

impl From<Run> for RunRow {
    fn from(run: Run) -> RunRow {
        RunRow {
            number: run.number,
            job: run.job,
            model: run.model,
            selector: run.selector,
            only: run.only,
            repeat: run.repeat,
            state: run.state.into(),
            phone: run.phone,
            attempt: run.attempt,
            host: run.host,
            failed_on: run.failed_on,
            started: run.started,
            ended: run.ended,
            reason: run.reason,
            profile: run.profile,
            video: run.video,
            link: run.link,
            verdict: run.verdict.map(Into::into),
            spent: run.spent.into(),
            journals_removed: run.journals_removed,
            stays_without_block: run.stays_without_block,
        }
    }
}

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Run {
        Run {
            number: row.number,
            job: row.job,
            model: row.model,
            selector: row.selector,
            only: row.only,
            repeat: row.repeat,
            state: row.state.into(),
            phone: row.phone,
            attempt: row.attempt,
            host: row.host,
            failed_on: row.failed_on,
            started: row.started,
            ended: row.ended,
            reason: row.reason,
            profile: row.profile,
            video: row.video,
            link: row.link,
            verdict: row.verdict.map(Into::into),
            spent: row.spent.into(),
            journals_removed: row.journals_removed,
            stays_without_block: row.stays_without_block,
        }
    }
}

impl From<Spent> for SpentRow {
    fn from(spent: Spent) -> SpentRow {
        SpentRow {
            wall_ms: spent.wall_ms,
            busy_ms: spent.busy_ms,
            cool_down_ms: spent.cool_down_ms,
            waiting_ms: spent.waiting_ms,
        }
    }
}

impl From<SpentRow> for Spent {
    fn from(row: SpentRow) -> Spent {
        Spent {
            wall_ms: row.wall_ms,
            busy_ms: row.busy_ms,
            cool_down_ms: row.cool_down_ms,
            waiting_ms: row.waiting_ms,
        }
    }
}
