//! How commands reach the lab: its daemon if one runs, and its store with or without one.

use std::path::PathBuf;

use jiff::Timestamp;

use super::exit::{Code, Failure};
use super::output;
use layerlab_farm::folders::Folders;
use layerlab_lab::query;
use layerlab_lab::record::{Job, JobId, Kept};
use layerlab_lab::report::Report;
use layerlab_lab::socket::{self, AskError};
use layerlab_lab::store::{Reader, StoreError};
use layerlab_lab::talk::{Answer, RefusalCode, Request, Status};

/// The folder with what the lab knows.
pub(super) fn folder() -> PathBuf {
    Folders::of_this_user().state.join("lab")
}

/// What the daemon says, unless it refuses.
pub(super) async fn ask(request: &Request) -> Result<Answer, Failure> {
    let answer = socket::ask(&Folders::of_this_user().state, request).await;
    match answer.map_err(ask_failure)? {
        Answer::Refused { code, message } => Err(Failure::new(
            refusal_code(code),
            anyhow::anyhow!("{message}"),
        )),
        answer => Ok(answer),
    }
}

/// The exit code of what the daemon refuses: what was asked for is wrong, or the daemon cannot answer.
fn refusal_code(code: RefusalCode) -> Code {
    match code {
        RefusalCode::UnknownJob
        | RefusalCode::UnknownDevice
        | RefusalCode::UnknownHost
        | RefusalCode::WrongState
        | RefusalCode::WrongPeriod
        | RefusalCode::TooLong
        | RefusalCode::TooMuch
        | RefusalCode::FileChanged => Code::Input,
        RefusalCode::NoCopy | RefusalCode::NoPublication => Code::Output,
        RefusalCode::NotShared
        | RefusalCode::TooLate
        | RefusalCode::NoRequest
        | RefusalCode::Ending
        | RefusalCode::StoreFailed => Code::Device,
    }
}

/// Has the daemon do what has no other answer than that it is done.
pub(super) async fn tell(request: &Request) -> Result<(), Failure> {
    match ask(request).await? {
        Answer::Done => Ok(()),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn unexpected(answer: &Answer) -> Failure {
    let error = anyhow::anyhow!(
        "the layerlab daemon answers {answer:?}, which is none; are both of one version?"
    );
    Failure::new(Code::Device, error)
}

/// What the daemon says, unless it refuses; none if no daemon runs.
pub(super) async fn ask_if_there(request: &Request) -> Result<Option<Answer>, Failure> {
    match socket::ask(&Folders::of_this_user().state, request).await {
        Err(AskError::NoDaemon) => Ok(None),
        Ok(Answer::Refused { code, message }) => Err(Failure::new(
            refusal_code(code),
            anyhow::anyhow!("{message}"),
        )),
        answer => answer.map(Some).map_err(ask_failure),
    }
}

/// How the lab is; none if no daemon runs.
pub(super) async fn status() -> Result<Option<Status>, Failure> {
    match socket::ask(&Folders::of_this_user().state, &Request::Status).await {
        Ok(Answer::Status(status)) => Ok(Some(*status)),
        Ok(other) => Err(unexpected(&other)),
        Err(AskError::NoDaemon) => Ok(None),
        Err(error) => Err(ask_failure(error)),
    }
}

fn ask_failure(error: AskError) -> Failure {
    let code = match error {
        AskError::TooLong(_) => Code::Input,
        _ => Code::Device,
    };
    Failure::new(code, error)
}

/// The store; none if there has been no lab yet.
pub(super) async fn reader() -> Result<Option<Reader>, Failure> {
    match Reader::open(&folder()).await {
        Ok(reader) => Ok(Some(reader)),
        Err(StoreError::Missing) => Ok(None),
        Err(error) => Err(unread(error)),
    }
}

/// Why the store cannot be read, with the exit code for that.
pub(super) fn unread(error: StoreError) -> Failure {
    let code = match error {
        StoreError::Away { .. } => Code::Device,
        _ => Code::Input,
    };
    Failure::new(code, error)
}

/// What the lab knows; nothing if there has been none yet.
pub(super) async fn kept() -> Result<Kept, Failure> {
    match reader().await? {
        Some(reader) => reader.all().await.map_err(unread),
        None => Ok(Kept::default()),
    }
}

/// The same without the jobs that are over.
pub(super) async fn unfinished() -> Result<Kept, Failure> {
    match reader().await? {
        Some(reader) => reader.unfinished().await.map_err(unread),
        None => Ok(Kept::default()),
    }
}

/// What the lab was asked for, and what came of it; nothing, if there has been no lab.
pub(super) async fn report(since: Timestamp, until: Timestamp) -> Result<Report, Failure> {
    let Some(reader) = reader().await? else {
        output::note(StoreError::Missing);
        return Ok(Report::of(&Kept::default(), &[], since, until));
    };
    let report = query::report(&reader, since, until).await;
    report.map_err(unread)
}

/// The job with this number.
pub(super) fn job(kept: &Kept, id: JobId) -> Result<&Job, Failure> {
    kept.jobs.get(&id).ok_or_else(|| {
        let error = anyhow::anyhow!(
            "there is no job {id}; `layerlab jobs --all` lists those that there are"
        );
        Failure::new(Code::Input, error)
    })
}
