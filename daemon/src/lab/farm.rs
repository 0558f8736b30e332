//! Real devices: phones over ADB and local ones, each with its agent.

mod follow;
mod open;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::units::Bytes;
use layerlab_protocol::{FailureKind, Hygiene, RunId};
use time::OffsetDateTime;
use tokio::time::sleep;

use super::bench::{Assignment, Bench, Desk, News, Passed, wait_until_ready};
use super::config::Config;
use super::gates::{Patience, Thresholds};
use super::journal::{self, Part};
use super::library::Library;
use super::readings;
use super::record::Spent;
use super::state::Outcome;
use crate::device::LinkError;
use crate::device::adb::{AdbError, Fleet, Found};
use crate::device::folders::Folders;
use crate::measure::{
    EvaluationSettings, MeasureError, ModelFile, Placements, Run as Journal, RunError, Settings,
    evaluate_run, forget, measure_run,
};
use crate::publish::{PublishError, Staging};
use crate::store::{Store, StoreError};
use follow::Keeper;
pub use open::{Session, see};

/// How often to try again what this host has no room for.
const ROOM: Duration = Duration::from_secs(5);

/// What activations may take on a device while placements are walked together.
const WALK_MEMORY: Bytes = Bytes::from_bytes(256 << 20);

/// The devices of this lab.
#[derive(Clone)]
pub struct Farm(Arc<Inner>);

struct Inner {
    config: Config,
    folders: Folders,
    /// The program of agents that run on this host.
    agent: PathBuf,
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
        Farm(Arc::new(Inner {
            library: Library::in_state(&folders.state),
            config,
            folders,
            agent,
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
            .join(crate::publish::folder_name(&assignment.device.name))
            .join(crate::publish::folder_name(model))
            .join(format!("run-{}", assignment.run.number))
    }

    async fn attempt(
        &self,
        session: &mut Option<Session>,
        assignment: &Assignment,
        desk: &Desk,
        spent: &mut Spent,
    ) -> Result<Outcome, Outcome> {
        let opened = match session.take() {
            Some(opened) => opened,
            None => self.opened(assignment, desk).await?,
        };
        let session = session.insert(opened);
        if let Some(phone) = session.phone().await.map_err(lost)? {
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
                Passed::Left => return Err(Outcome::Parked),
                Passed::GaveUp(reason) => return Err(Outcome::NotReady { reason }),
            }
        }
        let spec = &assignment.job.spec;
        let model = (self.0.library)
            .model(&spec.models[assignment.run.model])
            .map_err(|error| failed(&error))?;
        let mut profile = self.times(session, assignment, desk, &model, spent).await?;
        if spec.accuracy.is_some() {
            profile = self
                .accuracy(session, assignment, desk, &model, profile, spent)
                .await?;
        }
        self.publish(assignment, desk, &profile).await
    }

    /// Opens the device; waits as long as layerlab's own files cannot be written, which no device is to blame for.
    async fn opened(&self, assignment: &Assignment, desk: &Desk) -> Result<Session, Outcome> {
        let mut told = false;
        loop {
            let error = match self.open(&assignment.device).await {
                Ok(session) => {
                    there_is_room(told, desk).await;
                    return Ok(session);
                }
                Err(error @ (LinkError::Adb(AdbError::Own { .. }) | LinkError::Storage { .. })) => {
                    error
                }
                Err(error) => return Err(lost(error)),
            };
            wait_for_room(error.to_string(), &mut told, assignment, desk).await?;
        }
    }

    async fn times(
        &self,
        session: &Session,
        assignment: &Assignment,
        desk: &Desk,
        model: &ModelFile,
        spent: &mut Spent,
    ) -> Result<Profile, Outcome> {
        let measure = &assignment.job.spec.measure;
        let settings = Settings {
            processors: measure.processors.clone(),
            design: measure.design,
            samples_per_segment: measure.samples,
            gap: layerlab_profiles::units::Nanos::from_micros(measure.gap_us),
            seed: measure.seed,
            hygiene: Hygiene::default(),
            target: measure.target_ci_percent / 100.0,
            budget: measure.budget.into(),
        };
        let journal = self.journal(assignment, Part::Times).await?;
        let mut keeper = Keeper::new(&self.0.store, &journal, assignment, desk);
        let measured = measure_run(
            session,
            model,
            settings,
            &journal,
            started(assignment),
            &mut keeper,
        )
        .await;
        keeper.end().await.map_err(|error| failed(&error))?;
        *spent += keeper.spent();
        measured.map_err(|error| outcome(error, assignment))
    }

    async fn accuracy(
        &self,
        session: &Session,
        assignment: &Assignment,
        desk: &Desk,
        model: &ModelFile,
        profile: Profile,
        spent: &mut Spent,
    ) -> Result<Profile, Outcome> {
        let Some(spec) = &assignment.job.spec.accuracy else {
            return Ok(profile);
        };
        let set = self.0.library.set(&spec.set_sha256);
        let set = set.map_err(|error| failed(&error))?;
        let of_kind = |kind| {
            let mut all = profile.header.processors.iter();
            let found = all.find(|processor| processor.kind == kind);
            found.map(|processor| processor.name.clone()).ok_or_else(|| {
                let reason = format!(
                    "accuracy needs a CPU and an accelerator, and {} was not measured with both",
                    assignment.device.name
                );
                Outcome::Failed { reason }
            })
        };
        let settings = EvaluationSettings {
            cpu: of_kind(ProcessorKind::Cpu)?,
            accelerator: of_kind(ProcessorKind::Accelerator)?,
            placements: Placements::Random(spec.placements),
            seed: spec.seed,
            answers: spec.answers,
            stop_at_half_width: spec.stop_at_percent.map(|percent| percent / 100.0),
            memory: WALK_MEMORY,
        };
        let journal = self.journal(assignment, Part::Accuracy).await?;
        let mut keeper = Keeper::new(&self.0.store, &journal, assignment, desk);
        let evaluated = evaluate_run(
            session,
            model,
            &set,
            &settings,
            &journal,
            started(assignment),
            &mut keeper,
        )
        .await;
        keeper.end().await.map_err(|error| failed(&error))?;
        *spent += keeper.spent();
        let evaluated = evaluated.map_err(|error| outcome(error, assignment))?;
        profile
            .with_evaluation(evaluated.evaluation, &evaluated.judged)
            .map_err(|error| failed(&error))
    }

    /// A part of the run, with what is known of it.
    async fn journal(&self, assignment: &Assignment, part: Part) -> Result<Journal, Outcome> {
        let id = name(assignment, part);
        let known = self.0.store.entries(&id).await;
        let known = known.map_err(|error: StoreError| failed(&error))?;
        Ok(Journal { id, known })
    }

    /// Publishes; waits as long as there is no room.
    async fn publish(
        &self,
        assignment: &Assignment,
        desk: &Desk,
        profile: &Profile,
    ) -> Result<Outcome, Outcome> {
        let target = self.target(assignment, &profile.header.model.name);
        let mut told = false;
        loop {
            // What a daemon published that was killed before it could say so is published again.
            let published =
                Staging::prepare(&target, true).and_then(|staging| staging.publish(profile));
            let error = match published {
                Ok(findings) => {
                    there_is_room(told, desk).await;
                    let findings = findings
                        .iter()
                        .map(|finding| finding.rule.to_string())
                        .collect();
                    return Ok(Outcome::Published {
                        profile: target,
                        findings,
                    });
                }
                Err(error @ PublishError::Unfit { .. }) => return Err(failed(&error)),
                Err(error) => error,
            };
            wait_for_room(error.to_string(), &mut told, assignment, desk).await?;
        }
    }
}

/// Says once what cannot be written, and waits before that is tried again.
async fn wait_for_room(
    error: String,
    told: &mut bool,
    assignment: &Assignment,
    desk: &Desk,
) -> Result<(), Outcome> {
    if !*told {
        let device = &assignment.device.name;
        tracing::warn!(device, error, "waiting for room");
        desk.tell(News::NotReady(Some(error))).await;
        *told = true;
    }
    tokio::select! {
        () = sleep(ROOM) => Ok(()),
        () = assignment.asked_to_leave() => Err(Outcome::Parked),
    }
}

/// What was waited for has come.
async fn there_is_room(told: bool, desk: &Desk) {
    if told {
        desk.tell(News::NotReady(None)).await;
    }
}

impl Bench for Farm {
    type Session = Session;

    async fn work(
        &self,
        session: &mut Option<Session>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (Outcome, Spent) {
        let began = Instant::now();
        let mut spent = Spent::default();
        let ended = self.attempt(session, assignment, desk, &mut spent).await;
        let outcome = ended.unwrap_or_else(|outcome| outcome);
        if matches!(outcome, Outcome::DeviceFailed { .. })
            && let Some(session) = session.take()
        {
            self.close(session).await;
        }
        let wall = began.elapsed().as_millis() as u64;
        spent.wall_ms = wall.saturating_sub(spent.waiting_ms);
        (outcome, spent)
    }

    async fn forget(&self, session: &mut Option<Session>, assignment: &Assignment) {
        let Some(session) = session else { return };
        for part in Part::ALL {
            if part == Part::Times || assignment.job.spec.accuracy.is_some() {
                forget(session, name(assignment, part)).await;
            }
        }
    }

    async fn close(&self, session: Session) {
        session.restore().await;
    }
}

/// What an error means for the run and for the device.
fn outcome(error: MeasureError, assignment: &Assignment) -> Outcome {
    let reason = error.to_string();
    match error {
        MeasureError::Run(RunError::Parked) => Outcome::Parked,
        MeasureError::Run(RunError::Gap { .. } | RunError::NeverStarted { .. }) => {
            Outcome::JournalLost { reason }
        }
        MeasureError::Run(RunError::Order { kind, .. }) => match kind {
            FailureKind::Throttled | FailureKind::Device => Outcome::DeviceFailed { reason },
            _ => Outcome::Failed { reason },
        },
        MeasureError::Run(RunError::Planner(_)) => Outcome::Failed { reason },
        // It was to leave anyway; its journal will be found again.
        MeasureError::Run(_) if assignment.is_asked_to_leave() => Outcome::Parked,
        MeasureError::Run(RunError::Link(_) | RunError::GaveUp { .. } | RunError::Stuck) => {
            Outcome::DeviceFailed { reason }
        }
        MeasureError::Plan(_) | MeasureError::Build(_) => Outcome::Failed { reason },
    }
}

/// The name of a part's journal.
fn name(assignment: &Assignment, part: Part) -> RunId {
    let run = &assignment.run;
    journal::name(&assignment.lab, run.number, run.attempt, part)
}

/// When the attempt began.
fn started(assignment: &Assignment) -> OffsetDateTime {
    let started = assignment.run.started.unwrap_or_else(Timestamp::now);
    OffsetDateTime::from_unix_timestamp_nanos(started.as_nanosecond())
        .unwrap_or_else(|_| OffsetDateTime::now_utc())
}

fn failed(error: &dyn std::error::Error) -> Outcome {
    Outcome::Failed {
        reason: error.to_string(),
    }
}

fn lost(error: LinkError) -> Outcome {
    Outcome::DeviceFailed {
        reason: error.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
