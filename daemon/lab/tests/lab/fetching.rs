//! Runs whose files must be fetched first hold no device meanwhile, and begin once they are there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use layerlab_lab::bench::{Assignment, Bench, Desk};
use layerlab_lab::clock::Clock;
use layerlab_lab::dispatcher::Message;
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::{Device, Job, JobId, JobState, Spent, What};
use layerlab_lab::state::StayOutcome;
use layerlab_lab::talk::{Answer, Request};
use tokio::time::{Instant, sleep};

use crate::home::{Home, on_both};
use crate::played::{PlayedLab, published};

on_both! {
    runs_begin_once_their_files_are_there_and_others_go_first_meanwhile,
}

/// How long fetching takes, if it succeeds or not.
const FETCHING: Duration = Duration::from_secs(10);

/// The job whose files are not at hand.
const AFAR: JobId = 1;

/// A host that must fetch the files of a job.
#[derive(Clone, Default)]
struct FetchingHost {
    /// What will come of fetching them, in order.
    outcomes: Arc<Mutex<VecDeque<Result<(), String>>>>,
    /// When that was begun.
    asked: Arc<Mutex<Vec<Instant>>>,
    /// Which job was worked on, and when.
    worked: Arc<Mutex<Vec<(JobId, Instant)>>>,
}

impl Bench for FetchingHost {
    type Opened = ();

    async fn work(
        &self,
        _: &mut Option<()>,
        assignment: &Assignment,
        _: &Desk,
    ) -> (StayOutcome, Spent) {
        let job = assignment.run.job;
        let mut worked = self.worked.lock().expect("no panic");
        worked.push((job, Instant::now()));
        (published(assignment.run.number), Spent::default())
    }

    fn must_fetch(&self, job: &Job) -> bool {
        job.id == AFAR && !self.outcomes.lock().expect("no panic").is_empty()
    }

    async fn fetch(&self, job: &Job) -> Result<(), String> {
        assert_eq!(job.id, AFAR);
        self.asked.lock().expect("no panic").push(Instant::now());
        sleep(FETCHING).await;
        let next = self.outcomes.lock().expect("no panic").pop_front();
        next.expect("one for each time")
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    async fn close(&self, (): ()) {}
}

async fn runs_begin_once_their_files_are_there_and_others_go_first_meanwhile(home: Home) {
    let away = || Err("nobody answers".to_owned());
    let host = FetchingHost {
        outcomes: Arc::new(Mutex::new([away(), away(), Ok(())].into())),
        ..FetchingHost::default()
    };
    let start = "2026-11-20T20:00:00Z".parse().expect("an instant");
    let lab = PlayedLab::new(home, Clock::starting(start), host.clone()).await;
    let device = Device {
        name: "phone".to_owned(),
        serial: "phone".to_owned(),
        ..Device::default()
    };
    lab.send(Message::Devices(vec![device])).await;
    let began = Instant::now();
    for repeats in [2, 1] {
        let spec = Box::new(JobSpec {
            models: vec![ModelSpec::default()],
            devices: vec![Selector::default()],
            repeats,
            ..JobSpec::default()
        });
        let (again, sizes) = (true, Vec::new());
        let answer = lab.ask(Request::Submit { spec, again, sizes }).await;
        assert!(matches!(answer, Answer::Submitted { .. }), "{answer:?}");
    }
    let reader = lab.reader().await;
    let ended = async {
        while (reader.all().await.expect("all").jobs.values()).any(|job| !job.state.is_over()) {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(600), ended).await;
    ended.expect("both jobs are over");
    let kept = reader.all().await.expect("all");
    assert!(kept.jobs.values().all(|job| job.state == JobState::Done));
    // Every ten seconds and a minute; not for each run.
    let seconds = |instant: &Instant| instant.duration_since(began).as_secs() / 10;
    let asked: Vec<u64> = (host.asked.lock().expect("no panic").iter())
        .map(seconds)
        .collect();
    assert_eq!(asked, [0, 7, 14]);
    let worked: Vec<(JobId, u64)> = (host.worked.lock().expect("no panic").iter())
        .map(|(job, at)| (*job, seconds(at)))
        .collect();
    assert_eq!(worked, [(2, 0), (AFAR, 15), (AFAR, 15)]);
    let events = reader.events_after(0, u32::MAX).await.expect("events");
    let told = events.iter().filter(
        |event| matches!(&event.what, What::Trouble { reason } if reason == "nobody answers"),
    );
    assert_eq!(told.count(), 1);
}
