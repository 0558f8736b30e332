//! Jobs that are over stay in the store, and are known from there.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use layerlab_lab::bench::{Assignment, Bench, Desk};
use layerlab_lab::clock::Clock;
use layerlab_lab::dispatcher::Message;
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::query::{listed_jobs, report};
use layerlab_lab::record::{Device, Job, JobState, RecordChange, Run, RunState, Spent};
use layerlab_lab::state::StayOutcome;
use layerlab_lab::store::Store;
use layerlab_lab::talk::{Answer, DeviceStatus, RefusalCode, Request};
use tokio::time::sleep;

use crate::home::{Home, on_both};
use crate::played::{PlayedLab, published};

on_both! {
    what_is_over_is_known_and_not_loaded,
    an_occurrence_that_is_over_does_not_come_again,
    runs_that_are_over_tell_when_a_device_will_be_free,
}

const JOBS: i64 = 5_000;

/// What each run takes.
const RUN: Duration = Duration::from_secs(600);

#[derive(Clone)]
struct QuickDevice;

impl Bench for QuickDevice {
    type Opened = ();

    async fn work(
        &self,
        _: &mut Option<()>,
        assignment: &Assignment,
        _: &Desk,
    ) -> (StayOutcome, Spent) {
        sleep(RUN).await;
        let spent = Spent {
            wall_ms: RUN.as_millis() as u64,
            ..Spent::default()
        };
        (published(assignment.run.number), spent)
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    async fn close(&self, (): ()) {}
}

type Lab = PlayedLab<QuickDevice>;

fn start() -> Timestamp {
    "2026-11-20T20:00:30Z".parse().expect("an instant")
}

fn spec(number: i64) -> JobSpec {
    JobSpec {
        name: format!("job{number}"),
        models: vec![ModelSpec {
            name: "alexnet".to_owned(),
            sha256: format!("{number:064}"),
            ..ModelSpec::default()
        }],
        devices: vec![Selector::default()],
        window: Some("always".parse().expect("a window")),
        ..JobSpec::default()
    }
}

/// A job of one run that is over: done, or given up if its number is divisible by three.
fn over(number: i64) -> [RecordChange; 2] {
    let (state, of_run) = match number % 3 {
        0 => (JobState::Failed, RunState::Failed),
        _ => (JobState::Done, RunState::Done),
    };
    let ended = start() - SignedDuration::from_hours(1);
    let job = Job {
        id: number,
        spec: spec(number),
        content_sha256: spec(number).content_sha256(),
        submitted: ended - SignedDuration::from_hours(1),
        occurrence_of: None,
        state,
    };
    let run = Run {
        number,
        job: number,
        repeat: 1,
        state: of_run,
        phone: Some("phone".to_owned()),
        attempt: 1,
        started: Some(job.submitted),
        ended: Some(ended),
        ..Run::default()
    };
    [RecordChange::Job(job), RecordChange::Run(run)]
}

async fn plug(lab: &Lab) {
    let device = Device {
        name: "phone".to_owned(),
        serial: "phone".to_owned(),
        ..Device::default()
    };
    lab.send(Message::Devices(vec![device])).await;
}

async fn device(lab: &Lab) -> DeviceStatus {
    let Answer::Status(status) = lab.ask(Request::Status).await else {
        panic!("no status");
    };
    status.devices.into_iter().next().expect("a device")
}

fn refusal(answer: Answer) -> (RefusalCode, String) {
    match answer {
        Answer::Refused { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

async fn what_is_over_is_known_and_not_loaded(home: Home) {
    let (store, _) = Store::open(&home.place).await.expect("a store");
    let changes = (1..=JOBS).flat_map(over).collect();
    store.keep(changes).await.expect("room");
    store.close().await;
    let (store, kept) = Store::open(&home.place).await.expect("a store");
    assert_eq!((kept.jobs.len(), kept.runs.len()), (0, 0));
    store.close().await;

    let lab = Lab::new(home, Clock::starting(start()), QuickDevice).await;
    plug(&lab).await;
    let submit = |number| Request::Submit {
        spec: Box::new(spec(number)),
        again: false,
        sizes: Vec::new(),
    };
    let known = Answer::Known {
        job: 4_999,
        state: JobState::Done,
    };
    assert_eq!(lab.ask(submit(4_999)).await, known);
    let done = lab.ask(Request::Retry { job: 4_999 }).await;
    let nothing = "nothing of job 4999 was given up".to_owned();
    assert_eq!(refusal(done), (RefusalCode::WrongState, nothing));
    let cancelled = lab.ask(Request::Cancel { job: 1 }).await;
    let too_late = "job 1 is done already".to_owned();
    assert_eq!(refusal(cancelled), (RefusalCode::WrongState, too_late));
    let unknown = lab.ask(Request::Retry { job: JOBS + 1 }).await;
    assert_eq!(refusal(unknown).0, RefusalCode::UnknownJob);
    // One that was given up is not the same work done.
    let new = Answer::Submitted {
        job: JOBS + 1,
        runs: 1,
        warnings: Vec::new(),
    };
    assert_eq!(lab.ask(submit(3)).await, new);
    assert_eq!(lab.ask(Request::Retry { job: 3 }).await, Answer::Done);
    sleep(3 * RUN).await;

    let kept = lab.kept().await;
    assert_eq!(kept.jobs[&3].state, JobState::Done);
    assert_eq!(kept.runs[&3].attempt, 2);
    assert_eq!(kept.runs[&(JOBS + 1)].job, JOBS + 1);
    let now = lab.clock.now();
    let listed = |all| listed_jobs(&kept, None, all, now, &TimeZone::UTC).len() as i64;
    assert_eq!((listed(false), listed(true)), (0, JOBS + 1));
    let day_before = start() - SignedDuration::from_hours(24);
    let report = report(&lab.reader().await, day_before, now).await;
    let counts = report.expect("a report").counts;
    let failed = JOBS / 3 - 1;
    assert_eq!(counts.runs as i64, JOBS + 1);
    assert_eq!(counts.failed as i64, failed);
    assert_eq!(counts.published as i64, JOBS + 1 - failed);
}

async fn an_occurrence_that_is_over_does_not_come_again(home: Home) {
    let mut lab = Lab::new(home, Clock::starting(start()), QuickDevice).await;
    plug(&lab).await;
    let recurring = JobSpec {
        every: Some("0 * * * * UTC".parse().expect("a recurrence")),
        ..spec(1)
    };
    let submit = Request::Submit {
        spec: Box::new(recurring),
        again: false,
        sizes: Vec::new(),
    };
    lab.ask(submit).await;
    lab.sleep_until(start() + SignedDuration::from_mins(75))
        .await;
    assert_eq!(lab.kept().await.jobs[&2].state, JobState::Done);
    lab.restart().await;
    lab.sleep_until(lab.clock.now() + SignedDuration::from_mins(30))
        .await;
    assert_eq!(lab.kept().await.jobs.len(), 2);
    // The next hour's does.
    lab.sleep_until(lab.clock.now() + SignedDuration::from_mins(30))
        .await;
    assert_eq!(lab.kept().await.jobs[&3].occurrence_of, Some(1));
}

async fn runs_that_are_over_tell_when_a_device_will_be_free(home: Home) {
    let mut lab = Lab::new(home, Clock::starting(start()), QuickDevice).await;
    plug(&lab).await;
    let submit = || Request::Submit {
        spec: Box::new(spec(1)),
        again: true,
        sizes: Vec::new(),
    };
    lab.ask(submit()).await;
    sleep(RUN / 2).await;
    assert_eq!(device(&lab).await.free_at, None, "nothing is known yet");
    sleep(RUN).await;
    lab.restart().await;
    plug(&lab).await;
    lab.ask(submit()).await;
    let begun = lab.clock.now();
    sleep(RUN / 2).await;
    let free_at = device(&lab).await.free_at.expect("it was done before");
    let beyond = free_at.duration_since(begun) - SignedDuration::try_from(RUN).expect("a duration");
    assert!(beyond.abs() < SignedDuration::from_secs(1), "{beyond:?}");
}
