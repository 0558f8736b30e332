//! Reading the store, also while a daemon writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use layerlab_protocol::Entry;
use layerlab_protocol::RunId;
use serde::de::DeserializeOwned;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

use super::apart::apart;
use super::change::text;
use super::error::StoreError;
use super::schema;
use crate::record::{Device, Event, Job, Kept, Reservation, Run};

/// Reads the store of a lab without being its daemon.
#[derive(Clone, Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Arc<Mutex<SqliteConnection>>,
}

impl Reader {
    /// Opens the store in `folder`, which must be there.
    pub async fn open(folder: &Path) -> Result<Reader, StoreError> {
        let path = schema::file(folder);
        apart(Reader::at(path)).await?
    }

    pub(super) async fn at(path: PathBuf) -> Result<Reader, StoreError> {
        let connection = schema::connect_to_read(&path).await?;
        Ok(Reader {
            path,
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// Everything but journals and events, as of one moment.
    pub async fn all(&self) -> Result<Kept, StoreError> {
        let reader = self.clone();
        apart(async move { reader.load().await }).await?
    }

    pub(super) async fn load(&self) -> Result<Kept, StoreError> {
        let tables = {
            let mut connection = self.connection.lock().await;
            Tables::read(&mut connection)
                .await
                .map_err(|error| self.failed(&error))?
        };
        Ok(Kept {
            lab: tables.lab,
            jobs: self.by("a job", &tables.jobs, |job: &Job| job.id)?,
            runs: self.by("a run", &tables.runs, |run: &Run| run.number)?,
            devices: self.by("a device", &tables.devices, |device: &Device| {
                device.name.clone()
            })?,
            reservations: self.by("a reservation", &tables.reservations, |it: &Reservation| {
                it.id
            })?,
            last_event: tables.last_event,
        })
    }

    /// What happened from `since` on, and before `until`, in order.
    pub async fn events(
        &self,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Event>, StoreError> {
        let reader = self.clone();
        let bodies: Vec<String> = apart(async move {
            sqlx::query_scalar("SELECT body FROM events WHERE at >= $1 AND at < $2 ORDER BY number")
                .bind(text(since))
                .bind(text(until))
                .fetch_all(&mut *reader.connection.lock().await)
                .await
        })
        .await?
        .map_err(|error| self.failed(&error))?;
        bodies
            .iter()
            .map(|body| self.parsed("an event", body))
            .collect()
    }

    /// The journal of a run as far as it was kept, in order.
    pub async fn entries(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        let reader = self.clone();
        let run = run.clone();
        let rows: Vec<(i64, i64, String)> = apart(async move {
            sqlx::query_as(
                "SELECT sequence, order_number, body FROM entries WHERE run = $1 ORDER BY sequence",
            )
            .bind(run.as_str())
            .fetch_all(&mut *reader.connection.lock().await)
            .await
        })
        .await?
        .map_err(|error| self.failed(&error))?;
        let entry = |(sequence, order, body): &(i64, i64, String)| {
            Ok(Entry {
                sequence: sequence.cast_unsigned(),
                order: u32::try_from(*order).map_err(|error| StoreError::Damaged {
                    path: self.path.clone(),
                    reason: format!("an entry is of order {order}: {error}"),
                })?,
                event: self.parsed("an entry", body)?,
            })
        };
        rows.iter().map(entry).collect()
    }

    fn by<K: Ord, T: DeserializeOwned>(
        &self,
        what: &str,
        bodies: &[String],
        key: impl Fn(&T) -> K,
    ) -> Result<BTreeMap<K, T>, StoreError> {
        let record = |body: &String| {
            let record: T = self.parsed(what, body)?;
            Ok((key(&record), record))
        };
        bodies.iter().map(record).collect()
    }

    fn parsed<T: DeserializeOwned>(&self, what: &str, body: &str) -> Result<T, StoreError> {
        serde_json::from_str(body).map_err(|error| StoreError::unreadable(&self.path, what, &error))
    }

    fn failed(&self, error: &sqlx::Error) -> StoreError {
        StoreError::of_database(&self.path, error)
    }
}

/// The tables, in one transaction.
struct Tables {
    lab: String,
    jobs: Vec<String>,
    runs: Vec<String>,
    devices: Vec<String>,
    reservations: Vec<String>,
    last_event: i64,
}

impl Tables {
    async fn read(connection: &mut SqliteConnection) -> Result<Tables, sqlx::Error> {
        let mut view = connection.begin().await?;
        let lab = sqlx::query_scalar("SELECT id FROM lab")
            .fetch_optional(&mut *view)
            .await?
            .unwrap_or_default();
        let jobs = sqlx::query_scalar("SELECT body FROM jobs")
            .fetch_all(&mut *view)
            .await?;
        let runs = sqlx::query_scalar("SELECT body FROM runs")
            .fetch_all(&mut *view)
            .await?;
        let devices = sqlx::query_scalar("SELECT body FROM devices")
            .fetch_all(&mut *view)
            .await?;
        let reservations = sqlx::query_scalar("SELECT body FROM reservations")
            .fetch_all(&mut *view)
            .await?;
        let last_event = sqlx::query_scalar("SELECT COALESCE(MAX(number), 0) FROM events")
            .fetch_one(&mut *view)
            .await?;
        view.commit().await?;
        Ok(Tables {
            lab,
            jobs,
            runs,
            devices,
            reservations,
            last_event,
        })
    }
}
