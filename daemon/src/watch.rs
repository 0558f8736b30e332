//! `layerlab watch`: the phones and jobs of the lab, as they are now.

mod keys;
mod screen;
mod view;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::elsewhere::Elsewhere;
use super::exit::{Code, ExitWith, Failure};
use super::which_lab::{Lab, LabArgs};
use super::{lab, output};
use keys::{Key, Keys};
use layerlab_farm::folders::Folders;
use layerlab_lab::query::{JobsAsked, WatchedLab};
use layerlab_lab::record::Kept;
use layerlab_lab::socket;
use layerlab_lab::store::{Reader, StoreError};
use layerlab_lab::talk::{Answer, Request};
use screen::Screen;
use view::{FEW_JOBS, JobsShown, view};

/// How often the view is drawn.
const PERIOD: Duration = Duration::from_secs(1);

/// A daemon that takes longer to say how it is has a trouble that people should see.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(super) struct WatchArgs {
    /// Print once and end, as it does when standard output is no terminal
    #[arg(long)]
    once: bool,
}

impl WatchArgs {
    /// Does it look on until it is told to end?
    pub(super) fn looks_on(&self) -> bool {
        !self.once && std::io::stdout().is_terminal()
    }
}

pub(super) async fn run(args: &WatchArgs, lab: &LabArgs) -> Result<(), Failure> {
    let mut eye = Eye::on(lab.open()?);
    let zone = TimeZone::system();
    if !args.looks_on() {
        let lab = eye.look().await?;
        let first = JobsShown {
            skipped: 0,
            most: FEW_JOBS,
        };
        let lines = view(&lab, first, Timestamp::now(), &zone);
        let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        return output::print(lines.join("\n"));
    }
    let mut screen = Screen::enter().exit_with(Code::Output)?;
    let mut keys = Keys::read();
    let help = keys.can_be_pressed().then_some(keys::HELP);
    let mut skipped = 0;
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lab = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => lab = Some(eye.look().await?),
            key = keys.next() => match key {
                Key::Quit => return Ok(()),
                Key::Next => skipped += FEW_JOBS,
                Key::Before => skipped = usize::saturating_sub(skipped, FEW_JOBS),
            },
        }
        let Some(lab) = &lab else { continue };
        // The last page stays when there are fewer jobs, or somebody leafs on.
        let last = lab.jobs.len().saturating_sub(1) / FEW_JOBS * FEW_JOBS;
        skipped = skipped.min(last);
        let shown = JobsShown {
            skipped,
            most: FEW_JOBS,
        };
        let lines = view(lab, shown, Timestamp::now(), &zone);
        screen.draw(&lines, help).exit_with(Code::Output)?;
    }
}

/// Looks at a lab again and again.
enum Eye {
    /// At the store here, and at what the daemon says.
    Here {
        state: PathBuf,
        reader: Option<Reader>,
    },
    /// At one elsewhere, of which it remembers what it saw last.
    Elsewhere { lab: Elsewhere, seen: Option<Kept> },
}

impl Eye {
    fn on(lab: Lab) -> Eye {
        match lab {
            Lab::Here => Eye::Here {
                state: Folders::of_this_user().state,
                reader: None,
            },
            Lab::Elsewhere(lab) => Eye::Elsewhere { lab, seen: None },
        }
    }

    /// What the lab knows, and how it is or why it does not say.
    async fn look(&mut self) -> Result<WatchedLab, Failure> {
        match self {
            Eye::Here { state, reader } => look_here(state, reader).await,
            Eye::Elsewhere { lab, seen } => match lab.snapshot(JobsAsked::Open).await {
                Ok(snapshot) => {
                    let kept = seen.insert(snapshot.kept);
                    Ok(WatchedLab::of(&Ok(snapshot.status), kept))
                }
                Err(error) => match seen {
                    Some(kept) if error.may_pass() => {
                        Ok(WatchedLab::of(&Err(error.to_string()), kept))
                    }
                    _ => Err(error.into()),
                },
            },
        }
    }
}

async fn look_here(state: &Path, reader: &mut Option<Reader>) -> Result<WatchedLab, Failure> {
    if reader.is_none() {
        *reader = match Reader::open(&lab::folder()).await {
            Err(StoreError::Missing) => None,
            opened => Some(opened.map_err(lab::unread)?),
        };
    }
    let kept = match reader {
        Some(reader) => reader.unfinished().await.map_err(lab::unread)?,
        None => Kept::default(),
    };
    let lab = match timeout(PATIENCE, socket::ask(state, &Request::Status)).await {
        Ok(Ok(Answer::Status(status))) => Ok(*status),
        Ok(Ok(Answer::Refused { message, .. })) => Err(message),
        Ok(Ok(_)) => Err("the daemon does not say how it is; it is of another version".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the daemon does not answer".to_owned()),
    };
    Ok(WatchedLab::of(&lab, &kept))
}
