//! A new job: put together from what the lab has, or as a job file that is pasted in.

use std::collections::BTreeSet;
use std::path::Path;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use layerlab_farm::adb::Printable;
use layerlab_lab::job_file::JobFile;
use layerlab_lab::record::{Host, Kept};
use maud::{Markup, html};
use serde_json::json;

use super::layout::{Page, ProblemPage, simulated_mark};
use super::posted::Posted;
use crate::access::Caller;
use crate::lab::WebState;
use crate::problem::Problem;
use crate::submission::{Submitted, submit};

/// What was filled in.
#[derive(Default)]
struct Filled {
    name: String,
    models: Vec<String>,
    devices: Vec<String>,
    hosts: Vec<String>,
    processors: Vec<String>,
    file: String,
    /// Whether a job from before asks for the same, so that another one is to be asked for twice.
    is_known: bool,
}

impl Filled {
    fn of(posted: &Posted) -> Filled {
        let list = |name| posted.fields(name).map(str::to_owned).collect();
        let text = |name| posted.field(name).unwrap_or_default().to_owned();
        Filled {
            name: text("name"),
            models: list("model"),
            devices: list("device"),
            hosts: list("host"),
            processors: list("processor"),
            file: text("file"),
            is_known: posted.field("again").is_some(),
        }
    }

    /// The job file that asks for it.
    fn job_file(&self) -> Result<String, Problem> {
        if !self.file.is_empty() {
            return Ok(self.file.clone());
        }
        for (field, chosen) in [("model", &self.models), ("device", &self.devices)] {
            if chosen.is_empty() {
                let detail = format!("no {field} is chosen; choose at least one");
                return Err(Problem::unusable(detail));
            }
        }
        let devices = self.devices.iter();
        let devices: Vec<_> = devices.map(|name| json!({ "serial": name })).collect();
        let mut job = json!({
            "models": self.models,
            "devices": devices,
            "hosts": self.hosts,
            "measure": { "processors": self.processors },
        });
        if !self.name.is_empty() {
            job["name"] = json!(self.name);
        }
        JobFile::text_of_json(&job).map_err(Problem::internal)
    }
}

/// The form of a new job.
pub(super) async fn show(
    State(state): State<WebState>,
    caller: Caller,
) -> Result<Page, ProblemPage> {
    if !caller.may_change() {
        let detail = "jobs take the role operator; ask the lab's owner for another token";
        return Err(Problem::usage(StatusCode::FORBIDDEN, detail).into());
    }
    page(&state, &Filled::default()).await
}

/// Gives the lab the job, and shows it.
pub(super) async fn take(
    State(state): State<WebState>,
    posted: Posted,
) -> Result<Response, ProblemPage> {
    let mut filled = Filled::of(&posted);
    let submitted = match filled.job_file() {
        Ok(text) => submit(&state, &text, filled.is_known, &posted.by).await,
        Err(problem) => Err(problem),
    };
    let problem = match submitted {
        Ok(Submitted::Taken { job, .. }) => {
            return Ok(Redirect::to(&format!("/jobs/{job}")).into_response());
        }
        Ok(Submitted::Known(job, known)) => {
            filled.is_known = true;
            let detail = format!(
                "job {job} asks for the same and is {known}; tick the box to submit it all the same"
            );
            Problem::usage(StatusCode::CONFLICT, detail)
        }
        Err(problem) => problem,
    };
    let page = page(&state, &filled).await?;
    Ok(page.refusing(problem, "/jobs/new").into_response())
}

async fn page(state: &WebState, filled: &Filled) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.unfinished().await?;
    let hosts = state.lab.reader.hosts().await?;
    let content = match state.lab.models.clone() {
        None => html! {
            h1 { "New job" }
            p { "This lab takes no jobs over the web. Name a folder of models by " code { "web.models" } " in its configuration." }
        },
        Some(folder) => {
            let models = tokio::task::spawn_blocking(move || models(&folder));
            let models = models.await.map_err(Problem::internal)??;
            html! {
                h1 { "New job" }
                (chosen(&models, &kept, &hosts, filled))
                (pasted(filled))
            }
        }
    };
    Ok(Page::new("New job", "/jobs", content))
}

/// The names of the ONNX files in the lab's folder, in order.
fn models(folder: &Path) -> Result<Vec<String>, Problem> {
    let gone = |error: std::io::Error| {
        tracing::warn!(folder = %folder.display(), %error, "the folder of models cannot be read");
        Problem::unavailable("the lab's folder of models cannot be read; the daemon's log says why")
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(gone)? {
        let path = entry.map_err(gone)?.path();
        let is_model = path
            .extension()
            .is_some_and(|extension| extension == "onnx");
        if is_model && path.is_file() {
            names.extend(
                path.file_name()
                    .and_then(|name| name.to_str())
                    .map(str::to_owned),
            );
        }
    }
    names.sort();
    Ok(names)
}

fn chosen(models: &[String], kept: &Kept, hosts: &[Host], filled: &Filled) -> Markup {
    let devices = kept.devices.values();
    let processors: BTreeSet<&String> = devices
        .clone()
        .flat_map(|it| it.processors.iter().flatten())
        .collect();
    html! {
        form.choose action="/jobs" method="post" {
            fieldset {
                legend { "Models" }
                @if models.is_empty() { p { "The lab's folder of models has none; put ONNX files there." } }
                @for name in models { (tick("model", name, &filled.models, &Markup::default())) }
            }
            fieldset {
                legend { "Devices, each of which gives a profile of each model" }
                @if kept.devices.is_empty() { p { "The lab has seen none yet; plug one in." } }
                @for device in devices { (tick("device", &device.name, &filled.devices, &simulated_mark(device.simulated, false))) }
            }
            @if hosts.len() > 1 {
                fieldset {
                    legend { "Hosts" }
                    p.note { "Whichever has the device, if none is ticked." }
                    @for host in hosts { (tick("host", &host.name, &filled.hosts, &Markup::default())) }
                }
            }
            fieldset {
                legend { "Processors" }
                p.note { "All that a device has, if none is ticked." }
                @for name in processors { (tick("processor", name, &filled.processors, &Markup::default())) }
            }
            label for="name" { "Name" }
            input #name name="name" value=(filled.name) placeholder="job";
            (again(filled))
            button { "Submit" }
        }
    }
}

fn pasted(filled: &Filled) -> Markup {
    html! {
        h2 { "Or a job file" }
        form.choose action="/jobs" method="post" {
            label for="file" { "In TOML, with models and evaluation sets of the lab's folder by their names alone" }
            textarea #file name="file" rows="12" spellcheck="false" required { (filled.file) }
            (again(filled))
            button { "Submit the file" }
        }
    }
}

fn tick(field: &str, name: &str, ticked: &[String], mark: &Markup) -> Markup {
    html! {
        label {
            input type="checkbox" name=(field) value=(name) checked[ticked.iter().any(|one| one == name)];
            " " (Printable(name)) (mark)
        }
    }
}

fn again(filled: &Filled) -> Markup {
    html! {
        @if filled.is_known {
            label { input type="checkbox" name="again" value="yes"; " Submit it although a job from before asks for the same" }
        }
    }
}
