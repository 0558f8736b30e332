//! Makes changes: writes the rows of the records that changed.

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::AnyConnection;

use super::entries::{LastEntries, keep_entries};
use super::obstacle::Obstacle;
use super::rows;
use crate::record::{Device, DeviceQuarantine, Event, Job, RecordChange, Reservation, Run};

/// Times as texts in the order of the times.
pub(super) fn text(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Makes a change in the database; `host` is the number of this host's row, if there are any.
pub(super) async fn make(
    change: &RecordChange,
    to: &mut AnyConnection,
    last_entries: &mut LastEntries,
    host: Option<i64>,
) -> Result<(), Obstacle> {
    match change {
        RecordChange::Job(job) => keep_job(to, job).await,
        RecordChange::Run(run) => keep_run(to, run).await,
        RecordChange::Device(device) => keep_device(to, device).await,
        RecordChange::DevicesHere(names) => match host {
            Some(host) => keep_devices_here(to, host, names).await,
            None => Ok(()),
        },
        RecordChange::Reservation(reservation) => keep_reservation(to, reservation).await,
        RecordChange::ReservationGone(id) => {
            sqlx::query("DELETE FROM reservations WHERE id = $1")
                .bind(id)
                .execute(to)
                .await?;
            Ok(())
        }
        // Where one host has the lab, its file has them.
        RecordChange::Quarantine(_) | RecordChange::QuarantineGone(_) if host.is_none() => Ok(()),
        RecordChange::Quarantine(quarantine) => keep_quarantine(to, quarantine).await,
        RecordChange::QuarantineGone(device) => {
            sqlx::query("DELETE FROM quarantine WHERE device = $1")
                .bind(device)
                .execute(to)
                .await?;
            Ok(())
        }
        RecordChange::Event(event) => keep_event(to, event).await,
        RecordChange::Entries { run, entries } => {
            keep_entries(to, last_entries, run, entries, host).await
        }
        RecordChange::JournalGone(run) => {
            sqlx::query("DELETE FROM entries WHERE run = $1")
                .bind(run.as_str())
                .execute(to)
                .await?;
            last_entries.remove(run);
            Ok(())
        }
    }
}

async fn keep_job(to: &mut AnyConnection, job: &Job) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO jobs (id, state, priority, submitted, content_sha256, body) \
         VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, priority = excluded.priority, \
         submitted = excluded.submitted, content_sha256 = excluded.content_sha256, body = excluded.body",
    )
    .bind(job.id)
    .bind(job.state.to_string())
    .bind(i64::from(job.spec.priority))
    .bind(text(job.submitted))
    .bind(&job.content_sha256)
    .bind(rows::body(job)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_run(to: &mut AnyConnection, run: &Run) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO runs (number, job, state, device, attempt, body) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (number) DO UPDATE SET job = excluded.job, state = excluded.state, \
         device = excluded.device, attempt = excluded.attempt, body = excluded.body",
    )
    .bind(run.number)
    .bind(run.job)
    .bind(run.state.to_string())
    .bind(&run.phone)
    .bind(i64::from(run.attempt))
    .bind(rows::body(run)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_device(to: &mut AnyConnection, device: &Device) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO devices (name, body) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET body = excluded.body",
    )
    .bind(&device.name)
    .bind(rows::body(device)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_devices_here(
    to: &mut AnyConnection,
    host: i64,
    names: &[String],
) -> Result<(), Obstacle> {
    sqlx::query("UPDATE hosts SET devices = $2 WHERE id = $1")
        .bind(host)
        .bind(serde_json::to_string(names)?)
        .execute(to)
        .await?;
    Ok(())
}

async fn keep_reservation(
    to: &mut AnyConnection,
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
    .bind(rows::body(reservation)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_quarantine(
    to: &mut AnyConnection,
    quarantine: &DeviceQuarantine,
) -> Result<(), Obstacle> {
    sqlx::query(
        "INSERT INTO quarantine (device, body) VALUES ($1, $2) \
         ON CONFLICT (device) DO UPDATE SET body = excluded.body",
    )
    .bind(&quarantine.device)
    .bind(rows::body(quarantine)?)
    .execute(to)
    .await?;
    Ok(())
}

async fn keep_event(to: &mut AnyConnection, event: &Event) -> Result<(), Obstacle> {
    let body = rows::body(event)?;
    let EventBody { what } = serde_json::from_str(&body)?;
    let kept = sqlx::query(
        "INSERT INTO events (number, at, job, run, device, kind, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (number) DO NOTHING",
    )
    .bind(event.number)
    .bind(text(event.at))
    .bind(event.job)
    .bind(event.run)
    .bind(&event.device)
    .bind(what.kind)
    .bind(&body)
    .execute(&mut *to)
    .await?;
    if kept.rows_affected() > 0 {
        return Ok(());
    }
    let before: String = sqlx::query_scalar("SELECT body FROM events WHERE number = $1")
        .bind(event.number)
        .fetch_one(to)
        .await?;
    if rows::record::<Event>(&before).is_ok_and(|before| before == *event) {
        return Ok(());
    }
    Err(Obstacle::Refused {
        reason: format!("there is another event {}", event.number),
        journal: None,
    })
}

/// What happened, out of the body of an event.
#[derive(Deserialize)]
struct EventBody<'a> {
    #[serde(borrow)]
    what: WhatKind<'a>,
}

/// The kind of an event, out of the body's JSON.
#[derive(Deserialize)]
struct WhatKind<'a> {
    kind: &'a str,
}
