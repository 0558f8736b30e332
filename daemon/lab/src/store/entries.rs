//! Journals in the store: entries that follow one another without a gap.

use std::collections::HashMap;

use layerlab_protocol::{self as protocol, Entry, RunId};
use serde::Deserialize;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::obstacle::Obstacle;
use crate::journal;
use crate::record::RunNumber;

/// So many entries are written by one statement: a server is asked once for all of them.
const ROWS: usize = 64;

/// The last entry that was kept of each run, as far as it was asked for since the last rollback.
pub(super) type LastEntries = HashMap<RunId, u64>;

/// Keeps what a journal goes on with; entries that are there already must be the same. `host` is the number of this host's row, if
/// there are any: a run that another host has claimed is that one's to write of.
pub(super) async fn keep_entries(
    to: &mut AnyConnection,
    last_entries: &mut LastEntries,
    run: &RunId,
    entries: &[Entry],
    host: Option<i64>,
) -> Result<(), Obstacle> {
    if let (Some(host), Some(number)) = (host, journal::run_of(run))
        && !is_claimed(to, number, host).await?
    {
        let reason =
            format!("run {number} is another host's by now, which goes on with its journal");
        // Nothing is wrong with the journal.
        return Err(Obstacle::Refused {
            reason,
            journal: None,
        });
    }
    let refused = |reason: String| Obstacle::Refused {
        reason,
        journal: Some(run.clone()),
    };
    let mut last = match last_entries.get(run) {
        Some(last) => *last,
        None => last_entry(to, run).await?,
    };
    let mut new = Vec::with_capacity(entries.len());
    for entry in entries {
        let sequence = entry.sequence;
        if sequence == 0 || sequence > last + 1 {
            return Err(refused(format!(
                "entry {sequence} of run {run} was to follow entry {last}"
            )));
        }
        if sequence <= last {
            // It may be one of this call.
            keep_new(to, run, &mut new).await?;
            if !is_kept(to, run, entry).await? {
                return Err(refused(format!(
                    "there is another entry {sequence} of run {run}"
                )));
            }
            continue;
        }
        new.push(entry);
        last = sequence;
    }
    keep_new(to, run, &mut new).await?;
    last_entries.insert(run.clone(), last);
    Ok(())
}

/// Whether no other host than that of this row has claimed the run, and none does before the transaction ends.
async fn is_claimed(
    in_transaction: &mut AnyConnection,
    run: RunNumber,
    host: i64,
) -> Result<bool, sqlx::Error> {
    let claimed: Option<i64> = sqlx::query_scalar(
        "SELECT runs.number FROM runs JOIN hosts ON COALESCE(CAST(runs.body AS JSON) ->> 'host', hosts.name) = hosts.name \
         WHERE runs.number = $1 AND hosts.id = $2 FOR SHARE OF runs",
    )
    .bind(run)
    .bind(host)
    .fetch_optional(in_transaction)
    .await?;
    Ok(claimed.is_some())
}

async fn last_entry(of: &mut AnyConnection, run: &RunId) -> Result<u64, Obstacle> {
    let last: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(sequence), 0) FROM entries WHERE run = $1")
            .bind(run.as_str())
            .fetch_one(of)
            .await?;
    Ok(last.unsigned_abs())
}

/// Writes entries that follow what is there, and leaves none to be written.
async fn keep_new(
    to: &mut AnyConnection,
    run: &RunId,
    new: &mut Vec<&Entry>,
) -> Result<(), Obstacle> {
    for entries in new.chunks(ROWS) {
        insert(to, run, entries).await?;
    }
    new.clear();
    Ok(())
}

async fn insert(to: &mut AnyConnection, run: &RunId, entries: &[&Entry]) -> Result<(), Obstacle> {
    let rows = (0..entries.len()).map(|row| {
        let [sequence, order, kind, body] = [2, 3, 4, 5].map(|column| 4 * row + column);
        format!("($1, ${sequence}, ${order}, ${kind}, ${body})")
    });
    let statement = format!(
        "INSERT INTO entries (run, sequence, order_number, kind, body) VALUES {} \
         ON CONFLICT (run, sequence) DO NOTHING",
        rows.collect::<Vec<_>>().join(", ")
    );
    // Numbers of arguments alone differ.
    let mut statement = sqlx::query(AssertSqlSafe(statement)).bind(run.as_str());
    for entry in entries {
        let body = serde_json::to_string(&entry.event)?;
        let EntryKind { kind } = serde_json::from_str(&body)?;
        statement = statement
            .bind(entry.sequence.cast_signed())
            .bind(i64::from(entry.order))
            .bind(kind.to_owned())
            .bind(body);
    }
    statement.execute(to).await?;
    Ok(())
}

/// Whether just this entry is there. What is written may differ from version to version, what is read must not.
async fn is_kept(to: &mut AnyConnection, run: &RunId, entry: &Entry) -> Result<bool, Obstacle> {
    let kept: Option<(i64, String)> =
        sqlx::query_as("SELECT order_number, body FROM entries WHERE run = $1 AND sequence = $2")
            .bind(run.as_str())
            .bind(entry.sequence.cast_signed())
            .fetch_optional(to)
            .await?;
    Ok(kept.is_some_and(|(order, body)| {
        order == i64::from(entry.order)
            && serde_json::from_str::<protocol::Event>(&body)
                .is_ok_and(|event| event == entry.event)
    }))
}

/// The kind of a journal's event, out of its JSON.
#[derive(Deserialize)]
struct EntryKind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}
