//! Real devices: phones over ADB and local ones, each with its agent.

mod follow;
mod links;
mod measured;
mod open;
mod outcome;
mod unpublished;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use layerlab_protocol::RunId;
use time::OffsetDateTime;
use tokio::time::sleep;
use tracing::Instrument;

use super::bench::{Assignment, Bench, Desk, News, Passed, wait_until_ready};
use super::config::Config;
use super::gates::{Patience, Thresholds};
use super::journal;
use super::library::{InUse, Library, SharingError};
use super::readings;
use super::record::{Job, RunNumber, Spent};
use super::state::{PublicationOutcome, StayOutcome};
use crate::shared_profiles::SharedProfiles;
use crate::store::Store;
use follow::Keeper;
use layerlab_campaign::publish::SigningKey;
use layerlab_campaign::{CampaignError, CampaignPart, forget};
use layerlab_farm::adb::{AdbError, Fleet, Found};
use layerlab_farm::folders::Folders;
use layerlab_farm::host_runtimes::HostRuntimes;
use layerlab_farm::{Link, LinkError, RungCounts};
use layerlab_profiles::document::Fitness;
use measured::{Measured, RunFiles, parts};
pub use open::{OpenDevice, see};
use outcome::{has_no_room, host_is_full, lost, outcome, with_artifacts};
use unpublished::Unpublished;

/// How often to try again what this host has no room for.
const ROOM: Duration = Duration::from_secs(5);

/// The devices of this lab.
#[derive(Clone)]
pub struct Farm(Arc<Inner>);

struct Inner {
    config: Config,
    folders: Folders,
    /// The program of agents that run on this host.
    agent: PathBuf,
    /// The runtimes that this host has beside its agent's own.
    runtimes: HostRuntimes,
    /// What published profiles are signed with, if they are.
    signing_key: Option<SigningKey>,
    library: Library,
    store: Store,
    /// The phones that servers list now, by name.
    found: Mutex<BTreeMap<String, Found>>,
    /// Phones that were restored since the daemon began.
    restored: Mutex<HashSet<String>>,
    /// What is measured and could not be published yet.
    unpublished: Mutex<BTreeMap<RunNumber, Unpublished>>,
    /// Who measures a link to an edge server.
    link_turn: tokio::sync::Mutex<()>,
    /// How often links to phones failed, and what was done about it.
    failures: RungCounts,
}

impl Farm {
    /// The devices that `config` speaks of.
    pub fn new(config: Config, folders: Folders, agent: PathBuf, store: Store) -> Farm {
        let library = config.library(&folders);
        let runtimes = HostRuntimes::default();
        Farm::with_runtimes(config, folders, agent, runtimes, None, store, library)
    }

    /// The same, where this host has these runtimes, signs profiles with this key and finds copies in this library.
    pub fn with_runtimes(
        config: Config,
        folders: Folders,
        agent: PathBuf,
        runtimes: HostRuntimes,
        signing_key: Option<SigningKey>,
        store: Store,
        library: Library,
    ) -> Farm {
        Farm(Arc::new(Inner {
            library,
            config,
            folders,
            agent,
            runtimes,
            signing_key,
            store,
            found: Mutex::default(),
            restored: Mutex::default(),
            unpublished: Mutex::default(),
            link_turn: tokio::sync::Mutex::default(),
            failures: RungCounts::default(),
        }))
    }

    /// Watches phones come and go, for ever. Says to `seen` when the dispatcher knows those that were there already.
    pub async fn watch(
        &self,
        fleet: Fleet,
        messages: tokio::sync::mpsc::Sender<super::dispatcher::Message>,
        seen: tokio::sync::oneshot::Sender<()>,
    ) {
        see(self, fleet, messages, seen).await;
    }

    /// How often links to phones failed since the daemon began, and what was done about it.
    pub fn link_failures(&self) -> RungCounts {
        self.0.failures.clone()
    }

    fn thresholds(&self) -> Thresholds {
        self.0.config.gates.thresholds()
    }

    fn patience(&self) -> Patience {
        let gates = &self.0.config.gates;
        Patience {
            poll: gates.poll,
            deadline: gates.deadline,
        }
    }

    /// Where what a run gives is published.
    fn target(&self, assignment: &Assignment) -> PathBuf {
        let spec = &assignment.job.spec;
        let subject = spec.subject(assignment.run.model).unwrap_or_default();
        let folder = match &spec.profiles {
            Some(folder) => folder.clone(),
            None => self.0.config.profiles(&self.0.folders),
        };
        folder
            .join(layerlab_campaign::publish::folder_name(
                &assignment.device.name,
            ))
            .join(layerlab_campaign::publish::folder_name(subject))
            .join(format!("run-{}", assignment.run.number))
    }

    async fn attempt(
        &self,
        open_device: &mut Option<OpenDevice>,
        assignment: &Assignment,
        desk: &Desk,
        spent: &mut Spent,
    ) -> Result<StayOutcome, StayOutcome> {
        let opened = match open_device.take() {
            Some(opened) => opened,
            None => self.opened(assignment, desk, spent).await?,
        };
        let open_device = open_device.insert(opened);
        let spec = &assignment.job.spec;
        let measured = match &spec.link {
            // No processor is timed: whether the device is cool and charged makes no difference.
            Some(link) => {
                let turn = &self.0.link_turn;
                links::measure(turn, link, open_device, assignment, desk, spent).await?
            }
            None => {
                self.measure_model(open_device, assignment, desk, spent)
                    .await?
            }
        };
        let model = spec.models.get(assignment.run.model);
        let unpublished = Unpublished {
            target: self.target(assignment),
            signing_key: self.0.signing_key.clone(),
            measured,
            device: assignment.device.name.clone(),
            model_sha256: model.map(|model| model.sha256.clone()),
            shared: (self.0.library.objects().cloned())
                .map(|objects| SharedProfiles::new(objects, assignment.lab.clone())),
            run: assignment.run.clone(),
            written: None,
        };
        self.publish_or_hold(assignment.run.number, unpublished)
            .await
    }

    /// Measures what a job asks for of a model, once the device is ready.
    async fn measure_model(
        &self,
        open_device: &OpenDevice,
        assignment: &Assignment,
        desk: &Desk,
        spent: &mut Spent,
    ) -> Result<Measured, StayOutcome> {
        let in_use = self.at_hand(assignment, desk, spent).await?;
        let mut fitness = None;
        if let Some(phone) = open_device.phone().await.map_err(lost)? {
            let (passed, waited) = wait_until_ready(
                self.thresholds(),
                self.patience(),
                assignment,
                desk,
                || async {
                    let readings = readings::of_phone(&phone).await;
                    readings.map_err(|error| error.to_string())
                },
            )
            .await;
            spent.waiting_ms += waited.as_millis() as u64;
            match passed {
                Passed::Ready { unknown } => fitness = Some(fit(&unknown)),
                Passed::Left => return Err(StayOutcome::Parked),
                Passed::GaveUp(reason) => return Err(StayOutcome::NotReady { reason }),
            }
        }
        self.tell_processors(open_device, assignment, desk).await;
        let spec = &assignment.job.spec;
        let files = RunFiles::of(&self.0.library, spec, assignment.run.model, in_use);
        let files = files.map_err(|error| failed(&error))?;
        let target = self.target(assignment);
        let agents = self.0.folders.state.join("lab/devices");
        loop {
            let mut keeper = Keeper::new(&self.0.store, assignment, desk);
            let fit = fitness.clone();
            let measured = files.measure(spec, &target, fit, open_device, &mut keeper);
            let measured = measured.await;
            *spent += keeper.spent();
            match measured {
                Ok(measured) => return Ok(measured),
                Err(error) if host_is_full(&error, open_device, &agents) => {
                    let mut told = false;
                    loop {
                        let error = error.to_string();
                        let waited = wait_for_room(error, &mut told, assignment, desk);
                        waited.await.inspect(|waited| spent.waiting_ms += waited)?;
                        if !has_no_room(&agents) {
                            break;
                        }
                    }
                    there_is_room(told, desk).await;
                }
                Err(error) => {
                    let may_be_in_logs = match &error {
                        CampaignError::Run(failure) => failure.may_be_in_logs(),
                        _ => false,
                    };
                    let outcome = outcome(error, assignment);
                    return Err(match (may_be_in_logs, open_device) {
                        (true, OpenDevice::Phone { link, .. }) => {
                            let state = &self.0.folders.state;
                            with_artifacts(outcome, link, assignment, state).await
                        }
                        _ => outcome,
                    });
                }
            }
        }
    }

    /// Has the copies that a run needs at hand. They were fetched before it began, and may have gone since.
    async fn at_hand(
        &self,
        assignment: &Assignment,
        desk: &Desk,
        spent: &mut Spent,
    ) -> Result<InUse, StayOutcome> {
        let library = &self.0.library;
        let hashes = hashes(&assignment.job);
        let in_use = library.using(&hashes);
        let mut told = false;
        loop {
            match library.fetch(&hashes).await {
                Ok(()) => {
                    there_is_room(told, desk).await;
                    return Ok(in_use);
                }
                Err(SharingError::Objects(error)) if !error.may_pass() => {
                    return Err(failed(&error));
                }
                Err(error) => {
                    let waited = wait_for_room(error.to_string(), &mut told, assignment, desk);
                    waited.await.inspect(|waited| spent.waiting_ms += waited)?;
                }
            }
        }
    }

    /// The names of its processors, if they are not known yet.
    async fn tell_processors(&self, device: &OpenDevice, assignment: &Assignment, desk: &Desk) {
        if assignment.device.processors.is_some() {
            return;
        }
        // Whatever is wrong shows when it is measured.
        if let Ok(connection) = device.connect().await {
            let processors = connection.hello.processors.into_iter();
            let names = processors.map(|processor| processor.name).collect();
            desk.tell(News::Processors(names)).await;
        }
    }

    /// Opens the device; waits as long as layerlab's own files cannot be written, which no device is to blame for.
    async fn opened(
        &self,
        assignment: &Assignment,
        desk: &Desk,
        spent: &mut Spent,
    ) -> Result<OpenDevice, StayOutcome> {
        let mut told = false;
        loop {
            let error = match self.open(&assignment.device, &assignment.lab).await {
                Ok(open_device) => {
                    there_is_room(told, desk).await;
                    return Ok(open_device);
                }
                Err(error @ (LinkError::Adb(AdbError::Own { .. }) | LinkError::Storage { .. })) => {
                    error
                }
                Err(error) => return Err(lost(error)),
            };
            let waited = wait_for_room(error.to_string(), &mut told, assignment, desk);
            waited.await.inspect(|waited| spent.waiting_ms += waited)?;
        }
    }
}

/// Says once what cannot be written, and waits before that is tried again. How long, in milliseconds.
async fn wait_for_room(
    error: String,
    told: &mut bool,
    assignment: &Assignment,
    desk: &Desk,
) -> Result<u64, StayOutcome> {
    if !*told {
        let device = &assignment.device.name;
        tracing::warn!(device, error, "waiting for room");
        desk.tell(News::NotReady(Some(error))).await;
        *told = true;
    }
    tokio::select! {
        () = sleep(ROOM) => Ok(ROOM.as_millis() as u64),
        () = assignment.asked_to_leave() => Err(StayOutcome::Parked),
    }
}

/// What was waited for has come.
async fn there_is_room(told: bool, desk: &Desk) {
    if told {
        desk.tell(News::NotReady(None)).await;
    }
}

impl Bench for Farm {
    type Opened = OpenDevice;

    fn lacks(&self, job: &Job) -> Option<String> {
        let library = &self.0.library;
        let mut files = job.spec.copies();
        let (_, path) = files.find(|(sha256, _)| !library.has(sha256))?;
        Some(format!(
            "the lab's copy of {} is not in {} on this host; name the same folder as `copies` on all hosts, or submit the job again",
            path.display(),
            library.folder().display()
        ))
    }

    fn must_fetch(&self, job: &Job) -> bool {
        let library = &self.0.library;
        let mut files = job.spec.copies();
        library.objects().is_some() && files.any(|(sha256, _)| !library.has(sha256))
    }

    async fn fetch(&self, job: &Job) -> Result<(), String> {
        let fetched = self.0.library.fetch(&hashes(job)).await;
        fetched.map_err(|error| {
            format!(
                "what job {} needs cannot be fetched: {error}; this is tried again every minute",
                job.id
            )
        })
    }

    async fn work(
        &self,
        open_device: &mut Option<OpenDevice>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (StayOutcome, Spent) {
        let began = Instant::now();
        let mut spent = Spent::default();
        let run = &assignment.run;
        // Whatever is logged meanwhile says what it is about.
        let span = tracing::info_span!(
            "run",
            job = run.job,
            run = run.number,
            device = assignment.device.name
        );
        let attempt = self.attempt(open_device, assignment, desk, &mut spent);
        let ended = tokio::select! {
            ended = attempt.instrument(span) => ended,
            () = assignment.taken_over() => Err(StayOutcome::Parked),
        };
        let outcome = ended.unwrap_or_else(|outcome| outcome);
        let is_lost = assignment.is_taken_over()
            || matches!(
                outcome,
                StayOutcome::DeviceFailed { .. } | StayOutcome::DeviceGone { .. }
            );
        if is_lost && let Some(open_device) = open_device.take() {
            self.close(open_device).await;
        }
        let wall = began.elapsed().as_millis() as u64;
        spent.wall_ms = wall.saturating_sub(spent.waiting_ms);
        (outcome, spent)
    }

    async fn forget(&self, open_device: &mut Option<OpenDevice>, assignment: &Assignment) {
        let Some(open_device) = open_device else {
            return;
        };
        for part in parts(&assignment.job.spec) {
            forget(open_device, name(assignment, part)).await;
        }
    }

    async fn publish(&self, run: RunNumber) -> PublicationOutcome {
        self.publish_again(run).await
    }

    fn discard(&self, run: RunNumber) {
        lock(&self.0.unpublished).remove(&run);
    }

    async fn close(&self, open_device: OpenDevice) {
        open_device.restore().await;
    }
}

/// What a profile says of a device that passed the gates.
fn fit(unknown: &[&str]) -> Fitness {
    Fitness {
        not_told: unknown.iter().map(|name| (*name).to_owned()).collect(),
        ..Fitness::default()
    }
}

/// The lab's copies that a job needs.
fn hashes(job: &Job) -> Vec<String> {
    let copies = job.spec.copies();
    copies.map(|(sha256, _)| sha256.to_owned()).collect()
}

/// The name of a part's journal.
fn name(assignment: &Assignment, part: CampaignPart) -> RunId {
    let run = &assignment.run;
    journal::name(&assignment.lab, run.number, run.attempt, part)
}

/// When the attempt began.
fn started(assignment: &Assignment) -> OffsetDateTime {
    let started = assignment.run.started.unwrap_or_else(Timestamp::now);
    OffsetDateTime::from_unix_timestamp_nanos(started.as_nanosecond())
        .unwrap_or_else(|_| OffsetDateTime::now_utc())
}

fn failed(error: &dyn std::error::Error) -> StayOutcome {
    StayOutcome::Failed {
        reason: error.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
