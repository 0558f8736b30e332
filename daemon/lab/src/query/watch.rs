//! The lab as it is now, at a glance: its trouble, its devices, its open jobs, and why work waits.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::record::{Job, JobId, JobState, Kept, RunNumber, RunState};
use crate::talk::{DeviceState, DeviceStatus, Status};

/// The lab at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchedLab {
    /// What keeps the lab from working, or why it does not say how it is.
    pub trouble: Option<String>,
    /// Its devices.
    pub devices: WatchedDevices,
    /// Its jobs that are not over: those that are worked on, then those that are next.
    pub jobs: Vec<WatchedJob>,
    /// Why runs wait, the most frequent reason first.
    pub waiting: Vec<WaitingGroup>,
}

/// The devices of a lab.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchedDevices {
    /// As the daemon says that they are.
    Now(Vec<WatchedDevice>),
    /// As the store knows them, when no daemon says how they are.
    SeenBefore(Vec<SeenDevice>),
}

/// A device and what it is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchedDevice {
    /// What to call it where people read.
    pub label: String,
    /// The host that has it, or had it last, where several share the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What it is doing, or what keeps it from that.
    pub state: DeviceState,
    /// The run that it has, by its job's name and its model's.
    pub run: Option<String>,
    /// How many samples and answers of the run there are, and of how many if that is known.
    pub progress: Option<(u64, Option<u64>)>,
    /// When it came into its state.
    pub since: Timestamp,
    /// When it will be free, as far as past runs tell.
    pub free_at: Option<Timestamp>,
    /// Why it is in its state, for a person.
    pub reason: Option<String>,
}

/// A device that was seen once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeenDevice {
    /// What to call it where people read.
    pub label: String,
    /// What it is, for a person.
    pub description: String,
}

/// A job that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchedJob {
    /// The number by which commands name the job.
    pub id: JobId,
    /// What users call it.
    pub name: String,
    /// What became of it.
    pub state: JobState,
    /// How its runs are; none if it recurs, and so has no runs of its own.
    pub runs: Option<WatchedRuns>,
}

/// How many runs of a job are how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WatchedRuns {
    /// Those whose profile is published.
    pub published: usize,
    /// Those on a device.
    pub running: usize,
    /// Those left between two blocks.
    pub parked: usize,
    /// Those that wait for a device.
    pub waiting: usize,
    /// Those that were given up.
    pub failed: usize,
    /// Those whose published profile is worse than the last good one.
    pub worse: usize,
}

/// Runs that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingGroup {
    /// What they wait for.
    pub reason: String,
    /// The first of them, by its job's name and its model's.
    pub first: String,
    /// How many they are.
    pub runs: usize,
    /// How many jobs have such runs.
    pub jobs: usize,
}

impl WatchedLab {
    /// What the daemon and the store say; `lab` is the daemon's answer, or why there is none.
    pub fn of(lab: &Result<Status, String>, kept: &Kept) -> WatchedLab {
        let (trouble, devices, waiting) = match lab {
            Ok(status) => {
                let devices = status.devices.iter().map(|status| device(kept, status));
                let devices = WatchedDevices::Now(devices.collect());
                (status.trouble.clone(), devices, groups(kept, status))
            }
            Err(silence) => (Some(silence.clone()), seen_before(kept), Vec::new()),
        };
        WatchedLab {
            trouble,
            devices,
            jobs: jobs(kept),
            waiting,
        }
    }
}

/// Why runs wait, whatever their jobs are.
fn groups(kept: &Kept, status: &Status) -> Vec<WaitingGroup> {
    let mut groups: BTreeMap<&str, WaitingGroup> = BTreeMap::new();
    for (job, problem) in &status.impossible {
        let name = kept.jobs.get(job).map(|job| job.spec.name.clone());
        let group = groups.entry(problem).or_insert_with(|| WaitingGroup {
            reason: problem.clone(),
            first: name.unwrap_or_else(|| format!("job {job}")),
            runs: 0,
            jobs: 0,
        });
        group.jobs += 1;
    }
    for waiting in &status.waiting {
        let group = groups
            .entry(&waiting.reason)
            .or_insert_with(|| WaitingGroup {
                reason: waiting.reason.clone(),
                first: run_name(kept, waiting.first),
                runs: 0,
                jobs: 0,
            });
        group.runs += waiting.runs;
        group.jobs += 1;
    }
    let mut groups: Vec<WaitingGroup> = groups.into_values().collect();
    // What is impossible waits for ever.
    groups.sort_by_key(|group| (group.runs > 0, Reverse(group.runs)));
    groups
}

fn device(kept: &Kept, status: &DeviceStatus) -> WatchedDevice {
    WatchedDevice {
        label: status.device.label(),
        host: status.host.clone(),
        state: status.state,
        run: status.run.map(|number| run_name(kept, number)),
        progress: status.progress,
        since: status.since,
        free_at: status.free_at,
        reason: status.reason.clone(),
    }
}

fn seen_before(kept: &Kept) -> WatchedDevices {
    let devices = kept.devices.values().map(|device| SeenDevice {
        label: device.label(),
        description: device.description.clone(),
    });
    WatchedDevices::SeenBefore(devices.collect())
}

/// A run by what people know it as: its job's name and its model's, or its link's.
fn run_name(kept: &Kept, number: RunNumber) -> String {
    let known = kept.runs.get(&number).and_then(|run| {
        let job = kept.jobs.get(&run.job)?;
        let subject = job.spec.subject(run.model)?;
        Some(format!("{}/{subject}", job.spec.name))
    });
    known.unwrap_or_else(|| format!("run {number}"))
}

fn jobs(kept: &Kept) -> Vec<WatchedJob> {
    let mut counts: BTreeMap<JobId, WatchedRuns> = BTreeMap::new();
    for run in kept.runs.values() {
        let of_job = counts.entry(run.job).or_default();
        of_job.worse += usize::from(run.worse().is_some());
        match run.state {
            RunState::Done => of_job.published += 1,
            RunState::Running => of_job.running += 1,
            RunState::Parked => of_job.parked += 1,
            RunState::Queued => of_job.waiting += 1,
            RunState::Failed => of_job.failed += 1,
            RunState::Cancelled | RunState::Expired => {}
        }
    }
    let mut jobs: Vec<&Job> = kept.jobs.values().collect();
    jobs.retain(|job| !job.state.is_over());
    jobs.sort_by_key(|job| {
        let is_running = counts.get(&job.id).is_some_and(|runs| runs.running > 0);
        // The order in which the lab takes them.
        let rank = (
            Reverse(job.spec.priority),
            job.spec.deadline.unwrap_or(Timestamp::MAX),
            job.id,
        );
        (!is_running, job.state != JobState::Open, rank)
    });
    let watched = |job: &Job| WatchedJob {
        id: job.id,
        name: job.spec.name.clone(),
        state: job.state,
        runs: match job.state {
            JobState::Recurring => None,
            _ => Some(counts.get(&job.id).copied().unwrap_or_default()),
        },
    };
    jobs.into_iter().map(watched).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobSpec, ModelSpec};
    use crate::record::Run;
    use crate::talk::WaitingRuns;

    fn job(id: JobId, state: JobState) -> (JobId, Job) {
        let spec = JobSpec {
            name: format!("job{id}"),
            models: vec![ModelSpec {
                name: "alexnet".to_owned(),
                ..ModelSpec::default()
            }],
            ..JobSpec::default()
        };
        let job = Job {
            id,
            content_sha256: String::new(),
            spec,
            submitted: Timestamp::UNIX_EPOCH,
            occurrence_of: None,
            state,
        };
        (id, job)
    }

    #[test]
    fn jobs_that_are_not_over_are_counted_and_runs_have_their_names() {
        let jobs = [
            job(1, JobState::Open),
            job(2, JobState::Done),
            job(3, JobState::Recurring),
        ];
        let states = [
            (1, RunState::Done),
            (1, RunState::Queued),
            (1, RunState::Expired),
            (2, RunState::Done),
        ];
        let runs = (1..).zip(states).map(|(number, (job, state))| {
            let run = Run {
                number,
                job,
                state,
                ..Run::default()
            };
            (number, run)
        });
        let kept = Kept {
            jobs: jobs.into(),
            runs: runs.collect(),
            ..Kept::default()
        };
        let waits = |job, first, runs, reason: &str| WaitingRuns {
            job,
            first,
            runs,
            reason: reason.to_owned(),
        };
        let status = Status {
            waiting: vec![
                waits(1, 2, 1, "it is early"),
                waits(7, 9, 5, "R58 is busy"),
                waits(8, 20, 5, "R58 is busy"),
            ],
            impossible: vec![(1, "there is no pool `day`".to_owned())],
            ..Status::default()
        };
        let lab = WatchedLab::of(&Ok(status), &kept);
        let open: Vec<(JobId, Option<WatchedRuns>)> =
            lab.jobs.iter().map(|job| (job.id, job.runs)).collect();
        let counts = WatchedRuns {
            published: 1,
            waiting: 1,
            ..WatchedRuns::default()
        };
        assert_eq!(open, [(1, Some(counts)), (3, None)]);
        let groups = lab.waiting.iter();
        let groups: Vec<_> = groups
            .map(|group| (group.first.as_str(), group.runs, group.jobs))
            .collect();
        assert_eq!(
            groups,
            [("job1", 0, 1), ("run 9", 10, 2), ("job1/alexnet", 1, 1)]
        );
    }
}
