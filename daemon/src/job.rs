//! `layerlab job`: looks at one job of the lab, waits for it, and changes what becomes of it.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, Failure};
use super::jobs::few;
use super::which_lab::{GLANCE, Lab, LabArgs};
use super::{lab, output};
use layerlab_campaign::LinkSettings;
use layerlab_farm::adb::Printable;
use layerlab_lab::job::RunKind;
use layerlab_lab::job_file::EXAMPLE;
use layerlab_lab::query::{Page, ShownJob, why_nothing};
use layerlab_lab::record::{Job, JobId, JobState, Kept, Run};
use layerlab_lab::talk::Request;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;
use layerlab_profiles::document::ProfileDigest;

#[derive(clap::Subcommand)]
pub(super) enum JobCommand {
    /// Print what a job asks for, what became of each of its runs, and what happened
    Show {
        /// The job's number, as `layerlab jobs` lists it
        id: JobId,
        /// Which page of a job with many runs; JSON has all of it if none is chosen
        #[arg(long, value_name = "NUMBER")]
        page: Option<usize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a job; what is published stays
    Cancel {
        /// The job's number
        id: JobId,
    },
    /// Leave a job alone until it is resumed; a run that is on a phone is parked
    Pause {
        /// The job's number
        id: JobId,
    },
    /// Go on with a paused job
    Resume {
        /// The job's number
        id: JobId,
    },
    /// Try again what failed, expired or was cancelled of a job
    Retry {
        /// The job's number
        id: JobId,
    },
    /// Wait until a job is over: exit code 0 if all that it asks for is published, else 4
    Wait {
        /// The job's number
        id: JobId,
        /// How long at most, such as 8h [default: as long as it takes]
        #[arg(long, value_name = "DURATION")]
        timeout: Option<humantime::Duration>,
    },
    /// Print a job file that explains every key
    Example,
}

pub(super) async fn run(command: &JobCommand, lab: &LabArgs) -> Result<(), Failure> {
    if let JobCommand::Example = command {
        return output::print(EXAMPLE.trim_end());
    }
    let lab = lab.open()?;
    let (request, done) = match *command {
        JobCommand::Example => return Ok(()),
        JobCommand::Show { id, page, json } => return show(&lab, id, page, json).await,
        JobCommand::Wait { id, timeout } => {
            return wait(&lab, id, timeout.map(Duration::from)).await;
        }
        JobCommand::Cancel { id } => (
            Request::Cancel { job: id },
            format!("job {id} is cancelled"),
        ),
        JobCommand::Pause { id } => (Request::Pause { job: id }, format!("job {id} is paused")),
        JobCommand::Resume { id } => (Request::Resume { job: id }, format!("job {id} goes on")),
        JobCommand::Retry { id } => (
            Request::Retry { job: id },
            format!("what failed of job {id} is tried again"),
        ),
    };
    lab.tell(&request).await?;
    output::print(done)
}

/// Waits until the job is over. The store says so, even if the daemon is started anew meanwhile.
pub(super) async fn wait(lab: &Lab, id: JobId, timeout: Option<Duration>) -> Result<(), Failure> {
    let ended = ended(lab, id);
    let Some(timeout) = timeout else {
        return ended.await;
    };
    tokio::time::timeout(timeout, ended)
        .await
        .unwrap_or_else(|_| {
            let timeout = humantime::format_duration(timeout);
            let error = anyhow::anyhow!(
                "job {id} is not over after {timeout}; `layerlab job show {id}` says how it goes"
            );
            Err(Failure::new(Code::Device, error))
        })
}

async fn ended(lab: &Lab, id: JobId) -> Result<(), Failure> {
    loop {
        let kept = lab.awaited_job(id).await?;
        let job = lab::job(&kept, id)?;
        match job.state {
            JobState::Recurring => {
                let error = anyhow::anyhow!(
                    "job {id} comes again and is never over; wait for one of the jobs that it submits"
                );
                return Err(Failure::new(Code::Input, error));
            }
            JobState::Done => {
                let given = job.spec.kind().given(2);
                return output::print(format_args!("job {id}: all {given} are published"));
            }
            state if state.is_over() => {
                let error = anyhow::anyhow!("job {id} is {state}: {}", reasons(&kept, id));
                return Err(Failure::new(Code::Device, error));
            }
            _ => tokio::time::sleep(GLANCE).await,
        }
    }
}

/// Why runs of the job gave nothing, each reason once.
fn reasons(kept: &Kept, id: JobId) -> String {
    let reasons = why_nothing(kept, id);
    match reasons.is_empty() {
        true => format!("`layerlab job show {id}` says more"),
        false => Printable(&reasons.join("; ")).to_string(),
    }
}

async fn show(lab: &Lab, id: JobId, page: Option<usize>, json: bool) -> Result<(), Failure> {
    let (kept, events) = lab.job(id).await?;
    let job = lab::job(&kept, id)?;
    let shown = ShownJob::of(job, &kept, &events);
    let (all, chosen) = (shown.runs.len(), Page::new(page.unwrap_or(1)));
    let shown = match json && page.is_none() {
        true => shown,
        false => shown.page(chosen),
    };
    if json {
        return output::print_json(&shown);
    }
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    output::print(text(&shown, lab, now, &zone))?;
    let command = format!("layerlab job show {id}");
    if let Some(footer) = chosen.footer(all, "runs", &command) {
        output::note(format_args!("\n{footer}"));
    }
    Ok(())
}

fn text(shown: &ShownJob, lab: &Lab, now: Timestamp, zone: &TimeZone) -> String {
    let Job {
        id, spec, state, ..
    } = shown.job;
    let name = Printable(&spec.name);
    let mut parts = vec![
        format!("Job {id}, {name}: {state}"),
        table(&["what", ""], &[], spec_rows(shown.job, now, zone)),
    ];
    if !shown.runs.is_empty() {
        let heads = [
            "run",
            "model",
            "state",
            "phone",
            "attempt",
            "why",
            shown.job.spec.kind().given(1),
        ];
        parts.push(table(
            &heads,
            &[0, 4],
            shown
                .runs
                .iter()
                .map(|run| run_row(shown.job, run, lab, now, zone)),
        ));
    }
    let events = shown.events.iter().map(|event| {
        let run = event.run.map(|run| format!("run {run}"));
        let device = event.device.as_deref().unwrap_or_default();
        vec![
            moment(event.at, now, zone),
            run.unwrap_or_default(),
            Printable(device).to_string(),
            Printable(&event.what.words(now, zone)).to_string(),
        ]
    });
    if !shown.events.is_empty() {
        parts.push(table(
            &["when", "run", "device", "what happened"],
            &[],
            events,
        ));
    }
    parts.join("\n\n")
}

/// What the job asks for, without what it leaves to the lab.
fn spec_rows(job: &Job, now: Timestamp, zone: &TimeZone) -> Vec<Vec<String>> {
    let spec = &job.spec;
    let told = |at: Timestamp| moment(at, now, zone);
    let devices = spec.devices.iter().map(|devices| match devices.each {
        true => format!("each with {devices}"),
        false => devices.to_string(),
    });
    let devices: Vec<String> = devices.collect();
    let models: Vec<String> = (spec.models.iter())
        .map(|model| model.path.display().to_string())
        .collect();
    let (accuracy, video) = (spec.accuracy.as_ref(), spec.video.as_ref());
    let design = match spec.kind() {
        RunKind::Profile => Some(spec.measure.design.to_string()),
        RunKind::Video | RunKind::Link => None,
    };
    let link = spec.link.as_ref().map(|link| {
        let LinkSettings {
            name,
            carrier,
            server,
            shape,
            ..
        } = link;
        let shape = shape.map_or_else(String::new, |shape| format!(", slowed down to {shape}"));
        format!("{name} ({carrier}{shape}) to {server}")
    });
    let origin = job.occurrence_of;
    let rows = [
        ("submitted", Some(told(job.submitted))),
        ("comes of", origin.map(|origin| format!("job {origin}"))),
        ("models", (!models.is_empty()).then(|| few(&models))),
        ("link", link),
        ("devices", Some(few(&devices))),
        (
            "hosts",
            (!spec.hosts.is_empty()).then(|| spec.hosts.join(", ")),
        ),
        ("repeats", Some(spec.repeats.to_string())),
        ("priority", Some(spec.priority.to_string())),
        ("not before", spec.not_before.map(told)),
        ("deadline", spec.deadline.map(told)),
        ("window", spec.window.as_ref().map(ToString::to_string)),
        ("comes again", spec.every.as_ref().map(ToString::to_string)),
        ("design", design),
        ("accuracy", accuracy.map(|it| it.path.display().to_string())),
        ("frames", video.map(|it| it.path.display().to_string())),
        (
            "profiles",
            spec.profiles.as_ref().map(|it| it.display().to_string()),
        ),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(what, text)| Some((what, text?)));
    rows.map(|(what, text)| vec![what.to_owned(), Printable(&text).to_string()])
        .collect()
}

fn run_row(job: &Job, run: &Run, lab: &Lab, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let removed = run
        .journals_removed
        .map(|at| format!("journals removed {}", moment(at, now, zone)));
    let why = run.starved().or_else(|| run.reason.clone());
    let worse = run.worse().map(|verdict| {
        let (reference, what) = (verdict.reference(), verdict.worse_in_words());
        format!("worse than {reference}: {what}")
    });
    let why: Vec<String> = why.into_iter().chain(worse).chain(removed).collect();
    let subject = job.spec.subject(run.model);
    let phone = run.phone.as_ref().or(run.only.as_ref());
    let texts = [
        subject.map(str::to_owned),
        phone.cloned(),
        Some(why.join("; ")),
        run.published().map(|folder| named(folder, lab)),
    ];
    let texts = texts.map(|text| Printable(&text.unwrap_or_default()).to_string());
    let [subject, phone, reason, profile] = texts;
    vec![
        run.number.to_string(),
        subject,
        run.state.to_string(),
        phone,
        run.attempt.to_string(),
        reason,
        profile,
    ]
}

/// A profile by its folder and, if that is still there, the beginning of its digest; of anything else the folder. What lies in a
/// folder of this name here is no profile of a lab elsewhere.
fn named(folder: &Path, lab: &Lab) -> String {
    let path = folder.display();
    match (lab, ProfileDigest::of_folder(folder)) {
        (Lab::Here, Ok(digest)) => format!("{path} ({})", digest.short()),
        _ => path.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_lab::job::JobSpec;

    #[test]
    fn a_run_whose_journals_were_removed_says_so() {
        let now: Timestamp = "2026-12-24T20:00:00Z".parse().expect("an instant");
        let job = Job {
            id: 4,
            spec: JobSpec::default(),
            content_sha256: String::new(),
            submitted: now,
            occurrence_of: None,
            state: JobState::Failed,
        };
        let run = Run {
            reason: Some("it fell".to_owned()),
            journals_removed: Some(now),
            ..Run::default()
        };
        let shown = ShownJob {
            job: &job,
            runs: vec![&run],
            events: Vec::new(),
        };
        let text = text(&shown, &Lab::Here, now, &TimeZone::UTC);
        let moment = moment(now, now, &TimeZone::UTC);
        let expected = format!("it fell; journals removed {moment}");
        assert!(text.contains(&expected), "{text}");
    }
}
