//! The lab's turn. On a server several hosts change the same jobs and runs, one after the other: who has the turn knows all that
//! the others have changed, and nobody else changes anything before it has. So each decides as if it were alone.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{AnyConnection, query, query_as, query_scalar};
use tokio::sync::oneshot;

use super::body::record;
use super::error::StoreError;
use super::place::StorePlace;
use super::request::KeepRequest;
use super::rows::StoredRecord;
use crate::record::{
    Device, DeviceQuarantine, Host, Job, JobId, JobWithRuns, LeaseState, RecordChange, Reservation,
    Run,
};

/// Where hosts tell each other that they have changed something.
pub(super) const CHANNEL: &str = "layerlab_lab";

/// The turn to change the lab. It ends when it is dropped; where there is one host, it is always that one's.
#[derive(Debug)]
pub struct Turn {
    /// What other hosts have changed since the last turn.
    pub others: OthersChanges,
    pub(super) keep: Option<oneshot::Sender<KeepRequest>>,
    pub(super) store: super::Store,
}

impl Turn {
    /// As [`super::Store::keep`]; the turn ends with it.
    pub async fn keep(self, changes: Vec<RecordChange>) -> Result<(), StoreError> {
        let Some(keep) = self.keep else {
            return self.store.keep(changes).await;
        };
        let (answer, answered) = oneshot::channel();
        let request = KeepRequest { changes, answer };
        keep.send(request).map_err(|_| StoreError::Gone)?;
        answered.await.map_err(|_| StoreError::Gone)?
    }
}

/// Where the turn goes: what others have changed, and where to send what is to be kept.
pub(super) struct TurnRequest {
    pub(super) answer: oneshot::Sender<Result<TurnAnswer, StoreError>>,
}

/// What other hosts have changed, and where to send what is to be kept.
pub(super) type TurnAnswer = (OthersChanges, oneshot::Sender<KeepRequest>);

/// What other hosts have changed, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OthersChanges {
    /// Jobs that have changed. Those that are not over come with all their runs, the others with those that have changed.
    pub jobs: Vec<JobWithRuns>,
    /// Runs that have changed, of other jobs.
    pub runs: Vec<Run>,
    /// Devices that have changed.
    pub devices: Vec<Device>,
    /// All reservations; nothing if there are no other hosts.
    pub reservations: Option<BTreeMap<i64, Reservation>>,
    /// All devices that the hosts leave alone, by their serials.
    pub quarantine: BTreeMap<String, DeviceQuarantine>,
    /// The numbers of the last event, of the last job and of the last run in the store.
    pub last: (i64, i64, i64),
    /// The other hosts.
    pub hosts: Vec<Host>,
}

impl OthersChanges {
    /// Whether any run has changed.
    pub(super) fn has_runs(&self) -> bool {
        !self.runs.is_empty() || self.jobs.iter().any(|job| !job.runs.is_empty())
    }
}

/// The advisory lock for which hosts wait before the lab's row, first come, first served. Who waits for a row alone is overtaken
/// by those who come when it has just been changed.
const WAITING_LINE: i64 = i64::from_be_bytes(*b"lab turn");

/// Takes the turn in `transaction`, and says which change of the lab this is.
pub(super) async fn take(transaction: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    query("SELECT pg_advisory_xact_lock($1)")
        .bind(WAITING_LINE)
        .execute(&mut *transaction)
        .await?;
    query_scalar("UPDATE lab SET revision = revision + 1 RETURNING revision")
        .fetch_one(transaction)
        .await
}

/// The last change of the lab.
pub(super) async fn revision(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    query_scalar("SELECT revision FROM lab")
        .fetch_one(connection)
        .await
}

/// What hosts tell each other of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The number of the row of the host that has changed something.
    pub(super) host: i64,
    /// The number of the last event then.
    pub(super) last_event: i64,
    /// Whether others may have something to do because of it.
    pub(super) is_to_decide: bool,
}

/// How a notification ends of which others need to do nothing.
const NOTHING_TO_DECIDE: &str = " nothing-to-decide";

/// Tells the other hosts of a change when the transaction ends; `host` is the number of this one's row.
pub(super) async fn tell(
    transaction: &mut AnyConnection,
    host: i64,
    is_to_decide: bool,
) -> Result<(), sqlx::Error> {
    query(
        "SELECT pg_notify($1, $2 || ' ' || (SELECT CAST(COALESCE(MAX(number), 0) AS TEXT) FROM events) || $3)",
    )
    .bind(CHANNEL)
    .bind(host.to_string())
    .bind(if is_to_decide { "" } else { NOTHING_TO_DECIDE })
    .execute(transaction)
    .await?;
    Ok(())
}

/// What a notification says.
pub(super) fn told(payload: &str) -> Option<Told> {
    let (numbers, is_to_decide) = match payload.strip_suffix(NOTHING_TO_DECIDE) {
        Some(numbers) => (numbers, false),
        None => (payload, true),
    };
    let (host, last_event) = numbers.split_once(' ')?;
    Some(Told {
        host: host.parse().ok()?,
        last_event: last_event.parse().ok()?,
        is_to_decide,
    })
}

/// Sees that no host can write any more that lost its lease longer than `patience` ago: its runs are about to be given to others.
pub(super) async fn fence(
    transaction: &mut AnyConnection,
    host: i64,
    patience: Duration,
) -> Result<(), sqlx::Error> {
    query(
        "UPDATE hosts SET number = number + 1, process = 0 \
         WHERE id <> $1 AND process <> 0 AND lease_until + $2 < lab_time()",
    )
    .bind(host)
    .bind(i64::try_from(patience.as_secs()).unwrap_or(i64::from(i32::MAX)))
    .execute(transaction)
    .await?;
    Ok(())
}

/// What has changed after the change `since` by others; `host` is the number of this one's row.
pub(super) async fn others(
    place: &StorePlace,
    connection: &mut AnyConnection,
    host: i64,
    since: i64,
) -> Result<Result<OthersChanges, StoreError>, sqlx::Error> {
    let jobs = changed(
        connection,
        "SELECT body FROM jobs WHERE revision > $1 ORDER BY id",
        since,
    )
    .await?;
    let runs = changed(
        connection,
        // Each half by an index; with OR the server would read all runs.
        "SELECT body FROM (SELECT number, body FROM runs WHERE revision > $1 \
         UNION SELECT runs.number, runs.body FROM runs JOIN jobs ON jobs.id = runs.job \
         WHERE jobs.revision > $1 AND jobs.state IN ('open', 'recurring', 'paused')) AS changed \
         ORDER BY number",
        since,
    )
    .await?;
    let devices = changed(
        connection,
        "SELECT body FROM devices WHERE revision > $1",
        since,
    )
    .await?;
    let reservations: Vec<String> = query_scalar("SELECT body FROM reservations")
        .fetch_all(&mut *connection)
        .await?;
    let quarantine: Vec<String> = query_scalar("SELECT body FROM quarantine")
        .fetch_all(&mut *connection)
        .await?;
    let last = query_as(
        "SELECT (SELECT COALESCE(MAX(number), 0) FROM events), (SELECT COALESCE(MAX(id), 0) FROM jobs), \
         (SELECT COALESCE(MAX(number), 0) FROM runs)",
    )
    .fetch_one(&mut *connection)
    .await?;
    let hosts = hosts(connection, host, place.host_patience()).await?;
    Ok((|| {
        let mut runs_of: BTreeMap<JobId, Vec<Run>> = BTreeMap::new();
        for run in records::<Run>(place, &runs)? {
            runs_of.entry(run.job).or_default().push(run);
        }
        let jobs: Vec<Job> = records(place, &jobs)?;
        let with_runs = jobs.into_iter().map(|job| {
            let runs = runs_of.remove(&job.id).unwrap_or_default();
            JobWithRuns { job, runs }
        });
        let jobs = with_runs.collect();
        let reservations: Vec<Reservation> = records(place, &reservations)?;
        let reservations = reservations.into_iter().map(|one| (one.id, one));
        let quarantine: Vec<DeviceQuarantine> = records(place, &quarantine)?;
        let quarantine = quarantine.into_iter().map(|one| (one.device.clone(), one));
        Ok(OthersChanges {
            jobs,
            runs: runs_of.into_values().flatten().collect(),
            devices: records(place, &devices)?,
            reservations: Some(reservations.collect()),
            quarantine: quarantine.collect(),
            last,
            hosts,
        })
    })())
}

async fn changed(
    connection: &mut AnyConnection,
    question: &'static str,
    since: i64,
) -> Result<Vec<String>, sqlx::Error> {
    query_scalar(question)
        .bind(since)
        .fetch_all(connection)
        .await
}

fn records<T: StoredRecord>(place: &StorePlace, bodies: &[String]) -> Result<Vec<T>, StoreError> {
    bodies.iter().map(|body| record(place, body)).collect()
}

/// The hosts of the lab, but for the one whose row has the number `except`, and whether their runs are waited for longer than
/// `patience`.
pub(super) async fn hosts(
    connection: &mut AnyConnection,
    except: i64,
    patience: Duration,
) -> Result<Vec<Host>, sqlx::Error> {
    let rows: Vec<HostRow> = query_as(
        "SELECT name, machine, process, version, zone, devices, seen_at, lab_time() - lease_until FROM hosts \
         WHERE id <> $1 ORDER BY name",
    )
    .bind(except)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| host(row, patience)).collect())
}

/// Name, machine, process, version, time zone, devices, when it was seen last, and how long ago its lease ended.
type HostRow = (String, String, i64, String, String, String, i64, i64);

fn host(
    (name, machine, process, version, zone, devices, seen_at, over): HostRow,
    patience: Duration,
) -> Host {
    let lease = match (process, over) {
        (0, _) => LeaseState::Ended,
        (_, ..=0) => LeaseState::Alive,
        _ => LeaseState::Lost,
    };
    let lease_over = Duration::from_secs(over.max(0).unsigned_abs());
    Host {
        name,
        machine,
        process: u32::try_from(process).ok().filter(|&process| process > 0),
        version,
        zone: Some(zone).filter(|zone| !zone.is_empty()),
        devices: serde_json::from_str(&devices).unwrap_or_default(),
        lease,
        seen: Timestamp::from_second(seen_at).unwrap_or_default(),
        lease_over,
        // One with a daemon is fenced before its runs are given to others.
        is_given_up: lease == LeaseState::Ended && lease_over > patience,
    }
}
