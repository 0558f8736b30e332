//! What can change in the store, and the rows that it changes.

use std::collections::HashMap;

use jiff::Timestamp;
use layerlab_protocol::RunId;
use layerlab_protocol::{self as protocol, Entry};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteConnection;

use crate::record::{Device, Event, Job, Reservation, Run};

/// Something that is to be kept. A record that is there already is replaced.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a call has few changes, and they do not live long"
)]
pub enum Change {
    /// A job that is new or has changed.
    Job(Job),
    /// A run that is new or has changed.
    Run(Run),
    /// A device that is new or has changed.
    Device(Device),
    /// A reservation that is new or has changed.
    Reservation(Reservation),
    /// The reservation of this number is over.
    ReservationGone(i64),
    /// An event. What happened does not change: another event of the same number is refused.
    Event(Event),
    /// What a run's journal goes on with. Entries that were kept before may come again.
    Entries {
        /// The name of the run's journal.
        run: RunId,
        /// The entries, in order.
        entries: Vec<Entry>,
    },
    /// The journal of this run is needed no more.
    JournalGone(RunId),
}

/// Why a change is not made.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The change itself is wrong: it will never be made.
    Refused {
        reason: String,
        journal: Option<RunId>,
    },
    /// It can be made when the database works again.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Obstacle {
    fn from(error: sqlx::Error) -> Obstacle {
        Obstacle::Database(error)
    }
}

impl From<serde_json::Error> for Obstacle {
    fn from(error: serde_json::Error) -> Obstacle {
        Obstacle::Refused {
            reason: format!("it cannot be written as JSON: {error}"),
            journal: None,
        }
    }
}

/// The last entry that was kept of each run, as far as it was asked for since the last rollback.
pub(super) type LastEntries = HashMap<RunId, u64>;

/// Times as texts in the order of the times.
pub(super) fn text(time: Timestamp) -> String {
    format!("{time:.9}")
}

impl Change {
    pub(super) async fn make(
        &self,
        to: &mut SqliteConnection,
        last_entries: &mut LastEntries,
    ) -> Result<(), Obstacle> {
        match self {
            Change::Job(job) => keep_job(to, job).await,
            Change::Run(run) => keep_run(to, run).await,
            Change::Device(device) => keep_device(to, device).await,
            Change::Reservation(reservation) => keep_reservation(to, reservation).await,
            Change::ReservationGone(id) => {
                sqlx::query("DELETE FROM reservations WHERE id = $1")
                    .bind(id)
                    .execute(to)
                    .await?;
                Ok(())
            }
            Change::Event(event) => keep_event(to, event).await,
            Change::Entries { run, entries } => keep_entries(to, last_entries, run, entries).await,
            Change::JournalGone(run) => {
                sqlx::query("DELETE FROM entries WHERE run = $1")
                    .bind(run.as_str())
                    .execute(to)
                    .await?;
                last_entries.remove(run);
                Ok(())
            }
        }
    }
}

async fn keep_job(to: &mut SqliteConnection, job: &Job) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO jobs (id, state, priority, submitted, content_sha256, body) \
         VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, priority = excluded.priority, \
         submitted = excluded.submitted, content_sha256 = excluded.content_sha256, body = excluded.body",
    )
    .bind(job.id)
    .bind(word(&job.state)?)
    .bind(i64::from(job.spec.priority))
    .bind(text(job.submitted))
    .bind(&job.content_sha256)
    .bind(serde_json::to_string(job)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_run(to: &mut SqliteConnection, run: &Run) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO runs (number, job, state, device, attempt, body) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (number) DO UPDATE SET job = excluded.job, state = excluded.state, \
         device = excluded.device, attempt = excluded.attempt, body = excluded.body",
    )
    .bind(run.number)
    .bind(run.job)
    .bind(word(&run.state)?)
    .bind(&run.phone)
    .bind(i64::from(run.attempt))
    .bind(serde_json::to_string(run)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_device(to: &mut SqliteConnection, device: &Device) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO devices (name, body) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET body = excluded.body",
    )
    .bind(&device.name)
    .bind(serde_json::to_string(device)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_reservation(
    to: &mut SqliteConnection,
    reservation: &Reservation,
) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO reservations (id, device, from_at, until_at, body) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (id) DO UPDATE SET device = excluded.device, from_at = excluded.from_at, \
         until_at = excluded.until_at, body = excluded.body",
    )
    .bind(reservation.id)
    .bind(&reservation.device)
    .bind(text(reservation.from))
    .bind(text(reservation.until))
    .bind(serde_json::to_string(reservation)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_event(to: &mut SqliteConnection, event: &Event) -> Result<(), Obstacle> {
    let what = serde_json::to_string(&event.what)?;
    let WhatKind { kind } = serde_json::from_str(&what)?;
    let kept = sqlx::query(
        "INSERT INTO events (number, at, job, run, device, kind, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (number) DO NOTHING",
    )
    .bind(event.number)
    .bind(text(event.at))
    .bind(event.job)
    .bind(event.run)
    .bind(&event.device)
    .bind(kind)
    .bind(serde_json::to_string(event)?)
    .execute(&mut *to)
    .await?;
    if kept.rows_affected() > 0 {
        return Ok(());
    }
    let before: String = sqlx::query_scalar("SELECT body FROM events WHERE number = $1")
        .bind(event.number)
        .fetch_one(to)
        .await?;
    if serde_json::from_str::<Event>(&before).is_ok_and(|before| before == *event) {
        return Ok(());
    }
    Err(Obstacle::Refused {
        reason: format!("there is another event {}", event.number),
        journal: None,
    })
}

async fn keep_entries(
    to: &mut SqliteConnection,
    last_entries: &mut LastEntries,
    run: &RunId,
    entries: &[Entry],
) -> Result<(), Obstacle> {
    let refused = |reason: String| Obstacle::Refused {
        reason,
        journal: Some(run.clone()),
    };
    let mut last = match last_entries.get(run) {
        Some(last) => *last,
        None => last_entry(to, run).await?,
    };
    for entry in entries {
        let sequence = entry.sequence;
        if sequence == 0 || sequence > last + 1 {
            return Err(refused(format!(
                "entry {sequence} of run {run} was to follow entry {last}"
            )));
        }
        if sequence <= last {
            if !is_kept(to, run, entry).await? {
                return Err(refused(format!(
                    "there is another entry {sequence} of run {run}"
                )));
            }
            continue;
        }
        keep_entry(to, run, entry).await?;
        last = sequence;
    }
    last_entries.insert(run.clone(), last);
    Ok(())
}

async fn last_entry(of: &mut SqliteConnection, run: &RunId) -> Result<u64, Obstacle> {
    let last: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(sequence), 0) FROM entries WHERE run = $1")
            .bind(run.as_str())
            .fetch_one(of)
            .await?;
    Ok(last.unsigned_abs())
}

async fn keep_entry(to: &mut SqliteConnection, run: &RunId, entry: &Entry) -> Result<(), Obstacle> {
    let body = serde_json::to_string(&entry.event)?;
    let EntryKind { kind } = serde_json::from_str(&body)?;
    sqlx::query(
        "INSERT INTO entries (run, sequence, order_number, kind, body) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (run, sequence) DO NOTHING",
    )
    .bind(run.as_str())
    .bind(entry.sequence.cast_signed())
    .bind(i64::from(entry.order))
    .bind(kind)
    .bind(body.as_str())
    .execute(to)
    .await?;
    Ok(())
}

/// Whether just this entry is there. What is written may differ from version to version, what is read must not.
async fn is_kept(to: &mut SqliteConnection, run: &RunId, entry: &Entry) -> Result<bool, Obstacle> {
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

/// The kind of an event of the lab, out of its JSON.
#[derive(Deserialize)]
struct WhatKind<'a> {
    kind: &'a str,
}

/// The kind of a journal's event, out of its JSON.
#[derive(Deserialize)]
struct EntryKind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

/// A value that is one word in JSON.
fn word<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(value)?)
}
