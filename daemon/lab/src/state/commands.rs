//! What users ask of jobs.

use jiff::Timestamp;

use super::{LabState, note_occurrence};
use crate::job::{JobSpec, MOST_RUNS, Selector};
use crate::record::{Device, Job, JobId, JobState, RecordChange, Run, RunNumber, RunState, What};
use crate::talk::{Answer, RefusalCode};

impl LabState {
    /// Takes a job in, unless the same is known.
    pub fn submit(&mut self, spec: JobSpec, again: bool, now: Timestamp) -> Answer {
        let content_sha256 = spec.content_sha256();
        let is_known = |job: &&Job| {
            job.content_sha256 == content_sha256
                && job.occurrence_of.is_none()
                && !matches!(
                    job.state,
                    JobState::Failed | JobState::Cancelled | JobState::Expired
                )
        };
        if !again && let Some(known) = self.kept.jobs.values().rev().find(is_known) {
            return Answer::Known {
                job: known.id,
                state: known.state,
            };
        }
        if spec.deadline.is_some_and(|deadline| deadline <= now) {
            return refused(
                RefusalCode::WrongPeriod,
                "the job's deadline is over; give it a later one",
            );
        }
        if let Some(refusal) = self.without_hosts(&spec) {
            return refusal;
        }
        let runs = self.runs_of(&spec);
        if runs > MOST_RUNS {
            let message = format!(
                "the job asks for {runs} {}, and a lab takes at most {MOST_RUNS} at once; split it, or lower `repeats`",
                spec.kind().given(runs)
            );
            return refused(RefusalCode::TooMuch, &message);
        }
        let state = match spec.every {
            Some(_) => JobState::Recurring,
            None => JobState::Open,
        };
        let warnings = self.impossible(&spec);
        // It is due once, and not in the time zone of each host.
        let every = spec.every.map(|every| match self.kept.host {
            Some(_) => every.in_named_zone(),
            None => every,
        });
        let spec = JobSpec { every, ..spec };
        let id = self.add_job(spec, content_sha256, state, None, now);
        match state {
            JobState::Recurring => Answer::Submitted {
                job: id,
                runs: 0,
                warnings,
            },
            _ => match self.add_runs(id) {
                0 if !self.kept.jobs[&id].spec.hosts.is_empty() => {
                    self.end_job(id, JobState::Failed, now);
                    refused(
                        RefusalCode::UnknownHost,
                        "no device that the job is for is on one of its hosts; `layerlab hosts --json` says what each has",
                    )
                }
                0 => {
                    self.end_job(id, JobState::Failed, now);
                    refused(
                        RefusalCode::UnknownDevice,
                        "no device that the job is for has ever been seen; `layerlab devices` lists them",
                    )
                }
                runs => Answer::Submitted {
                    job: id,
                    runs,
                    warnings,
                },
            },
        }
    }

    fn add_job(
        &mut self,
        spec: JobSpec,
        content_sha256: String,
        state: JobState,
        occurrence_of: Option<JobId>,
        now: Timestamp,
    ) -> JobId {
        self.kept.last_job += 1;
        let id = self.kept.last_job;
        if let Some(origin) = occurrence_of {
            note_occurrence(&mut self.kept.last_occurrences, origin, now);
        }
        let job = Job {
            id,
            spec,
            content_sha256,
            submitted: now,
            occurrence_of,
            state,
        };
        self.changes.push(RecordChange::Job(job.clone()));
        self.put_job(job);
        self.tell(now, Some(id), None, None, What::Submitted);
        id
    }

    /// How many runs a job with this content would have now.
    fn runs_of(&self, spec: &JobSpec) -> usize {
        let matching = |selector: &Selector| match selector.each {
            false => 1,
            true => {
                let devices = self.kept.devices.values();
                let devices = devices.filter(|one| spec.means(selector, one));
                let on_hosts = |one: &&Device| self.is_on_chosen_host(spec, &one.name);
                devices.filter(on_hosts).count()
            }
        };
        let devices: usize = spec.devices.iter().map(matching).sum();
        let repeats = usize::try_from(spec.repeats).unwrap_or(usize::MAX);
        (spec.subjects().saturating_mul(devices)).saturating_mul(repeats)
    }

    /// The runs of a job: its models on its devices, the first repeat of all before the second of any.
    fn add_runs(&mut self, id: JobId) -> usize {
        let Some(job) = self.kept.jobs.get(&id) else {
            return 0;
        };
        let mut wanted = Vec::new();
        for repeat in 1..=job.spec.repeats {
            for model in 0..job.spec.subjects() {
                for (selector, devices) in job.spec.devices.iter().enumerate() {
                    if !devices.each {
                        wanted.push((model, selector, None, repeat));
                        continue;
                    }
                    let each = self
                        .kept
                        .devices
                        .values()
                        .filter(|one| job.spec.means(devices, one))
                        .filter(|one| self.is_on_chosen_host(&job.spec, &one.name));
                    wanted
                        .extend(each.map(|one| (model, selector, Some(one.name.clone()), repeat)));
                }
            }
        }
        let count = wanted.len();
        for (model, selector, only, repeat) in wanted {
            self.kept.last_run += 1;
            let number = self.kept.last_run;
            let run = Run {
                number,
                job: id,
                model,
                selector,
                only,
                repeat,
                ..Run::default()
            };
            self.changes.push(RecordChange::Run(run.clone()));
            self.kept.runs.insert(number, run);
            self.file(number);
        }
        count
    }

    /// Submits what is due of recurring jobs. Of several times that the daemon missed, the last one counts.
    pub fn recur(&mut self, now: Timestamp) {
        let due: Vec<(JobId, Timestamp)> = self
            .agenda
            .recurring()
            .filter_map(|id| {
                let job = self.kept.jobs.get(&id)?;
                let latest = job.spec.every.as_ref()?.latest_before(now)?;
                let is_new = latest > job.submitted && !self.has_occurrence(job.id, latest);
                is_new.then_some((job.id, latest))
            })
            .collect();
        for (origin, at) in due {
            let Some(job) = self.kept.jobs.get(&origin) else {
                continue;
            };
            let spec = JobSpec {
                every: None,
                ..job.spec.clone()
            };
            let content = job.content_sha256.clone();
            let id = self.add_job(spec, content, JobState::Open, Some(origin), at);
            if self.add_runs(id) == 0 {
                self.end_job(id, JobState::Failed, now);
            }
        }
    }

    fn has_occurrence(&self, origin: JobId, at: Timestamp) -> bool {
        let last = self.kept.last_occurrences.get(&origin);
        last.is_some_and(|&last| last >= at)
    }

    /// Gives up the jobs whose deadline is over.
    pub fn lapse(&mut self, now: Timestamp) {
        for job in self.agenda.late(now) {
            self.stop_job(
                job,
                JobState::Expired,
                RunState::Expired,
                "the deadline came",
                now,
            );
        }
    }

    /// Ends a job.
    pub fn cancel(&mut self, id: JobId, now: Timestamp) -> Answer {
        match self.job_state(id) {
            Err(unknown) => unknown,
            Ok(JobState::Open | JobState::Paused | JobState::Recurring) => {
                self.stop_job(
                    id,
                    JobState::Cancelled,
                    RunState::Cancelled,
                    "cancelled",
                    now,
                );
                Answer::Done
            }
            Ok(state) => is_over(id, state),
        }
    }

    /// Leaves a job alone.
    pub fn pause(&mut self, id: JobId, now: Timestamp) -> Answer {
        match self.job_state(id) {
            Err(unknown) => unknown,
            Ok(JobState::Open) => {
                self.set_job(id, |job| job.state = JobState::Paused);
                self.tell(now, Some(id), None, None, What::Paused);
                Answer::Done
            }
            Ok(JobState::Paused) => Answer::Done,
            Ok(JobState::Recurring) => refused(
                RefusalCode::WrongState,
                &format!("job {id} recurs; cancel it, and submit it again later"),
            ),
            Ok(state) => is_over(id, state),
        }
    }

    /// Goes on with a paused job.
    pub fn resume(&mut self, id: JobId, now: Timestamp) -> Answer {
        match self.job_state(id) {
            Err(unknown) => unknown,
            Ok(JobState::Paused) => {
                self.set_job(id, |job| job.state = JobState::Open);
                self.tell(now, Some(id), None, None, What::Resumed);
                Answer::Done
            }
            Ok(JobState::Open) => Answer::Done,
            Ok(state) => refused(
                RefusalCode::WrongState,
                &format!("job {id} is {state}, not paused"),
            ),
        }
    }

    /// Tries again what was given up of a job.
    pub fn retry(&mut self, id: JobId, now: Timestamp) -> Answer {
        let state = match self.job_state(id) {
            Err(unknown) => return unknown,
            Ok(state) => state,
        };
        let given_up: Vec<RunNumber> = self
            .runs_of_job(id)
            .filter(|run| {
                matches!(
                    run.state,
                    RunState::Failed | RunState::Cancelled | RunState::Expired
                )
            })
            .map(|run| run.number)
            .collect();
        if given_up.is_empty() {
            return refused(
                RefusalCode::WrongState,
                &format!("nothing of job {id} was given up"),
            );
        }
        if (given_up.iter()).any(|run| self.places.values().any(|p| p.work.run() == Some(*run))) {
            return refused(
                RefusalCode::WrongState,
                &format!("job {id} is still leaving a device; try again in a moment"),
            );
        }
        for number in given_up {
            self.set_run(number, |run| {
                run.state = RunState::Queued;
                run.host = None;
                run.failed_on.clear();
                run.reason = None;
                run.ended = None;
                run.journals_removed = None;
            });
        }
        let is_over = !matches!(state, JobState::Open | JobState::Paused);
        self.set_job(id, |job| {
            if is_over {
                job.state = JobState::Open;
            }
            // It is over already; what is wanted now has none.
            job.spec.deadline = job.spec.deadline.filter(|&deadline| deadline > now);
        });
        self.tell(now, Some(id), None, None, What::RetryAsked);
        Answer::Done
    }

    fn job_state(&self, id: JobId) -> Result<JobState, Answer> {
        let job = self.kept.jobs.get(&id);
        job.map(|job| job.state).ok_or_else(|| {
            refused(
                RefusalCode::UnknownJob,
                &format!("there is no job {id}; `layerlab jobs --all` lists them"),
            )
        })
    }

    /// Ends a job with whatever is left of it. What is on a device leaves it.
    fn stop_job(
        &mut self,
        id: JobId,
        state: JobState,
        of_runs: RunState,
        reason: &str,
        now: Timestamp,
    ) {
        let open: Vec<RunNumber> = self
            .runs_of_job(id)
            .filter(|run| !run.state.is_over())
            .map(|run| run.number)
            .collect();
        for number in open {
            self.set_run(number, |run| {
                run.state = of_runs;
                run.ended = Some(now);
                run.reason = Some(reason.to_owned());
            });
        }
        self.end_job(id, state, now);
    }

    pub(super) fn end_job(&mut self, id: JobId, state: JobState, now: Timestamp) {
        self.set_job(id, |job| job.state = state);
        self.over.insert(id);
        self.tell(now, Some(id), None, None, What::JobEnded { state });
    }
}

pub(super) fn refused(code: RefusalCode, message: &str) -> Answer {
    Answer::Refused {
        code,
        message: message.to_owned(),
    }
}

fn is_over(id: JobId, state: JobState) -> Answer {
    refused(
        RefusalCode::WrongState,
        &format!("job {id} is {state} already"),
    )
}
