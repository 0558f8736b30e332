//! A lab on another machine, asked over the web for what commands ask the one here.

mod address;
mod client;
mod error;
mod logins;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use layerlab_campaign::publish::PLOT;
use layerlab_lab::job_file::OutgoingFile;
use layerlab_lab::query::{JobsAsked, ListedHost, Snapshot};
use layerlab_lab::record::{JobId, JobState, RunNumber};
use layerlab_lab::report::Report;
use layerlab_lab::talk::{Answer, Request};
use layerlab_web::Role;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use ureq::http::Method;

pub(super) use address::LabUrl;
use client::Client;
pub(super) use error::ElsewhereError;
pub(super) use logins::{Login, Logins};

/// The token in the environment, for scripts.
pub(super) const TOKEN_VARIABLE: &str = "LAYERLAB_TOKEN";

/// A lab elsewhere.
#[derive(Clone)]
pub(super) struct Elsewhere {
    client: Arc<Client>,
}

/// Whose token is sent.
#[derive(Deserialize)]
pub(super) struct OwnToken {
    pub(super) name: String,
    pub(super) role: Role,
}

/// A profile in the lab's list.
#[derive(Deserialize)]
pub(super) struct ProfileElsewhere {
    pub(super) run: RunNumber,
    pub(super) job: JobId,
    pub(super) model: String,
    pub(super) device: String,
    pub(super) simulated: bool,
    pub(super) published: Timestamp,
    pub(super) digest: Option<String>,
}

/// Which profiles of a lab elsewhere are wanted.
pub(super) enum ProfilesAsked<'a> {
    /// The newest of each model on each device.
    Newest,
    /// All of a model on a device.
    Of { model: &'a str, device: &'a str },
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    all: usize,
}

#[derive(Deserialize)]
struct Submitted {
    job: JobId,
    runs: usize,
    known: Option<JobState>,
    warnings: Vec<String>,
}

/// How much of a file is there.
#[derive(Default, Deserialize)]
struct Uploaded {
    bytes: u64,
    whole: bool,
}

#[derive(Deserialize)]
struct WithReport {
    report: Report,
}

impl Elsewhere {
    /// The lab at `url`, with the token of the environment, else the one that `layerlab login` keeps.
    pub(super) fn open(url: &LabUrl, ca: Option<PathBuf>) -> Result<Elsewhere, ElsewhereError> {
        let set = std::env::var(TOKEN_VARIABLE).ok();
        let set = set.filter(|token| !token.trim().is_empty());
        let kept = match (&set, &ca) {
            (Some(_), Some(_)) => None,
            _ => Logins::of_this_user().of(url)?,
        };
        let ca = ca.or_else(|| kept.as_ref()?.ca.clone());
        let token = set.or_else(|| kept.map(|login| login.token));
        let token = token.ok_or_else(|| ElsewhereError::NoToken(url.clone()))?;
        Elsewhere::with_token(url, token.trim(), ca.as_deref())
    }

    pub(super) fn with_token(
        url: &LabUrl,
        token: &str,
        ca: Option<&Path>,
    ) -> Result<Elsewhere, ElsewhereError> {
        let client = Client::new(url.clone(), token.to_owned(), ca)?;
        Ok(Elsewhere {
            client: Arc::new(client),
        })
    }

    /// Has a call done apart, that whoever interrupts this program need not wait for it.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Client) -> Result<T, ElsewhereError> + Send + 'static,
    ) -> Result<T, ElsewhereError> {
        let client = Arc::clone(&self.client);
        let (to, answer) = oneshot::channel();
        std::thread::spawn(move || to.send(call(&client)));
        answer.await.unwrap_or_else(|_| {
            Err(ElsewhereError::Lost {
                url: self.client.url.clone(),
                reason: "the call ended before its time".to_owned(),
            })
        })
    }

    pub(super) async fn own_token(&self) -> Result<OwnToken, ElsewhereError> {
        self.call(|client| client.get("/api/v1/token")).await
    }

    pub(super) async fn snapshot(&self, asked: JobsAsked) -> Result<Snapshot, ElsewhereError> {
        let path = match asked {
            JobsAsked::Open => "/api/v1/snapshot".to_owned(),
            JobsAsked::All => "/api/v1/snapshot?all=true".to_owned(),
            JobsAsked::One(id) => format!("/api/v1/snapshot?job={id}"),
        };
        self.call(move |client| client.get(&path)).await
    }

    /// The hosts of the lab; none if it has but one.
    pub(super) async fn hosts(&self) -> Result<Vec<ListedHost>, ElsewhereError> {
        self.call(|client| {
            let mut hosts = Vec::new();
            for page in 1.. {
                let path = format!("/api/v1/hosts?page={page}");
                let Page { items, all } = client.get::<Page<ListedHost>>(&path)?;
                let is_last = items.is_empty() || hosts.len() + items.len() >= all;
                hosts.extend(items);
                if is_last {
                    break;
                }
            }
            Ok(hosts)
        })
        .await
    }

    /// The report of a period, with the pictures of its profiles if `plots`.
    pub(super) async fn report(
        &self,
        since: Timestamp,
        until: Timestamp,
        plots: bool,
    ) -> Result<Report, ElsewhereError> {
        let path = format!("/api/v1/report?since={since}&until={until}");
        self.call(move |client| {
            let WithReport { mut report } = client.get(&path)?;
            if plots {
                for run in report.jobs.iter_mut().flat_map(|job| &mut job.runs) {
                    let path = format!("/api/v1/profiles/{}/files/{PLOT}", run.number);
                    let published = run.published.as_mut().filter(|it| !it.gone);
                    if let Some(published) = published {
                        // One that is gone is left out of a report here, too.
                        published.plot = client.bytes(&path).ok();
                    }
                }
            }
            Ok(report)
        })
        .await
    }

    /// Has the lab do what has no other answer than that it is done.
    pub(super) async fn tell(&self, request: &Request) -> Result<(), ElsewhereError> {
        let (method, path, body) = told(request).ok_or(ElsewhereError::HostAlone)?;
        self.call(move |client| client.tell(method, &path, body.as_ref()))
            .await
    }

    /// Sends the lab what a job brings, but for what is there already.
    pub(super) async fn upload(&self, files: Vec<OutgoingFile>) -> Result<(), ElsewhereError> {
        self.call(move |client| files.iter().try_for_each(|file| upload(client, file)))
            .await
    }

    /// Gives the lab the job that is written in `toml`.
    pub(super) async fn submit(&self, toml: String, again: bool) -> Result<Answer, ElsewhereError> {
        let path = format!("/api/v1/jobs?again={again}");
        let submitted =
            self.call(move |client| client.post::<Submitted>(&path, "application/toml", &toml));
        let Submitted {
            job,
            runs,
            known,
            warnings,
        } = submitted.await?;
        Ok(match known {
            Some(state) => Answer::Known { job, state },
            None => Answer::Submitted {
                job,
                runs,
                warnings,
            },
        })
    }

    /// The profiles that are asked for: those of one page with the number of all, or all of them.
    pub(super) async fn profiles(
        &self,
        asked: ProfilesAsked<'_>,
        page: Option<usize>,
    ) -> Result<(Vec<ProfileElsewhere>, usize), ElsewhereError> {
        let which = match asked {
            ProfilesAsked::Newest => "newest=true".to_owned(),
            ProfilesAsked::Of { model, device } => {
                format!("model={}&device={}", encoded(model), encoded(device))
            }
        };
        self.call(move |client| {
            let one = |page: usize| -> Result<Page<ProfileElsewhere>, ElsewhereError> {
                client.get(&format!("/api/v1/profiles?{which}&page={page}"))
            };
            if let Some(page) = page {
                let Page { items, all } = one(page)?;
                return Ok((items, all));
            }
            let mut profiles = Vec::new();
            for page in 1.. {
                let Page { items, all } = one(page)?;
                let is_last = items.is_empty() || profiles.len() + items.len() >= all;
                profiles.extend(items);
                if is_last {
                    break;
                }
            }
            let all = profiles.len();
            Ok((profiles, all))
        })
        .await
    }

    /// One profile of the list.
    pub(super) async fn profile(&self, run: RunNumber) -> Result<ProfileElsewhere, ElsewhereError> {
        let path = format!("/api/v1/profiles/{run}");
        self.call(move |client| client.get(&path)).await
    }

    /// All files of a profile, as a ZIP archive.
    pub(super) async fn archive(&self, run: RunNumber) -> Result<Vec<u8>, ElsewhereError> {
        let path = format!("/api/v1/profiles/{run}/archive");
        self.call(move |client| client.bytes(&path)).await
    }
}

/// Sends a file, and goes on with it when the connection is lost, as long as it gets on.
fn upload(client: &Client, file: &OutgoingFile) -> Result<(), ElsewhereError> {
    let path = format!("/api/v1/files/{}", file.sha256);
    let mut sent = None;
    loop {
        let there = match client.get::<Uploaded>(&path) {
            Ok(there) => there,
            Err(ElsewhereError::Missing { .. }) => Uploaded::default(),
            Err(error) => return Err(error),
        };
        if there.whole {
            return Ok(());
        }
        let offset = there.bytes;
        match client.put(&format!("{path}?offset={offset}"), &file.path, offset) {
            // It broke off after more than the time before.
            Err(error) if error.may_pass() && sent.is_none_or(|sent| offset > sent) => {
                sent = Some(offset);
            }
            sent => return sent,
        }
    }
}

/// How the lab is asked for a change over the web, if it takes that one.
fn told(request: &Request) -> Option<(Method, String, Option<Value>)> {
    let of_job = |job: &JobId, what: &str| {
        let path = format!("/api/v1/jobs/{job}/{what}");
        (Method::POST, path, None)
    };
    Some(match request {
        Request::Cancel { job } => of_job(job, "cancel"),
        Request::Pause { job } => of_job(job, "pause"),
        Request::Resume { job } => of_job(job, "resume"),
        Request::Retry { job } => of_job(job, "retry"),
        Request::Reserve {
            device,
            from,
            until,
            note,
        } => {
            let body = json!({ "device": device, "from": from, "until": until, "note": note });
            (Method::POST, "/api/v1/reservations".to_owned(), Some(body))
        }
        Request::Release { device } => {
            let path = format!("/api/v1/reservations/{}", encoded(device));
            (Method::DELETE, path, None)
        }
        Request::Submit { .. }
        | Request::Quarantine { .. }
        | Request::Lift { .. }
        | Request::Quarantined
        | Request::Prune { .. }
        | Request::Status => return None,
    })
}

/// A part of a path or a query, whatever it is.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
