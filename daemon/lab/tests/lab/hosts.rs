//! Several hosts with devices of their own work on the runs of one lab.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use layerlab_lab::bench::{Assignment, Bench, Desk};
use layerlab_lab::clock::Clock;
use layerlab_lab::dispatcher::Message;
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::{Device, Event, Job, JobState, Kept, Run, RunState, Spent, What};
use layerlab_lab::state::StayOutcome;
use layerlab_lab::store::Reader;
use layerlab_lab::talk::{Answer, Request};
use tokio::sync::Semaphore;

use crate::home::Home;
use crate::played::{PlayedLab, published};
use crate::postgres::postgres;

const LONG: Duration = Duration::from_secs(3600);

/// Devices that work on a run until they may end one.
#[derive(Clone)]
struct PacedDevices {
    /// One for each run that may end.
    may_end: Arc<Semaphore>,
    /// Run, attempt and device of each stay.
    stays: Arc<Mutex<Vec<(i64, u32, String)>>>,
    /// What their host does not have for any job.
    lacks: Option<&'static str>,
}

impl PacedDevices {
    fn new(may_end: usize) -> PacedDevices {
        PacedDevices {
            may_end: Arc::new(Semaphore::new(may_end)),
            stays: Arc::default(),
            lacks: None,
        }
    }

    fn stays(&self) -> Vec<(i64, u32, String)> {
        self.stays.lock().expect("no panic").clone()
    }
}

impl Bench for PacedDevices {
    type Opened = ();

    async fn work(
        &self,
        _: &mut Option<()>,
        assignment: &Assignment,
        _: &Desk,
    ) -> (StayOutcome, Spent) {
        let run = &assignment.run;
        let stay = (run.number, run.attempt, assignment.device.name.clone());
        self.stays.lock().expect("no panic").push(stay);
        let outcome = tokio::select! {
            may_end = self.may_end.acquire() => {
                may_end.expect("it stays open").forget();
                published(run.number)
            }
            () = assignment.asked_to_leave() => StayOutcome::Parked,
        };
        (outcome, Spent::default())
    }

    fn lacks(&self, _: &Job) -> Option<String> {
        self.lacks.map(str::to_owned)
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    async fn close(&self, (): ()) {}
}

type Lab = PlayedLab<PacedDevices>;

async fn host(name: &str, url: &str, patience: Duration, devices: &PacedDevices) -> Lab {
    let home = Home::of(name, url, patience);
    PlayedLab::new(home, Clock::Host, devices.clone()).await
}

async fn plug(lab: &Lab, names: &[&str]) {
    let devices = names.iter().map(|name| Device {
        name: (*name).to_owned(),
        serial: (*name).to_owned(),
        soc: Some("SM8550".to_owned()),
        ..Device::default()
    });
    lab.send(Message::Devices(devices.collect())).await;
}

/// Any one device with the SoC will do for each of its runs.
async fn submit(lab: &Lab, name: &str, repeats: u32) {
    let spec = JobSpec {
        name: name.to_owned(),
        models: vec![ModelSpec {
            name: name.to_owned(),
            ..ModelSpec::default()
        }],
        devices: vec![Selector {
            soc: Some("SM8550".to_owned()),
            ..Selector::default()
        }],
        repeats,
        ..JobSpec::default()
    };
    let request = Request::Submit {
        spec: Box::new(spec),
        again: false,
        sizes: Vec::new(),
    };
    let answer = lab.ask(request).await;
    assert!(matches!(answer, Answer::Submitted { .. }), "{answer:?}");
}

/// Waits until the store is as `awaited` wants it.
async fn wait_for(reader: &Reader, awaited: impl Fn(&Kept) -> bool) -> Kept {
    let looking = async {
        loop {
            let kept = reader.all().await.expect("all");
            if awaited(&kept) {
                return kept;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), looking).await;
    match found {
        Ok(kept) => kept,
        Err(_) => panic!("{:#?}", reader.all().await.expect("all").runs),
    }
}

fn on_devices(kept: &Kept) -> Vec<&Run> {
    let runs = kept.runs.values();
    runs.filter(|run| run.state == RunState::Running).collect()
}

async fn events(reader: &Reader) -> Vec<Event> {
    reader.events_after(0, u32::MAX).await.expect("events")
}

#[tokio::test]
async fn hosts_share_the_runs_of_a_job_and_each_is_run_once() {
    const RUNS: u32 = 40;
    let Some(server) = postgres() else { return };
    let url = server.database();
    // Nothing ends before all devices of both hosts have a run.
    let devices = PacedDevices::new(0);
    let one = host("one", &url, LONG, &devices).await;
    let two = host("two", &url, LONG, &devices).await;
    plug(&one, &["a", "b", "c"]).await;
    plug(&two, &["d", "e"]).await;
    submit(&one, "shared", RUNS).await;
    let reader = one.reader().await;
    let kept = wait_for(&reader, |kept| on_devices(kept).len() == 5).await;
    for run in on_devices(&kept) {
        let device = run.phone.as_deref().expect("a device");
        let host = if device < "d" { "one" } else { "two" };
        assert_eq!(run.host.as_deref(), Some(host), "on {device}");
    }
    devices.may_end.add_permits(RUNS as usize);
    let kept = wait_for(&reader, |kept| kept.jobs[&1].state.is_over()).await;
    assert_eq!(kept.jobs[&1].state, JobState::Done);
    let mut runs: Vec<i64> = devices.stays().iter().map(|(run, ..)| *run).collect();
    runs.sort_unstable();
    assert_eq!(runs, (1..=i64::from(RUNS)).collect::<Vec<_>>());
    let by_two = devices
        .stays()
        .into_iter()
        .filter(|stay| stay.2.as_str() >= "d");
    assert!(by_two.count() >= 2);
    let events = events(&reader).await;
    let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=kept.last_event).collect::<Vec<_>>());
    let ended = |event: &&Event| matches!(event.what, What::JobEnded { .. });
    assert_eq!(events.iter().filter(ended).count(), 1);
}

#[tokio::test]
async fn what_is_asked_of_one_host_is_done_by_all() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let devices = PacedDevices::new(0);
    let one = host("one", &url, LONG, &devices).await;
    let two = host("two", &url, LONG, &devices).await;
    plug(&one, &["a"]).await;
    plug(&two, &["b"]).await;
    submit(&one, "long", 2).await;
    let reader = one.reader().await;
    wait_for(&reader, |kept| on_devices(kept).len() == 2).await;
    // The job and one of its runs are the other host's.
    assert_eq!(two.ask(Request::Cancel { job: 1 }).await, Answer::Done);
    submit(&two, "next", 4).await;
    let kept = wait_for(&reader, |kept| {
        let next = on_devices(kept).into_iter().filter(|run| run.job == 2);
        next.count() == 2
    })
    .await;
    assert_eq!(kept.jobs[&1].state, JobState::Cancelled);
    let numbers: Vec<i64> = kept.runs.keys().copied().collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let reserve = Request::Reserve {
        device: "a".to_owned(),
        from: jiff::Timestamp::now(),
        until: jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1),
        note: String::new(),
    };
    // A run leaves once a block of it has ended, which these never do: it is begun no more on that device.
    assert_eq!(two.ask(reserve).await, Answer::Done);
    devices.may_end.add_permits(4);
    let kept = wait_for(&reader, |kept| kept.jobs[&2].state.is_over()).await;
    let on: BTreeMap<&str, usize> =
        (kept.runs.values())
            .filter(|run| run.job == 2)
            .fold(BTreeMap::new(), |mut on, run| {
                *on.entry(run.phone.as_deref().expect("a device"))
                    .or_default() += 1;
                on
            });
    assert_eq!(on, [("a", 1), ("b", 3)].into());
}

/// A lab with two hosts, the first of which was killed while it had the only run. Its home.
async fn killed(url: &str, devices: &PacedDevices, patience: Duration) -> (Home, Lab) {
    let one = host("one", url, patience, devices).await;
    let two = host("two", url, patience, devices).await;
    plug(&one, &["a"]).await;
    submit(&one, "left", 1).await;
    let reader = two.reader().await;
    wait_for(&reader, |kept| on_devices(kept).len() == 1).await;
    let home = one.kill().await;
    // Its store is closed, a moment later, and then its folder is free.
    wait_for_end(&reader).await;
    home.wait_until_free().await;
    (home, two)
}

async fn wait_for_end(reader: &Reader) {
    let ends = async {
        while reader.hosts().await.expect("hosts")[0].process.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ends = tokio::time::timeout(Duration::from_secs(60), ends).await;
    ends.expect("it ends");
}

#[tokio::test]
async fn a_host_that_comes_back_in_time_goes_on_with_its_runs() {
    let Some(server) = postgres() else { return };
    let devices = PacedDevices::new(0);
    let (home, two) = killed(&server.database(), &devices, LONG).await;
    // It would suit, and is free.
    plug(&two, &["b"]).await;
    let one = PlayedLab::new(home, Clock::Host, devices.clone()).await;
    plug(&one, &["a"]).await;
    devices.may_end.add_permits(1);
    let reader = two.reader().await;
    wait_for(&reader, |kept| kept.jobs[&1].state.is_over()).await;
    let stay = |attempt| (1, attempt, "a".to_owned());
    assert_eq!(devices.stays(), [stay(1), stay(1)]);
}

#[tokio::test]
async fn the_runs_of_a_host_that_does_not_come_back_begin_anew_elsewhere() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let devices = PacedDevices::new(0);
    let (home, two) = killed(&url, &devices, Duration::from_secs(60)).await;
    let reader = two.reader().await;
    let kept = reader.all().await.expect("all");
    assert_eq!(kept.runs[&1].host.as_deref(), Some("one"));
    let minutes_ago =
        "UPDATE layerlab.hosts SET lease_until = layerlab.lab_time() - 61 WHERE name = 'one'";
    server.sql(&home.url, minutes_ago);
    plug(&two, &["b"]).await;
    devices.may_end.add_permits(1);
    let kept = wait_for(&reader, |kept| kept.jobs[&1].state.is_over()).await;
    let stays = [(1, 1, "a".to_owned()), (1, 2, "b".to_owned())];
    assert_eq!(devices.stays(), stays);
    let run = &kept.runs[&1];
    assert_eq!(
        (run.state, run.host.as_deref()),
        (RunState::Done, Some("two"))
    );
    let events = events(&reader).await;
    let told = events.iter().any(|event| {
        matches!(&event.what, What::AttemptFailed { reason } if reason == "host `one` is gone")
    });
    assert!(told, "{events:#?}");
}

#[tokio::test]
async fn a_device_of_a_name_that_another_host_has_is_not_used_and_that_is_said() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let devices = PacedDevices::new(0);
    let one = host("one", &url, LONG, &devices).await;
    let two = host("two", &url, LONG, &devices).await;
    plug(&one, &["same"]).await;
    let reader = one.reader().await;
    wait_for(&reader, |kept| kept.devices.contains_key("same")).await;
    plug(&two, &["same", "other"]).await;
    submit(&two, "job", 2).await;
    let kept = wait_for(&reader, |kept| on_devices(kept).len() == 2).await;
    let on: BTreeMap<_, _> = (on_devices(&kept).into_iter())
        .map(|run| (run.phone.as_deref(), run.host.as_deref()))
        .collect();
    let expected = [(Some("other"), Some("two")), (Some("same"), Some("one"))];
    assert_eq!(on, expected.into());
    let events = events(&reader).await;
    let told = events.iter().any(|event| {
        matches!(&event.what, What::Trouble { reason } if reason.starts_with("host `one` has a device `same`, too"))
    });
    assert!(told, "{events:#?}");
}

#[tokio::test]
async fn a_host_without_what_a_job_needs_leaves_its_runs_to_others() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let devices = PacedDevices::new(4);
    let without = PacedDevices {
        lacks: Some("the model is not there"),
        ..devices.clone()
    };
    let one = host("one", &url, LONG, &without).await;
    plug(&one, &["a"]).await;
    submit(&one, "job", 4).await;
    let two = host("two", &url, LONG, &devices).await;
    plug(&two, &["b"]).await;
    let reader = one.reader().await;
    let kept = wait_for(&reader, |kept| kept.jobs[&1].state.is_over()).await;
    assert!(
        kept.runs
            .values()
            .all(|run| run.phone.as_deref() == Some("b"))
    );
    let told = |event: &&Event| matches!(&event.what, What::Trouble { reason } if reason == "the model is not there");
    assert_eq!(events(&reader).await.iter().filter(told).count(), 1);
}
