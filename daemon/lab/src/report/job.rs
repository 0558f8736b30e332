//! What came of jobs and their runs.

use std::collections::BTreeMap;

use super::history::History;
use super::{
    Counts, Earlier, FailedAttempt, JobReport, LinkPublication, Publication, RunOutcome, RunReport,
    VideoPublication, absent, counted, device_of,
};
use crate::job::RunKind;
use crate::record::{Job, JobState, Kept, Run, RunState, What};

/// Every job that was open, came or ended then.
pub(super) fn reports(kept: &Kept, history: &History) -> Vec<JobReport> {
    let earlier = Profiles::before(kept, history);
    let jobs = kept.jobs.values();
    jobs.filter(|job| job.submitted <= history.until)
        .filter_map(|job| report(kept, history, &earlier, job))
        .collect()
}

/// The last profiles from before the report, by model and device.
struct Profiles<'a>(BTreeMap<(String, &'a str), Earlier>);

impl<'a> Profiles<'a> {
    fn before(kept: &'a Kept, history: &History) -> Profiles<'a> {
        let mut profiles: BTreeMap<(String, &str), Earlier> = BTreeMap::new();
        let done = kept.runs.values().filter(|run| run.state == RunState::Done);
        for run in done {
            let job = kept.jobs.get(&run.job);
            let (Some(job), Some(device), Some(ended), Some(profile)) =
                (job, &run.phone, run.ended, &run.profile)
            else {
                continue;
            };
            if ended >= history.since {
                continue;
            }
            let earlier = Earlier {
                profile: profile.clone(),
                ended,
                whole_model: Vec::new(),
            };
            let key = (model(job, run), device.as_str());
            let known = profiles.entry(key).or_insert_with(|| earlier.clone());
            if known.ended < ended {
                *known = earlier;
            }
        }
        Profiles(profiles)
    }

    /// That of the same model on the same device, unless the run's own has replaced it.
    fn of(&self, job: &Job, run: &Run) -> Option<Earlier> {
        let device = run.phone.as_deref()?;
        let earlier = self.0.get(&(model(job, run), device))?;
        (run.profile.as_ref() != Some(&earlier.profile)).then(|| earlier.clone())
    }
}

fn report(kept: &Kept, history: &History, earlier: &Profiles, job: &Job) -> Option<JobReport> {
    let runs = kept.runs.values().filter(|run| run.job == job.id);
    let runs: Vec<RunReport> = runs
        .filter(|run| concerns(history, job, run))
        .map(|run| run_report(kept, history, earlier, job, run))
        .collect();
    let recurs = job.state == JobState::Recurring;
    if runs.is_empty() && !recurs && !history.touches(job.id) {
        return None;
    }
    Some(JobReport {
        id: job.id,
        name: job.spec.name.clone(),
        kind: job.spec.kind(),
        state: job.state,
        submitted: job.submitted,
        occurrence_of: job.occurrence_of,
        counts: Counts::of(runs.iter().map(|run| run.outcome)),
        runs,
    })
}

/// Whether the run was not over when the report begins.
fn concerns(history: &History, job: &Job, run: &Run) -> bool {
    match run.ended {
        _ if !run.state.is_over() => true,
        Some(ended) => ended >= history.since,
        // It never began, and so ended with its job.
        None => history.touches(job.id),
    }
}

fn run_report(
    kept: &Kept,
    history: &History,
    earlier: &Profiles,
    job: &Job,
    run: &Run,
) -> RunReport {
    let outcome = outcome(history, run);
    let in_report = |run| {
        let events = history.of_run(run);
        events.filter(|event| history.covers(event.at))
    };
    let retried = in_report(run.number).filter_map(|event| match &event.what {
        What::AttemptFailed { reason } => Some(FailedAttempt {
            at: event.at,
            device: event.device.clone(),
            reason: reason.clone(),
        }),
        _ => None,
    });
    let rejected = in_report(run.number).filter_map(|event| match &event.what {
        What::BlockRejected { reason } => Some(reason.as_str()),
        _ => None,
    });
    let published = outcome == RunOutcome::Published;
    let gives = |kind: RunKind| published && job.spec.kind() == kind;
    RunReport {
        number: run.number,
        model: model(job, run),
        device: device_of(job, run),
        repeat: run.repeat,
        outcome,
        absent: (!published).then(|| absent::explain(kept, history, job, run)),
        attempts: run.attempt,
        retried: retried.collect(),
        rejected: counted(rejected),
        ended: run.ended.filter(|ended| *ended <= history.until),
        spent: run.spent,
        published: gives(RunKind::Profile).then(|| Publication {
            before: earlier.of(job, run),
            ..publication(history, run)
        }),
        video: gives(RunKind::Video).then(|| video(history, run)),
        link: gives(RunKind::Link).then(|| link(history, run)),
    }
}

fn outcome(history: &History, run: &Run) -> RunOutcome {
    if run.ended.is_some_and(|ended| ended > history.until) {
        return match run.started {
            Some(started) if started <= history.until => RunOutcome::Running,
            _ => RunOutcome::Waiting,
        };
    }
    match run.state {
        RunState::Queued => RunOutcome::Waiting,
        RunState::Running => RunOutcome::Running,
        RunState::Parked => RunOutcome::Parked,
        RunState::Done => RunOutcome::Published,
        RunState::Failed => RunOutcome::Failed,
        RunState::Cancelled => RunOutcome::Cancelled,
        RunState::Expired => RunOutcome::Expired,
    }
}

fn model(job: &Job, run: &Run) -> String {
    let subject = job.spec.subject(run.model);
    subject.map_or_else(|| format!("model {}", run.model + 1), str::to_owned)
}

fn publication(history: &History, run: &Run) -> Publication {
    let mut events = history.of_run(run.number).rev();
    let event = events.find_map(|event| match &event.what {
        What::Published { profile, findings } => Some((profile, findings)),
        _ => None,
    });
    let profile = run.profile.as_ref().or(event.map(|(profile, _)| profile));
    Publication {
        profile: profile.cloned().unwrap_or_default(),
        findings: event.map_or_else(Vec::new, |(_, findings)| findings.clone()),
        verdict: run.verdict.clone(),
        simulated: None,
        emulated: None,
        gone: false,
        digest: None,
        whole_model: Vec::new(),
        before: None,
        plot: None,
    }
}

fn video(history: &History, run: &Run) -> VideoPublication {
    let mut events = history.of_run(run.number).rev();
    let findings = events.find_map(|event| match &event.what {
        What::VideoPublished { findings, .. } => Some(findings.clone()),
        _ => None,
    });
    VideoPublication {
        folder: run.video.clone().unwrap_or_default(),
        findings: findings.unwrap_or_default(),
        ..VideoPublication::default()
    }
}

fn link(history: &History, run: &Run) -> LinkPublication {
    let mut events = history.of_run(run.number).rev();
    let findings = events.find_map(|event| match &event.what {
        What::LinkPublished { findings, .. } => Some(findings.clone()),
        _ => None,
    });
    LinkPublication {
        folder: run.link.clone().unwrap_or_default(),
        findings: findings.unwrap_or_default(),
        ..LinkPublication::default()
    }
}
