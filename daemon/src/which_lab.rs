//! Which lab a command asks: the one here, by its socket and its store, or one elsewhere, over the web. What is asked and
//! what is printed of it is the same.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::elsewhere::{Elsewhere, LabUrl};
use super::exit::{Code, ExitWith, Failure};
use super::{lab, output};
use layerlab_lab::query::JobsAsked;
use layerlab_lab::record::{Event, JobId, Kept};
use layerlab_lab::report::Report;
use layerlab_lab::talk::{Request, Status};
use tokio::time::sleep;

/// How often a lab is looked at that is waited for.
pub(super) const GLANCE: Duration = Duration::from_secs(1);

/// A lab that is out of reach for longer is not waited for.
const OUTAGE: Duration = Duration::from_secs(600);

/// How a lab elsewhere is named.
#[derive(clap::Args)]
pub(super) struct LabArgs {
    /// Ask the lab at this URL, with the token that `layerlab login` keeps or LAYERLAB_TOKEN has, instead of the one here
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "LAYERLAB_LAB",
        help_heading = "A lab elsewhere"
    )]
    pub(super) lab: Option<LabUrl>,
    /// Trust that lab if a certificate in this file (PEM) vouches for it, instead of those that browsers trust
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LAYERLAB_CA",
        help_heading = "A lab elsewhere"
    )]
    pub(super) ca: Option<PathBuf>,
}

/// What a command is told that asks a lab: its own options, and which lab.
#[derive(clap::Args)]
pub(super) struct WithLab<T: clap::Args> {
    #[command(flatten)]
    pub(super) args: T,
    #[command(flatten)]
    pub(super) lab: LabArgs,
}

/// The same of a command that has commands of its own.
#[derive(clap::Args)]
pub(super) struct CommandWithLab<T: clap::Subcommand> {
    #[command(subcommand)]
    pub(super) command: T,
    #[command(flatten)]
    pub(super) lab: LabArgs,
}

/// The lab that a command asks.
pub(super) enum Lab {
    /// This user's own, on this machine.
    Here,
    /// One over the web.
    Elsewhere(Elsewhere),
}

impl LabArgs {
    /// The lab that is meant.
    pub(super) fn open(&self) -> Result<Lab, Failure> {
        match &self.lab {
            None => Ok(Lab::Here),
            Some(url) => Ok(Lab::Elsewhere(Elsewhere::open(url, self.ca.clone())?)),
        }
    }
}

impl Lab {
    /// Has the lab do what has no other answer than that it is done.
    pub(super) async fn tell(&self, request: &Request) -> Result<(), Failure> {
        match self {
            Lab::Here => lab::tell(request).await,
            Lab::Elsewhere(lab) => Ok(lab.tell(request).await?),
        }
    }

    /// What it knows, jobs that are over only if `all`, and how it is; that is unknown if no daemon runs here.
    pub(super) async fn jobs(&self, all: bool) -> Result<(Kept, Option<Status>), Failure> {
        match self {
            Lab::Here => {
                let kept = match all {
                    true => lab::kept().await?,
                    false => lab::unfinished().await?,
                };
                Ok((kept, lab::status().await?))
            }
            Lab::Elsewhere(lab) => {
                let asked = if all { JobsAsked::All } else { JobsAsked::Open };
                let snapshot = lab.snapshot(asked).await?;
                Ok((snapshot.kept, Some(snapshot.status)))
            }
        }
    }

    /// What it knows of a job and its runs, and what happened to them.
    pub(super) async fn job(&self, id: JobId) -> Result<(Kept, Vec<Event>), Failure> {
        let (kept, events) = match self {
            Lab::Here => {
                let Some(reader) = lab::reader().await? else {
                    return lab::job(&Kept::default(), id).map(|_| Default::default());
                };
                let kept = reader.all().await.exit_with(Code::Input)?;
                let job = lab::job(&kept, id)?;
                // An occurrence is submitted when it was due, and so before its first event.
                let events = reader.events(job.submitted, Timestamp::MAX).await;
                (kept, events.exit_with(Code::Input)?)
            }
            Lab::Elsewhere(lab) => {
                let snapshot = lab.snapshot(JobsAsked::One(id)).await?;
                (snapshot.kept, snapshot.events)
            }
        };
        lab::job(&kept, id)?;
        Ok((kept, events))
    }

    /// What it knows of a job that is waited for. A lab elsewhere may be out of reach for a while.
    pub(super) async fn awaited_job(&self, id: JobId) -> Result<Kept, Failure> {
        let Lab::Elsewhere(lab) = self else {
            return lab::kept().await;
        };
        let mut lost: Option<Instant> = None;
        loop {
            match lab.snapshot(JobsAsked::One(id)).await {
                Err(error) if error.may_pass() => {
                    if lost.is_none() {
                        output::note(format_args!("layerlab: {error}; waiting goes on"));
                    }
                    if lost.get_or_insert_with(Instant::now).elapsed() > OUTAGE {
                        return Err(error.into());
                    }
                    sleep(GLANCE).await;
                }
                answer => return Ok(answer?.kept),
            }
        }
    }

    /// What it was asked for in a period, and what came of it, with the profiles' pictures if `plots`.
    pub(super) async fn report(
        &self,
        since: Timestamp,
        until: Timestamp,
        plots: bool,
    ) -> Result<Report, Failure> {
        match self {
            Lab::Here => {
                let mut report = lab::report(since, until).await?;
                report.read_profiles(plots);
                Ok(report)
            }
            Lab::Elsewhere(lab) => Ok(lab.report(since, until, plots).await?),
        }
    }
}
