//! `layerlab jobs`: what the lab was asked for, and what each job waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::exit::Failure;
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::record::{Job, JobState, Kept, Run, RunState};
use layerlab_lab::talk::Status;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Those that are over, too
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A job in the list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    job: &'a Job,
    /// How many of its runs are in each state.
    runs: BTreeMap<String, usize>,
    waiting_for: Vec<String>,
}

pub(super) async fn run(args: &Args) -> Result<(), Failure> {
    let kept = lab::kept().await?;
    let status = lab::status().await?;
    let now = Timestamp::now();
    let jobs = kept.jobs.values();
    let jobs = jobs.filter(|job| args.all || !is_over(job.state));
    let jobs: Vec<Listed> = jobs
        .map(|job| listed(job, &kept, status.as_ref(), now))
        .collect();
    if args.json {
        return output::print_json(&jobs);
    }
    if kept.jobs.is_empty() {
        return output::print("No jobs. `layerlab submit JOB.toml` gives the lab one.");
    }
    if jobs.is_empty() {
        return output::print("No job is open. `layerlab jobs --all` lists those that are over.");
    }
    let rows = jobs.iter().map(|listed| {
        let spec = &listed.job.spec;
        let all: usize = listed.runs.values().sum();
        let done = listed.runs.get("done").copied().unwrap_or(0);
        let devices: Vec<String> = spec.devices.iter().map(ToString::to_string).collect();
        let texts = [spec.name.clone(), devices.join("; ")];
        let [name, devices] = texts.map(|text| Printable(&text).to_string());
        vec![
            listed.job.id.to_string(),
            name,
            listed.job.state.to_string(),
            spec.priority.to_string(),
            format!("{done}/{all}"),
            devices,
            Printable(&listed.waiting_for.join("; ")).to_string(),
        ]
    });
    let heads = [
        "job",
        "name",
        "state",
        "priority",
        "runs",
        "devices",
        "waiting for",
    ];
    output::print(table(&heads, &[0, 3, 4], rows))?;
    match status {
        None => output::note("\nNo daemon runs here, so that nothing is worked on."),
        Some(Status {
            trouble: Some(trouble),
            ..
        }) => output::note(format_args!("\nThe lab does not work: {trouble}")),
        Some(_) => {}
    }
    Ok(())
}

pub(super) fn is_over(state: JobState) -> bool {
    !matches!(
        state,
        JobState::Open | JobState::Recurring | JobState::Paused
    )
}

fn listed<'a>(job: &'a Job, kept: &Kept, status: Option<&Status>, now: Timestamp) -> Listed<'a> {
    let own = kept.runs.values().filter(|run| run.job == job.id);
    let own: Vec<&Run> = own.collect();
    let mut runs = BTreeMap::new();
    for run in &own {
        *runs.entry(run.state.to_string()).or_default() += 1;
    }
    Listed {
        job,
        runs,
        waiting_for: waiting_for(job, &own, status, now),
    }
}

/// What keeps a job from being worked on; nothing if it is.
fn waiting_for(job: &Job, runs: &[&Run], status: Option<&Status>, now: Timestamp) -> Vec<String> {
    match job.state {
        JobState::Paused => return vec![format!("`layerlab job resume {}`", job.id)],
        JobState::Recurring => {
            let next = job
                .spec
                .every
                .as_ref()
                .and_then(|every| every.next_after(now));
            let next = next.map(|at| moment(at, now, &TimeZone::system()));
            return next.into_iter().collect();
        }
        JobState::Open => {}
        JobState::Done | JobState::Failed | JobState::Cancelled | JobState::Expired => {
            return Vec::new();
        }
    }
    let Some(status) = status else {
        return vec!["a daemon".to_owned()];
    };
    let waiting = runs.iter().filter(|run| is_waiting(run.state));
    let mut reasons: Vec<String> = Vec::new();
    for run in waiting {
        let known = status.waiting.iter();
        let known = known.filter(|(number, _)| *number == run.number);
        reasons.extend(known.map(|(_, why)| why.clone()));
    }
    reasons.sort();
    reasons.dedup();
    let starved = runs.iter().filter_map(|run| run.starved());
    reasons.splice(0..0, starved);
    let works = runs.iter().any(|run| run.state == RunState::Running);
    if reasons.is_empty() && !works && runs.iter().any(|run| is_waiting(run.state)) {
        reasons.push("a free device".to_owned());
    }
    reasons
}

fn is_waiting(state: RunState) -> bool {
    matches!(state, RunState::Queued | RunState::Parked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_lab::job::JobSpec;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn job(state: JobState) -> Job {
        Job {
            id: 4,
            spec: JobSpec {
                name: "tonight".to_owned(),
                ..JobSpec::default()
            },
            content_sha256: String::new(),
            submitted: at("2026-11-20T20:00:00Z"),
            occurrence_of: None,
            state,
        }
    }

    #[test]
    fn a_starved_run_is_named() {
        let starved = Run {
            visits_without_block: 3,
            reason: Some("the daemon ended".to_owned()),
            ..run(1, RunState::Parked)
        };
        let status = Status::default();
        let found = waiting_for(
            &job(JobState::Open),
            &[&starved],
            Some(&status),
            at("2026-11-20T21:00:00Z"),
        );
        let expected = "starved: left its device 3 times before a block had ended, the last time because the daemon ended";
        assert_eq!(found, [expected]);
    }

    fn run(number: i64, state: RunState) -> Run {
        Run {
            number,
            job: 4,
            state,
            ..Run::default()
        }
    }

    #[test]
    fn a_job_says_what_it_waits_for() {
        use JobState::{Done, Open, Paused};
        use RunState::{Parked, Queued, Running};
        let window = (1, "the window opens at 22:00".to_owned());
        let closed = Status {
            waiting: vec![
                window.clone(),
                (2, window.1.clone()),
                (9, "else".to_owned()),
            ],
            ..Status::default()
        };
        let idle = Status::default();
        type Case<'a> = (JobState, &'a [RunState], Option<&'a Status>, &'a [&'a str]);
        let cases: [Case<'_>; 7] = [
            (Paused, &[Parked], Some(&idle), &["`layerlab job resume 4`"]),
            (Done, &[], Some(&idle), &[]),
            (Open, &[Queued], None, &["a daemon"]),
            (Open, &[Queued, Queued], Some(&closed), &[&window.1]),
            (Open, &[Queued], Some(&idle), &["a free device"]),
            (Open, &[Queued, Running], Some(&idle), &[]),
            (Open, &[Running], Some(&idle), &[]),
        ];
        for (state, states, status, expected) in cases {
            let runs = states.iter().zip(1..);
            let runs: Vec<Run> = runs.map(|(&state, number)| run(number, state)).collect();
            let runs: Vec<&Run> = runs.iter().collect();
            let found = waiting_for(&job(state), &runs, status, at("2026-11-20T21:00:00Z"));
            assert_eq!(found, expected, "{state} {states:?}");
        }
    }
}
