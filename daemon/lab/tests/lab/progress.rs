//! A run that begins gets on: whatever makes it leave its device again and again, each stay adds at least one block. The
//! device leaves whenever it is told to, also before its first block: the guarantee is the dispatcher's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use layerlab_lab::bench::{Assignment, Bench, Desk, News};
use layerlab_lab::clock::Clock;
use layerlab_lab::dispatcher::Message;
use layerlab_lab::gates::Readings;
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::{Device, Run, RunState, Spent};
use layerlab_lab::state::StayOutcome;
use layerlab_lab::talk::{Answer, DeviceState, DeviceStatus, Request};
use tokio::time::sleep;

use crate::home::{Home, on_both};
use crate::played::{PlayedLab, pass_gates, published};

on_both! {
    jobs_of_a_higher_priority_that_keep_coming_do_not_starve_a_run,
    windows_that_are_open_for_a_second_do_not_starve_a_run,
    reservations_of_the_next_moment_do_not_starve_a_run,
    a_daemon_that_is_stopped_at_any_moment_does_not_starve_a_run,
    a_run_that_nobody_wants_any_more_leaves_at_once,
    a_run_that_never_gets_to_a_block_is_said_to_be_starved,
}

const OPENING: Duration = Duration::from_secs(5);
const BLOCK: Duration = Duration::from_secs(60);
/// The run that is made to leave has so many blocks; all others have one.
const BLOCKS: u32 = 12;
const LONG_RUN: i64 = 1;
/// Several times as many as are needed.
const MOST_STAYS: usize = 60;

/// One stay of a run on the device.
#[derive(Clone, Copy, Debug)]
struct Stay {
    run: i64,
    blocks: u32,
    was_parked: bool,
}

#[derive(Clone, Default)]
struct PlayedDevice {
    stays: Arc<Mutex<Vec<Stay>>>,
    blocks: Arc<Mutex<BTreeMap<i64, u32>>>,
    is_hot: Arc<Mutex<bool>>,
}

impl PlayedDevice {
    /// Works on a run; counts the blocks of this stay.
    async fn measure(&self, assignment: &Assignment, desk: &Desk, blocks: &mut u32) -> StayOutcome {
        let run = assignment.run.number;
        tokio::select! {
            () = sleep(OPENING) => {}
            () = assignment.asked_to_leave() => return StayOutcome::Parked,
        }
        let an_hour = Duration::from_secs(3600);
        let read = || async { Ok(self.readings()) };
        if let Err(outcome) = pass_gates(assignment, desk, an_hour, read).await {
            return outcome;
        }
        let all = if run == LONG_RUN { BLOCKS } else { 1 };
        while self.blocks_of(run) < all {
            if assignment.is_asked_to_leave() {
                return StayOutcome::Parked;
            }
            sleep(BLOCK).await;
            *blocks += 1;
            *(self.blocks.lock().expect("no panic").entry(run)).or_default() += 1;
            desk.tell(News::BlockEnded { rejection: None }).await;
        }
        published(run)
    }

    fn readings(&self) -> Readings {
        let is_hot = *self.is_hot.lock().expect("no panic");
        Readings {
            thermal_status: Some(if is_hot { 3 } else { 0 }),
            ..Readings::default()
        }
    }

    fn blocks_of(&self, run: i64) -> u32 {
        let blocks = self.blocks.lock().expect("no panic");
        blocks.get(&run).copied().unwrap_or_default()
    }

    /// The long run was cut short as often as could be, and every such stay added a block: at least one, and one more if
    /// that was in progress when it was told to leave.
    fn check(&self) {
        let stays = self.stays.lock().expect("no panic").clone();
        let cut_short = |stay: &&Stay| stay.run == LONG_RUN && stay.was_parked;
        let cut_short: Vec<&Stay> = stays.iter().filter(cut_short).collect();
        assert!(cut_short.len() >= BLOCKS as usize / 2 - 1, "{stays:?}");
        for stay in cut_short {
            assert!((1..=2).contains(&stay.blocks), "{stays:?}");
        }
    }
}

impl Bench for PlayedDevice {
    type Opened = ();

    async fn work(
        &self,
        _: &mut Option<()>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (StayOutcome, Spent) {
        let mut blocks = 0;
        let outcome = self.measure(assignment, desk, &mut blocks).await;
        self.stays.lock().expect("no panic").push(Stay {
            run: assignment.run.number,
            blocks,
            was_parked: outcome == StayOutcome::Parked,
        });
        (outcome, Spent::default())
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    async fn close(&self, (): ()) {}
}

/// A lab with one device.
type Lab = PlayedLab<PlayedDevice>;

async fn lab(home: Home, start: &str) -> Lab {
    let clock = Clock::starting(start.parse().expect("an instant"));
    PlayedLab::new(home, clock, PlayedDevice::default()).await
}

impl Lab {
    async fn plug(&self, is_there: bool) {
        let device = Device {
            name: "phone".to_owned(),
            serial: "phone".to_owned(),
            ..Device::default()
        };
        let devices = if is_there { vec![device] } else { Vec::new() };
        self.send(Message::Devices(devices)).await;
    }

    async fn submit(&self, spec: JobSpec) {
        let spec = Box::new(spec);
        let (again, sizes) = (true, Vec::new());
        let answer = self.ask(Request::Submit { spec, again, sizes }).await;
        assert!(matches!(answer, Answer::Submitted { .. }), "{answer:?}");
    }

    async fn status(&self) -> Option<DeviceStatus> {
        let Answer::Status(status) = self.ask(Request::Status).await else {
            panic!("no status");
        };
        status.devices.into_iter().next()
    }

    /// Waits until the run is on the device. Whether it ever is: it may be over.
    async fn wait_for(&self, run: i64) -> bool {
        while self.status().await.is_none_or(|it| it.run != Some(run)) {
            if self.state_of(run).await.is_over() {
                return false;
            }
            sleep(Duration::from_millis(100)).await;
        }
        true
    }

    async fn state_of(&self, run: i64) -> RunState {
        let stays = self.devices.stays.lock().expect("no panic").clone();
        assert!(stays.len() < MOST_STAYS, "it does not get on: {stays:?}");
        self.run(run).await.state
    }

    async fn run(&self, run: i64) -> Run {
        self.kept().await.runs[&run].clone()
    }
}

fn job(priority: i32) -> JobSpec {
    JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        priority,
        window: Some("always".parse().expect("a window")),
        ..JobSpec::default()
    }
}

async fn jobs_of_a_higher_priority_that_keep_coming_do_not_starve_a_run(home: Home) {
    let lab = lab(home, "2026-11-20T20:00:00Z").await;
    lab.plug(true).await;
    lab.submit(job(0)).await;
    let mut urgent = LONG_RUN;
    while lab.wait_for(LONG_RUN).await {
        lab.submit(job(5)).await;
        urgent += 1;
        lab.wait_for(urgent).await;
    }
    assert_eq!(lab.state_of(LONG_RUN).await, RunState::Done);
    lab.devices.check();
}

async fn windows_that_are_open_for_a_second_do_not_starve_a_run(home: Home) {
    let start: Timestamp = "2026-11-20T12:00:59Z".parse().expect("an instant");
    let lab = lab(home, &start.to_string()).await;
    let window = Some("12:00-12:01 UTC".parse().expect("a window"));
    lab.submit(JobSpec { window, ..job(0) }).await;
    let mut day = 0;
    while lab.state_of(LONG_RUN).await != RunState::Done {
        lab.plug(true).await;
        lab.sleep_until(start + SignedDuration::from_hours(24 * day + 1))
            .await;
        // Otherwise the run would go on when the window opens.
        lab.plug(false).await;
        day += 1;
        lab.sleep_until(start + SignedDuration::from_hours(24 * day))
            .await;
    }
    lab.devices.check();
}

async fn reservations_of_the_next_moment_do_not_starve_a_run(home: Home) {
    let lab = lab(home, "2026-11-20T20:00:00Z").await;
    lab.plug(true).await;
    lab.submit(job(0)).await;
    while lab.wait_for(LONG_RUN).await {
        let from = lab.clock.now();
        let reserve = Request::Reserve {
            device: "phone".to_owned(),
            from,
            until: from + SignedDuration::from_mins(30),
            note: String::new(),
        };
        assert_eq!(lab.ask(reserve).await, Answer::Done);
        sleep(Duration::from_secs(1800)).await;
    }
    lab.devices.check();
}

async fn a_daemon_that_is_stopped_at_any_moment_does_not_starve_a_run(home: Home) {
    let mut lab = lab(home, "2026-11-20T20:00:00Z").await;
    lab.submit(job(0)).await;
    // Before it is begun, while it is opened, while its first block is measured and just when that ends.
    let moments = [0, 1, 4, 5, 6, 30, 64, 65];
    for after in moments.into_iter().cycle().map(Duration::from_secs) {
        lab.plug(true).await;
        if !lab.wait_for(LONG_RUN).await {
            break;
        }
        sleep(after).await;
        lab.restart().await;
    }
    lab.devices.check();
}

async fn a_run_that_nobody_wants_any_more_leaves_at_once(home: Home) {
    let lab = lab(home, "2026-11-20T20:00:00Z").await;
    lab.plug(true).await;
    lab.submit(job(0)).await;
    assert!(lab.wait_for(LONG_RUN).await);
    let cancel = Request::Cancel { job: 1 };
    assert_eq!(lab.ask(cancel).await, Answer::Done);
    while lab.status().await.is_some_and(|it| it.run.is_some()) {
        sleep(Duration::from_millis(100)).await;
    }
    let stays = lab.devices.stays.lock().expect("no panic").clone();
    assert_eq!(stays.len(), 1);
    assert_eq!(stays[0].blocks, 0, "{stays:?}");
}

async fn a_run_that_never_gets_to_a_block_is_said_to_be_starved(home: Home) {
    let mut lab = lab(home, "2026-11-20T20:00:00Z").await;
    *lab.devices.is_hot.lock().expect("no panic") = true;
    lab.submit(job(0)).await;
    for stay in 1..=3 {
        assert_eq!(lab.run(LONG_RUN).await.starved(), None, "stay {stay}");
        lab.plug(true).await;
        assert!(lab.wait_for(LONG_RUN).await);
        while lab
            .status()
            .await
            .is_none_or(|it| it.state != DeviceState::Waiting)
        {
            sleep(Duration::from_millis(100)).await;
        }
        // A device that is not ready anyway is left at once.
        lab.restart().await;
    }
    let starved = lab.run(LONG_RUN).await.starved().expect("three stays");
    assert_eq!(
        starved,
        "starved: left its device 3 times before a block had ended, the last time because the daemon was told to stop"
    );
    *lab.devices.is_hot.lock().expect("no panic") = false;
    lab.plug(true).await;
    assert!(lab.wait_for(LONG_RUN).await);
    while lab.devices.blocks_of(LONG_RUN) < 2 {
        sleep(BLOCK).await;
    }
    assert_eq!(lab.run(LONG_RUN).await.starved(), None);
}
