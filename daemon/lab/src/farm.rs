//! Real devices: phones over ADB and local ones, each with its agent.

mod follow;
mod open;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use layerlab_profiles::document::Profile;
use layerlab_protocol::{FailureKind, RunId};
use time::OffsetDateTime;
use tokio::time::sleep;

use super::bench::{Assignment, Bench, Desk, News, Passed, wait_until_ready};
use super::config::Config;
use super::gates::{Patience, Thresholds};
use super::journal;
use super::library::Library;
use super::readings;
use super::record::Spent;
use super::state::StayOutcome;
use crate::store::Store;
use follow::Keeper;
use layerlab_campaign::publish::{PublishError, SigningKey};
use layerlab_campaign::{
    Campaign, CampaignAccuracy, CampaignError, CampaignPart, RunError, forget,
};
use layerlab_farm::LinkError;
use layerlab_farm::adb::{AdbError, Fleet, Found};
use layerlab_farm::folders::Folders;
use layerlab_farm::host_runtimes::HostRuntimes;
pub use open::{OpenDevice, see};

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
}

impl Farm {
    /// The devices that `config` speaks of.
    pub fn new(config: Config, folders: Folders, agent: PathBuf, store: Store) -> Farm {
        Farm::with_runtimes(config, folders, agent, HostRuntimes::default(), None, store)
    }

    /// The same, where this host has these runtimes and signs profiles with this key.
    pub fn with_runtimes(
        config: Config,
        folders: Folders,
        agent: PathBuf,
        runtimes: HostRuntimes,
        signing_key: Option<SigningKey>,
        store: Store,
    ) -> Farm {
        Farm(Arc::new(Inner {
            library: Library::in_state(&folders.state),
            config,
            folders,
            agent,
            runtimes,
            signing_key,
            store,
            found: Mutex::default(),
            restored: Mutex::default(),
        }))
    }

    /// Watches phones come and go, for ever.
    pub async fn watch(
        &self,
        fleet: Fleet,
        messages: tokio::sync::mpsc::Sender<super::dispatcher::Message>,
    ) {
        see(self, fleet, messages).await;
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

    /// Where a run's profile is published.
    fn target(&self, assignment: &Assignment, model: &str) -> PathBuf {
        let folder = match &assignment.job.spec.profiles {
            Some(folder) => folder.clone(),
            None => self.0.config.profiles(&self.0.folders),
        };
        folder
            .join(layerlab_campaign::publish::folder_name(
                &assignment.device.name,
            ))
            .join(layerlab_campaign::publish::folder_name(model))
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
            None => self.opened(assignment, desk).await?,
        };
        let open_device = open_device.insert(opened);
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
                Passed::Ready => {}
                Passed::Left => return Err(StayOutcome::Parked),
                Passed::GaveUp(reason) => return Err(StayOutcome::NotReady { reason }),
            }
        }
        let spec = &assignment.job.spec;
        let library = &self.0.library;
        let model = library.model(&spec.models[assignment.run.model]);
        let model = model.map_err(|error| failed(&error))?;
        let set = spec.accuracy.as_ref().map(|of| library.set(&of.set_sha256));
        let set = set.transpose().map_err(|error| failed(&error))?;
        let accuracy = spec.accuracy.as_ref().zip(set.as_ref());
        let campaign = Campaign {
            times: spec.measure.settings(),
            accuracy: accuracy.map(|(of, set)| CampaignAccuracy {
                set,
                settings: of.settings(),
            }),
            target: self.target(assignment, model.network.name()),
            // What a daemon published that was killed before it could say so is published again.
            replace: true,
            signing_key: self.0.signing_key.clone(),
            model: &model,
        };
        let mut keeper = Keeper::new(&self.0.store, assignment, desk);
        let measured = campaign.measure(open_device, &mut keeper).await;
        *spent += keeper.spent();
        let profile = measured.map_err(|error| outcome(error, assignment))?;
        publish(&campaign, assignment, desk, &profile).await
    }

    /// Opens the device; waits as long as layerlab's own files cannot be written, which no device is to blame for.
    async fn opened(
        &self,
        assignment: &Assignment,
        desk: &Desk,
    ) -> Result<OpenDevice, StayOutcome> {
        let mut told = false;
        loop {
            let error = match self.open(&assignment.device).await {
                Ok(open_device) => {
                    there_is_room(told, desk).await;
                    return Ok(open_device);
                }
                Err(error @ (LinkError::Adb(AdbError::Own { .. }) | LinkError::Storage { .. })) => {
                    error
                }
                Err(error) => return Err(lost(error)),
            };
            wait_for_room(error.to_string(), &mut told, assignment, desk).await?;
        }
    }
}

/// Publishes; waits as long as there is no room.
async fn publish(
    campaign: &Campaign<'_>,
    assignment: &Assignment,
    desk: &Desk,
    profile: &Profile,
) -> Result<StayOutcome, StayOutcome> {
    let mut told = false;
    loop {
        let error = match campaign.publish(profile) {
            Ok(findings) => {
                there_is_room(told, desk).await;
                let findings = findings.iter().map(|finding| finding.rule.to_string());
                return Ok(StayOutcome::Published {
                    profile: campaign.target.clone(),
                    findings: findings.collect(),
                });
            }
            Err(error @ PublishError::Unfit { .. }) => return Err(failed(&error)),
            Err(error) => error,
        };
        wait_for_room(error.to_string(), &mut told, assignment, desk).await?;
    }
}

/// Says once what cannot be written, and waits before that is tried again.
async fn wait_for_room(
    error: String,
    told: &mut bool,
    assignment: &Assignment,
    desk: &Desk,
) -> Result<(), StayOutcome> {
    if !*told {
        let device = &assignment.device.name;
        tracing::warn!(device, error, "waiting for room");
        desk.tell(News::NotReady(Some(error))).await;
        *told = true;
    }
    tokio::select! {
        () = sleep(ROOM) => Ok(()),
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

    async fn work(
        &self,
        open_device: &mut Option<OpenDevice>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (StayOutcome, Spent) {
        let began = Instant::now();
        let mut spent = Spent::default();
        let ended = self
            .attempt(open_device, assignment, desk, &mut spent)
            .await;
        let outcome = ended.unwrap_or_else(|outcome| outcome);
        if matches!(outcome, StayOutcome::DeviceFailed { .. })
            && let Some(open_device) = open_device.take()
        {
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
        for part in CampaignPart::ALL {
            if part == CampaignPart::Times || assignment.job.spec.accuracy.is_some() {
                forget(open_device, name(assignment, part)).await;
            }
        }
    }

    async fn close(&self, open_device: OpenDevice) {
        open_device.restore().await;
    }
}

/// What an error means for the run and for the device.
fn outcome(error: CampaignError, assignment: &Assignment) -> StayOutcome {
    let reason = error.to_string();
    match error {
        CampaignError::Run(RunError::Parked) => StayOutcome::Parked,
        CampaignError::Run(RunError::Gap { .. } | RunError::NeverStarted { .. }) => {
            StayOutcome::JournalLost { reason }
        }
        CampaignError::Run(RunError::Order { kind, .. }) => match kind {
            FailureKind::Throttled | FailureKind::Device => StayOutcome::DeviceFailed { reason },
            _ => StayOutcome::Failed { reason },
        },
        CampaignError::Run(RunError::Planner(_)) => StayOutcome::Failed { reason },
        // It was to leave anyway; its journal will be found again.
        CampaignError::Run(_) if assignment.is_asked_to_leave() => StayOutcome::Parked,
        CampaignError::Run(RunError::Link(_) | RunError::GaveUp { .. } | RunError::Stuck) => {
            StayOutcome::DeviceFailed { reason }
        }
        CampaignError::Plan(_)
        | CampaignError::Processor(_)
        | CampaignError::Probe(_)
        | CampaignError::Journal(_)
        | CampaignError::Build(_)
        | CampaignError::Evaluation(_)
        | CampaignError::Publish(_) => StayOutcome::Failed { reason },
    }
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

fn lost(error: LinkError) -> StayOutcome {
    StayOutcome::DeviceFailed {
        reason: error.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
