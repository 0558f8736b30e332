//! A run: from a model and a device to a profile.

mod answers;
mod drive;
mod evaluate;
mod model_file;
pub mod orders;
mod placement;
mod plan;

use layerlab_profiles::document::{
    BuildError, FORMAT, Header, Model, Profile, Provenance, VERSION,
};
use layerlab_protocol::{Entry, Event, RunId};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use answers::LEAST_ANSWERS;
pub use drive::{File, Follower, Run, RunError, drive, forget};
pub use evaluate::{Evaluated, EvaluationSettings, Placements, SetFile, evaluate, evaluate_run};
pub use model_file::{ModelFile, ModelFileError};
pub use placement::{Passes, PlacementTime, time_placements};
pub use plan::{Plan, PlanError, ProcessorPlan, Settings};

use crate::device::{Hello, Link, LinkError};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The device is reached and the run will have so many samples.
    Planned {
        /// How many; `None` if that turns out while it measures.
        samples: Option<u64>,
    },
    /// One more sample, or answer, has come.
    Sample,
}

/// Why a run gave no profile.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The device does not fit the plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The device or its agent failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The samples make no profile.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl From<LinkError> for MeasureError {
    fn from(error: LinkError) -> Self {
        MeasureError::Run(error.into())
    }
}

/// Measures `model` on the device behind `link` and derives its profile.
pub async fn measure<L: Link>(
    link: &L,
    model: &ModelFile,
    settings: Settings,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Profile, MeasureError> {
    let started = OffsetDateTime::now_utc();
    let run = Run::from(run_id(started));
    let profile = measure_run(link, model, settings, &run, started, &mut Told(on_progress)).await?;
    forget(link, run.id).await;
    Ok(profile)
}

/// Goes on with `run`, which began at `started`, to its end. Its journal stays on the device.
pub async fn measure_run<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    settings: Settings,
    run: &Run,
    started: OffsetDateTime,
    follower: &mut F,
) -> Result<Profile, MeasureError> {
    let layers = model.network.layer_count();
    let hello = link.connect().await?.hello;
    let plan = Plan::new(&run.id, &model.sha256, layers, &hello.processors, settings)?;
    follower.planned(plan.samples());
    let measured = drive(link, run, &[model.file()], &mut plan.orders(), follower).await?;
    let simulated = hello.device.simulated;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        simulated,
        model: Model {
            name: model.network.name().to_owned(),
            sha256: model.source_sha256.clone(),
            opset: model.network.opset(),
            layers,
        },
        device: hello.device.clone(),
        measurements: plan.measurements(),
        processors: plan
            .processors
            .into_iter()
            .map(|plan| plan.processor)
            .collect(),
        provenance: provenance(link, run, started, hello),
    };
    Ok(Profile::build(
        header,
        model.network.layers().to_vec(),
        measured,
    )?)
}

/// Where what came of `run` just now comes from.
fn provenance(link: &impl Link, run: &Run, started: OffsetDateTime, agent: Hello) -> Provenance {
    Provenance {
        started_at: rfc3339(started),
        finished_at: rfc3339(OffsetDateTime::now_utc()),
        layerlab_version: env!("CARGO_PKG_VERSION").to_owned(),
        agent_version: agent.agent_version,
        run: run.id.to_string(),
        link: link.kind().to_owned(),
        device_system: agent.system,
        host: crate::host::host(),
    }
}

/// A follower that counts samples and answers for somebody.
pub(crate) struct Told<'a>(pub(crate) &'a mut (dyn FnMut(Progress) + Send));

impl Follower for Told<'_> {
    fn planned(&mut self, samples: Option<u64>) {
        (self.0)(Progress::Planned { samples });
    }

    async fn entry(&mut self, entry: &Entry) {
        if matches!(entry.event, Event::Sample { .. } | Event::Judged { .. }) {
            (self.0)(Progress::Sample);
        }
    }
}

/// A name that sorts by time and that no other run has.
fn run_id(started: OffsetDateTime) -> RunId {
    let (date, time) = (started.date(), started.time());
    let name = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z-{:08x}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        rand::random::<u32>()
    );
    RunId::new(name).expect("digits, letters and a dash")
}

fn rfc3339(instant: OffsetDateTime) -> String {
    let whole_seconds = instant.replace_nanosecond(0).unwrap_or(instant);
    whole_seconds
        .format(&Rfc3339)
        .expect("years of the clock have four digits")
}
