//! Reading the store, also while a daemon writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use layerlab_protocol::{Entry, Event, Order, RunId};
use sqlx::AnyConnection;
use sqlx::Connection;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::apart::apart;
use super::body::record;
use super::error::StoreError;
use super::in_time::in_time;
use super::make::text;
use super::obstacle::Unanswered;
use super::place::StorePlace;
use super::rows::StoredRecord;
use super::schema;
use super::turn;
use crate::record::{self, Device, Host, Job, JobState, Kept, Reservation, Run, RunNumber};

/// The pause before a patient reader asks again.
const RETRY: Duration = Duration::from_secs(1);

/// Reads the store of a lab without being its daemon.
#[derive(Clone, Debug)]
pub struct Reader {
    place: StorePlace,
    /// None after it was lost: the next question makes another one.
    connection: Arc<Mutex<Option<AnyConnection>>>,
    /// Whether it waits for a server that is away.
    is_patient: bool,
}

impl Reader {
    /// Opens the store of the lab in `folder`, which must be there.
    pub async fn open(folder: &Path) -> Result<Reader, StoreError> {
        Reader::at(StorePlace::of_lab(folder)?).await
    }

    pub(super) async fn at(place: StorePlace) -> Result<Reader, StoreError> {
        if place.is_missing() {
            return Err(StoreError::Missing);
        }
        let connection = apart({
            let place = place.clone();
            move || async move { connect(&place).await }
        });
        Ok(Reader {
            connection: Arc::new(Mutex::new(Some(connection.await??))),
            place,
            is_patient: false,
        })
    }

    /// The same, waiting for a server that is away until it is back.
    pub(super) fn with_patience(self) -> Reader {
        Reader {
            is_patient: true,
            ..self
        }
    }

    /// What the database answers to `question`, which is asked again on a new connection if the one that there is was lost.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl AsyncFn(&mut AnyConnection) -> Result<T, Unanswered> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let question = Arc::new(question);
        loop {
            let (place, question) = (self.place.clone(), Arc::clone(&question));
            let connection = Arc::clone(&self.connection);
            let answered = apart(move || async move {
                let mut connection = connection.lock().await;
                if let Some(known) = connection.as_mut() {
                    match answer(&place, known, &*question).await {
                        Err(StoreError::Away { .. }) => *connection = None,
                        answered => return answered,
                    }
                }
                let mut new = connect(&place).await?;
                let answered = answer(&place, &mut new, &*question).await;
                if !matches!(answered, Err(StoreError::Away { .. })) {
                    *connection = Some(new);
                }
                answered
            });
            match answered.await? {
                Err(error @ StoreError::Away { .. }) if self.is_patient => {
                    tracing::debug!(%error, "a question waits");
                    sleep(RETRY).await;
                }
                answered => return answered,
            }
        }
    }

    /// Everything but journals and events, as of one moment.
    pub async fn all(&self) -> Result<Kept, StoreError> {
        self.load(Extent::All).await
    }

    /// The runs of these numbers, as far as they are known.
    pub(crate) async fn runs(&self, numbers: &BTreeSet<RunNumber>) -> Result<Vec<Run>, StoreError> {
        let numbers = numbers.clone();
        let bodies = self.ask(async move |connection: &mut AnyConnection| {
            let mut bodies: Vec<String> = Vec::with_capacity(numbers.len());
            for number in &numbers {
                let run = sqlx::query_scalar("SELECT body FROM runs WHERE number = $1");
                bodies.extend(run.bind(number).fetch_optional(&mut *connection).await?);
            }
            Ok(bodies)
        });
        let bodies = bodies.await?;
        bodies.iter().map(|body| self.record(body)).collect()
    }

    /// Everything but journals and events without the jobs that are over.
    pub async fn unfinished(&self) -> Result<Kept, StoreError> {
        self.load(Extent::Open).await
    }

    /// The same, with what a daemon needs of recurring jobs.
    pub(super) async fn open_jobs(&self) -> Result<Kept, StoreError> {
        let kept = self.load(Extent::Open).await?;
        let recurring = kept.jobs.values();
        let recurring = recurring.filter(|job| job.state == JobState::Recurring);
        Ok(Kept {
            last_occurrences: self.last_occurrences(recurring.cloned().collect()).await?,
            ..kept
        })
    }

    async fn load(&self, extent: Extent) -> Result<Kept, StoreError> {
        let tables = self.ask(async move |connection: &mut AnyConnection| {
            Ok(Tables::read(connection, extent).await?)
        });
        let tables = tables.await?;
        Ok(Kept {
            lab: tables.lab,
            jobs: self.by(tables.jobs, |job: &Job| job.id)?,
            runs: self.by(tables.runs, |run: &Run| run.number)?,
            devices: self.by(tables.devices, |device: &Device| device.name.clone())?,
            reservations: self.by(tables.reservations, |it: &Reservation| it.id)?,
            last_event: tables.last_event,
            last_job: tables.last_job,
            last_run: tables.last_run,
            last_occurrences: BTreeMap::new(),
            host: None,
        })
    }

    /// What happened from `since` on, and before `until`, in order.
    pub async fn events(
        &self,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<record::Event>, StoreError> {
        let bodies: Vec<String> = self
            .ask(async move |connection: &mut AnyConnection| {
                let events = "SELECT body FROM events WHERE at >= $1 AND at < $2 ORDER BY number";
                let events = sqlx::query_scalar(events);
                let events = events.bind(text(since)).bind(text(until));
                Ok(events.fetch_all(connection).await?)
            })
            .await?;
        bodies.iter().map(|body| self.record(body)).collect()
    }

    /// What happened after the event of number `after`, in order, at most `most` events.
    pub async fn events_after(
        &self,
        after: i64,
        most: u32,
    ) -> Result<Vec<record::Event>, StoreError> {
        let bodies: Vec<String> = self
            .ask(async move |connection: &mut AnyConnection| {
                let events = "SELECT body FROM events WHERE number > $1 ORDER BY number LIMIT $2";
                let events = sqlx::query_scalar(events);
                let events = events.bind(after).bind(i64::from(most));
                Ok(events.fetch_all(connection).await?)
            })
            .await?;
        bodies.iter().map(|body| self.record(body)).collect()
    }

    /// The journal of a run as far as it was kept, in order.
    pub async fn entries(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        let all = "SELECT sequence, order_number, body FROM entries WHERE run = $1 AND sequence > $2 ORDER BY sequence";
        self.chosen_entries(all, run, 0).await
    }

    /// The last entries of it, at most `most`, in order.
    pub async fn last_entries(&self, run: &RunId, most: u32) -> Result<Vec<Entry>, StoreError> {
        let last = "SELECT sequence, order_number, body FROM entries WHERE run = $1 ORDER BY sequence DESC LIMIT $2";
        let mut entries = self.chosen_entries(last, run, most.into()).await?;
        entries.reverse();
        Ok(entries)
    }

    /// An order of a run, if it is in the journal.
    pub async fn order(&self, run: &RunId, number: u32) -> Result<Option<Order>, StoreError> {
        let accepted = "SELECT sequence, order_number, body FROM entries \
                        WHERE run = $1 AND order_number = $2 AND kind = 'accepted' LIMIT 1";
        let entries = self.chosen_entries(accepted, run, number.into()).await?;
        let mut orders = entries.into_iter().filter_map(|entry| match entry.event {
            Event::Accepted { order } => Some(order),
            _ => None,
        });
        Ok(orders.next())
    }

    /// What a question about a journal and a number finds.
    async fn chosen_entries(
        &self,
        question: &'static str,
        run: &RunId,
        number: i64,
    ) -> Result<Vec<Entry>, StoreError> {
        let run = run.clone();
        let rows: Vec<(i64, i64, String)> = self
            .ask(async move |connection: &mut AnyConnection| {
                let entries = sqlx::query_as(question);
                let entries = entries.bind(run.as_str()).bind(number);
                Ok(entries.fetch_all(connection).await?)
            })
            .await?;
        let entry = |(sequence, order, body): &(i64, i64, String)| {
            Ok(Entry {
                sequence: sequence.cast_unsigned(),
                order: u32::try_from(*order).map_err(|error| StoreError::Damaged {
                    place: self.place.clone(),
                    reason: format!("an entry is of order {order}: {error}"),
                })?,
                event: serde_json::from_str(body)
                    .map_err(|error| StoreError::unreadable(&self.place, "an entry", &error))?,
            })
        };
        rows.iter().map(entry).collect()
    }

    /// How many bytes the journal of each run takes, by its name.
    pub async fn journal_sizes(&self) -> Result<Vec<(RunId, u64)>, StoreError> {
        let rows: Vec<(String, i64)> = self
            .ask(async |connection: &mut AnyConnection| {
                let sizes = "SELECT run, SUM(OCTET_LENGTH(body)) FROM entries GROUP BY run";
                Ok(sqlx::query_as(sizes).fetch_all(connection).await?)
            })
            .await?;
        let sizes = rows.into_iter();
        let sizes =
            sizes.filter_map(|(run, bytes)| Some((RunId::new(run).ok()?, bytes.cast_unsigned())));
        Ok(sizes.collect())
    }

    /// How many jobs, runs and events the store holds.
    pub async fn counts(&self) -> Result<StoreCounts, StoreError> {
        let all: Vec<BTreeMap<String, i64>> = self
            .ask(async |connection: &mut AnyConnection| {
                let mut view = connection.begin().await?;
                let mut all = Vec::new();
                for count in [
                    "SELECT state, COUNT(*) FROM jobs GROUP BY state",
                    "SELECT state, COUNT(*) FROM runs GROUP BY state",
                    "SELECT kind, COUNT(*) FROM events GROUP BY kind",
                ] {
                    let rows: Vec<(String, i64)> =
                        sqlx::query_as(count).fetch_all(&mut *view).await?;
                    all.push(rows.into_iter().collect());
                }
                view.commit().await?;
                Ok(all)
            })
            .await?;
        let mut all = all.into_iter();
        let mut next = || all.next().unwrap_or_default();
        Ok(StoreCounts {
            jobs: next(),
            runs: next(),
            events: next(),
        })
    }

    /// Each text goes as soon as it is read: there may be hundreds of megabytes.
    fn by<K: Ord, T: StoredRecord>(
        &self,
        bodies: Vec<String>,
        key: impl Fn(&T) -> K,
    ) -> Result<BTreeMap<K, T>, StoreError> {
        let record = |body: String| {
            let record: T = self.record(&body)?;
            Ok((key(&record), record))
        };
        bodies.into_iter().map(record).collect()
    }

    pub(super) fn record<T: StoredRecord>(&self, body: &str) -> Result<T, StoreError> {
        record(&self.place, body)
    }

    /// Whether the store is on a server, so that several hosts can share it.
    pub fn is_on_server(&self) -> bool {
        self.place.is_on_server()
    }

    /// The hosts of the lab, by their names; none if its store is in a file, which one host has.
    pub async fn hosts(&self) -> Result<Vec<Host>, StoreError> {
        /// No row has this number.
        const NONE: i64 = 0;
        if !self.place.is_on_server() {
            return Ok(Vec::new());
        }
        let patience = self.place.host_patience();
        self.ask(async move |connection: &mut AnyConnection| {
            Ok(turn::hosts(connection, NONE, patience).await?)
        })
        .await
    }
}

async fn answer<T>(
    place: &StorePlace,
    connection: &mut AnyConnection,
    question: &impl AsyncFn(&mut AnyConnection) -> Result<T, Unanswered>,
) -> Result<T, StoreError> {
    let answered = in_time(question(connection)).await;
    answered.map_err(|obstacle| match obstacle {
        Unanswered::Database(error) => StoreError::of_database(place, &error),
        Unanswered::Record(error) => error,
    })
}

async fn connect(place: &StorePlace) -> Result<AnyConnection, StoreError> {
    let mut connection =
        (place.connect_to_read().await).map_err(|error| StoreError::of_database(place, &error))?;
    schema::check(place, &mut connection).await?;
    Ok(connection)
}

/// How much the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Jobs, by the words of their states.
    pub jobs: BTreeMap<String, i64>,
    /// Runs, by the words of their states.
    pub runs: BTreeMap<String, i64>,
    /// Events since the lab began, by their kinds.
    pub events: BTreeMap<String, i64>,
}

/// Which jobs and runs are read.
#[derive(Clone, Copy)]
enum Extent {
    All,
    Open,
}

impl Extent {
    fn jobs(self) -> &'static str {
        match self {
            Extent::All => "SELECT body FROM jobs",
            Extent::Open => {
                "SELECT body FROM jobs WHERE state IN ('open', 'recurring', 'paused') \
                 OR id IN (SELECT job FROM runs WHERE state IN ('queued', 'running', 'parked'))"
            }
        }
    }

    fn runs(self) -> &'static str {
        match self {
            Extent::All => "SELECT body FROM runs",
            Extent::Open => {
                "SELECT body FROM runs \
                 WHERE job IN (SELECT id FROM jobs WHERE state IN ('open', 'recurring', 'paused')) \
                 OR job IN (SELECT job FROM runs WHERE state IN ('queued', 'running', 'parked'))"
            }
        }
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
    last_job: i64,
    last_run: i64,
}

impl Tables {
    async fn read(connection: &mut AnyConnection, extent: Extent) -> Result<Tables, sqlx::Error> {
        let mut view = connection.begin().await?;
        let lab = sqlx::query_scalar("SELECT id FROM lab")
            .fetch_optional(&mut *view)
            .await?
            .unwrap_or_default();
        let jobs = sqlx::query_scalar(extent.jobs())
            .fetch_all(&mut *view)
            .await?;
        let runs = sqlx::query_scalar(extent.runs())
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
        let last_job = sqlx::query_scalar("SELECT COALESCE(MAX(id), 0) FROM jobs")
            .fetch_one(&mut *view)
            .await?;
        let last_run = sqlx::query_scalar("SELECT COALESCE(MAX(number), 0) FROM runs")
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
            last_job,
            last_run,
        })
    }
}
