//! What handlers reach of the lab.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use layerlab_farm::RungCounts;
use layerlab_farm::quarantine::Entry;
use layerlab_lab::front_desk::FrontDesk;
use layerlab_lab::store::Reader;
use layerlab_lab::talk::{Answer, Request, Status};
use layerlab_lab::window::Window;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::explorer::Explorers;
use crate::failures::Failures;
use crate::problem::Problem;
use crate::token::TokenFile;
use crate::uploads::Uploads;

/// After this nobody waits for the lab any more.
const DEADLINE: Duration = Duration::from_secs(30);

/// The same for a job, of which the lab reads and copies the models first.
const DEADLINE_OF_JOBS: Duration = Duration::from_secs(600);

/// The lab as handlers reach it.
#[derive(Clone, Debug)]
pub struct WebLab {
    /// Answers what is asked.
    pub desk: FrontDesk,
    /// Reads what is kept.
    pub reader: Reader,
    /// Who may ask.
    pub tokens: TokenFile,
    /// Tells the number of the last event that can be read.
    pub last_event: watch::Receiver<i64>,
    /// The folder with models that jobs from the web may name, if there is one.
    pub models: Option<PathBuf>,
    /// When jobs are worked on that do not say so themselves.
    pub window: Window,
    /// How often links to phones failed, and what was done about it.
    pub link_failures: RungCounts,
    /// The folders of the host in which it keeps and finds things; those within others come first.
    pub folders: Vec<PathBuf>,
    /// What jobs from the web bring.
    pub uploads: Uploads,
}

/// The same, with what the web itself remembers.
#[derive(Clone, Debug)]
pub(crate) struct WebState {
    pub(crate) lab: Arc<WebLab>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) explorers: Arc<Explorers>,
    /// Tells when the daemon ends, with what would go on for ever.
    pub(crate) ending: watch::Receiver<bool>,
    /// Whether what is sent is encrypted on its way.
    pub(crate) is_encrypted: bool,
}

impl WebState {
    /// What the lab answers to somebody with the token of this name, or to the web itself; refusals are problems.
    pub(crate) async fn ask(&self, request: Request, by: Option<&str>) -> Result<Answer, Problem> {
        let deadline = match request {
            Request::Submit { .. } => DEADLINE_OF_JOBS,
            _ => DEADLINE,
        };
        let answer = self.lab.desk.ask(request, by.map(str::to_owned));
        match timeout(deadline, answer).await {
            Ok(Answer::Refused { code, message }) => Err(Problem::refused(code, message)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Problem::unavailable(format!(
                "the lab has not answered for {} s; ask again later",
                deadline.as_secs()
            ))),
        }
    }

    pub(crate) async fn status(&self) -> Result<Status, Problem> {
        match self.ask(Request::Status, None).await? {
            Answer::Status(status) => Ok(*status),
            other => Err(Problem::unexpected(other)),
        }
    }

    /// Who is left alone now.
    pub(crate) async fn quarantined(&self) -> Result<Vec<Entry>, Problem> {
        match self.ask(Request::Quarantined, None).await? {
            Answer::Quarantine { entries } => Ok(entries),
            other => Err(Problem::unexpected(other)),
        }
    }
}
