//! Thirty nights of a lab, on a paused clock: twelve devices that overheat, vanish and come back, four hundred jobs with
//! windows, deadlines and priorities, reservations, and the end of summer time. The devices are played here, because
//! real ones would take thirty nights; what decides, and the store, are the lab's own.
#![expect(
    clippy::print_stdout,
    reason = "how much was played, for who wants to see it"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use layerlab::lab::bench::{Assignment, Bench, Desk, News, Passed, wait_until_ready};
use layerlab::lab::clock::Clock;
use layerlab::lab::config::Config;
use layerlab::lab::dispatcher::{Dispatcher, Message};
use layerlab::lab::gates::{Patience, Readings, Thresholds};
use layerlab::lab::job::{JobSpec, ModelSpec, Selector};
use layerlab::lab::record::{Device, Event, Kept, RunState, Spent, What};
use layerlab::lab::state::{Outcome, Rules, State};
use layerlab::lab::talk::{Answer, Request};
use layerlab::lab::window::WindowState;
use layerlab::store::{Reader, Store};
use layerlab_profiles::MilliCelsius;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

const DEVICES: usize = 12;
const JOBS: usize = 400;
const NIGHTS: i64 = 30;
/// Several times as many as there are runs.
const MOST_STAYS: usize = 100_000;
const LONGEST_BLOCK: Duration = Duration::from_secs(600);

/// A run had a device from one moment to the other.
#[derive(Clone, Debug)]
struct Stay {
    device: String,
    run: i64,
    job: i64,
    from: Timestamp,
    until: Timestamp,
}

/// What the devices go through.
struct World {
    clock: Clock,
    /// When each device is away.
    away: Vec<Vec<(Timestamp, Timestamp)>>,
    /// When each device is hot.
    hot: Vec<Vec<(Timestamp, Timestamp)>>,
    /// Blocks done of each attempt.
    done: Mutex<HashMap<(i64, u32, String), u32>>,
    stays: Mutex<Vec<Stay>>,
}

#[derive(Clone)]
struct Played(Arc<World>);

fn index(device: &str) -> usize {
    device
        .trim_start_matches("phone")
        .parse()
        .expect("a number")
}

fn within(periods: &[(Timestamp, Timestamp)], now: Timestamp) -> bool {
    periods
        .iter()
        .any(|&(from, until)| from <= now && now < until)
}

impl World {
    fn is_away(&self, device: usize) -> bool {
        within(&self.away[device], self.clock.now())
    }

    async fn readings(&self, device: usize) -> Result<Readings, String> {
        if self.is_away(device) {
            return Err("it is not plugged in".to_owned());
        }
        let millicelsius = match within(&self.hot[device], self.clock.now()) {
            true => 45_000,
            false => 28_000,
        };
        Ok(Readings {
            battery_temperature_millicelsius: Some(MilliCelsius::from_millicelsius(millicelsius)),
            ..Readings::default()
        })
    }

    /// How many blocks a run has, and how long each takes: always the same for the same run.
    fn blocks(run: i64) -> Vec<Duration> {
        let mut random = ChaCha8Rng::seed_from_u64(run as u64);
        let count = random.random_range(4..45);
        (0..count)
            .map(|_| Duration::from_secs(random.random_range(30..LONGEST_BLOCK.as_secs())))
            .collect()
    }
}

impl Bench for Played {
    type Session = ();

    async fn work(
        &self,
        session: &mut Option<()>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (Outcome, Spent) {
        let world = &self.0;
        let device = index(&assignment.device.name);
        session.get_or_insert(());
        let from = world.clock.now();
        let outcome = self.measure(assignment, desk, device).await;
        let until = world.clock.now();
        let mut stays = world.stays.lock().expect("no panic");
        // A lab that has runs come and go in no time would never get to the end of a night.
        assert!(stays.len() < MOST_STAYS, "runs come and go for nothing");
        stays.push(Stay {
            device: assignment.device.name.clone(),
            run: assignment.run.number,
            job: assignment.job.id,
            from,
            until,
        });
        drop(stays);
        let wall_ms = until.duration_since(from).as_millis() as u64;
        let spent = Spent {
            wall_ms,
            ..Spent::default()
        };
        (outcome, spent)
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    async fn close(&self, (): ()) {}
}

impl Played {
    async fn measure(&self, assignment: &Assignment, desk: &Desk, device: usize) -> Outcome {
        let world = &self.0;
        let patience = Patience {
            poll: Duration::from_secs(30),
            deadline: Duration::from_secs(1800),
        };
        let read = || world.readings(device);
        let thresholds = Thresholds::default();
        match wait_until_ready(thresholds, patience, assignment, desk, read)
            .await
            .0
        {
            Passed::Ready => {}
            Passed::Left => return Outcome::Parked,
            Passed::GaveUp(reason) => return Outcome::NotReady { reason },
        }
        let run = &assignment.run;
        let key = (run.number, run.attempt, assignment.device.name.clone());
        let blocks = World::blocks(run.number);
        loop {
            let done = *world
                .done
                .lock()
                .expect("no panic")
                .entry(key.clone())
                .or_default();
            let Some(block) = blocks.get(done as usize) else {
                break;
            };
            let asked = tokio::select! {
                biased;
                () = assignment.asked_to_leave() => true,
                () = std::future::ready(()) => false,
            };
            if asked {
                return Outcome::Parked;
            }
            sleep(*block).await;
            // The phone works on while it is unplugged; the lab has patience for ten minutes.
            let mut waited = Duration::ZERO;
            while world.is_away(device) {
                if waited >= Duration::from_secs(600) {
                    return Outcome::DeviceFailed {
                        reason: "gone for ten minutes".to_owned(),
                    };
                }
                sleep(Duration::from_secs(10)).await;
                waited += Duration::from_secs(10);
            }
            *world
                .done
                .lock()
                .expect("no panic")
                .entry(key.clone())
                .or_default() += 1;
            desk.tell(News::BlockEnded { rejection: None }).await;
        }
        Outcome::Published {
            profile: PathBuf::from(format!("profiles/{}", run.number)),
            findings: Vec::new(),
        }
    }
}

fn device(number: usize) -> Device {
    Device {
        name: format!("phone{number:02}"),
        serial: format!("phone{number:02}"),
        soc: Some(["kirin970", "sm8150", "tensor"][number % 3].to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        android: Some(10 + number as u32 % 5),
        pools: if number < 6 {
            vec!["night".to_owned()]
        } else {
            Vec::new()
        },
        ..Device::default()
    }
}

fn job(number: usize, start: Timestamp, random: &mut ChaCha8Rng) -> (Timestamp, JobSpec) {
    let hours = |hours: i64| SignedDuration::from_hours(hours);
    let at = start + SignedDuration::from_mins(random.random_range(0..NIGHTS * 24 * 60 - 12 * 60));
    let selector = match random.random_range(0..5) {
        0 => Selector {
            serial: Some(device(random.random_range(0..DEVICES)).name),
            ..Selector::default()
        },
        1 => Selector {
            soc: Some("Kirin970".to_owned()),
            ..Selector::default()
        },
        2 => Selector {
            android: Some(">= 12".parse().expect("a requirement")),
            ..Selector::default()
        },
        3 => Selector {
            pool: Some("night".to_owned()),
            each: random.random_bool(0.2),
            ..Selector::default()
        },
        _ => Selector {
            abi: Some("arm64-v8a".to_owned()),
            ..Selector::default()
        },
    };
    let windows = [
        "22:00-07:00 Europe/Berlin",
        "22:00-07:00 Europe/Berlin, weekdays",
        "01:30-03:30 Europe/Berlin",
        "always",
        "20:00-06:00 America/New_York, weekends",
    ];
    let model = |model: usize| ModelSpec {
        name: format!("model{model}"),
        sha256: format!("{number:04}{model}"),
        ..ModelSpec::default()
    };
    let models = random.random_range(1..4);
    let spec = JobSpec {
        name: format!("job{number}"),
        models: (0..models).map(model).collect(),
        devices: vec![selector],
        repeats: random.random_range(1..3),
        priority: *[0, 0, 0, 5, 10]
            .get(random.random_range(0..5))
            .expect("five"),
        not_before: random
            .random_bool(0.2)
            .then(|| at + hours(random.random_range(1..48))),
        deadline: random
            .random_bool(0.2)
            .then(|| at + hours(random.random_range(12..240))),
        window: Some(
            windows[random.random_range(0..windows.len())]
                .parse()
                .expect("a window"),
        ),
        ..JobSpec::default()
    };
    (at, spec)
}

async fn ask(messages: &mpsc::Sender<Message>, request: Request) -> Answer {
    let (to, answer) = oneshot::channel();
    messages
        .send(Message::Ask(request, to))
        .await
        .expect("a dispatcher");
    answer.await.expect("an answer")
}

/// Periods of `length` minutes, one about every `every` hours.
fn periods(
    start: Timestamp,
    every: i64,
    length: std::ops::Range<i64>,
    random: &mut ChaCha8Rng,
) -> Vec<(Timestamp, Timestamp)> {
    let mut all = Vec::new();
    let mut at = start;
    let end = start + SignedDuration::from_hours(24 * NIGHTS);
    loop {
        at += SignedDuration::from_mins(random.random_range(60..every * 120));
        let until = at + SignedDuration::from_mins(random.random_range(length.clone()));
        if until > end {
            return all;
        }
        all.push((at, until));
        at = until;
    }
}

#[tokio::test(start_paused = true)]
async fn thirty_nights() {
    let mut random = ChaCha8Rng::seed_from_u64(30);
    // Berlin's clocks go back on 25 October 2026, New York's on 1 November.
    let start: Timestamp = "2026-10-05T12:00:00Z".parse().expect("an instant");
    let clock = Clock::starting(start);
    let away: Vec<_> = (0..DEVICES)
        .map(|_| periods(start, 40, 1..240, &mut random))
        .collect();
    let hot = (0..DEVICES)
        .map(|_| periods(start, 20, 5..120, &mut random))
        .collect();
    let world = Arc::new(World {
        clock,
        away: away.clone(),
        hot,
        done: Mutex::default(),
        stays: Mutex::default(),
    });
    let folder = match std::path::Path::new("/dev/shm").is_dir() {
        // Thousands of transactions, each on storage before the next: memory is storage enough here.
        true => tempfile::tempdir_in("/dev/shm"),
        false => tempfile::tempdir(),
    }
    .expect("a folder");
    let (store, kept) = Store::open(folder.path()).await.expect("a store");
    let state = State::new(kept, Rules::of(&Config::default()));
    let dispatcher = Dispatcher::new(state, store, Played(Arc::clone(&world)), clock);
    let (messages, inbox) = mpsc::channel(64);
    let lab = tokio::spawn(dispatcher.run(inbox));

    // What happens from outside, in order.
    enum Act {
        Submit(Box<JobSpec>),
        Look,
        Reserve(String, Timestamp),
        Cancel(i64),
        PauseAndResume(i64),
    }
    let mut acts: Vec<(Timestamp, Act)> = vec![(start, Act::Look)];
    for number in 0..JOBS {
        let (at, spec) = job(number, start, &mut random);
        acts.push((at, Act::Submit(Box::new(spec))));
    }
    for periods in &away {
        for &(from, until) in periods {
            acts.push((from, Act::Look));
            acts.push((until, Act::Look));
        }
    }
    for _ in 0..40 {
        let at = start + SignedDuration::from_mins(random.random_range(0..NIGHTS * 24 * 60));
        let until = at + SignedDuration::from_mins(random.random_range(30..24 * 60));
        acts.push((
            at,
            Act::Reserve(device(random.random_range(0..DEVICES)).name, until),
        ));
    }
    for _ in 0..10 {
        let at = start + SignedDuration::from_hours(random.random_range(200..700));
        acts.push((at, Act::Cancel(random.random_range(1..100))));
        acts.push((at, Act::PauseAndResume(random.random_range(100..200))));
    }
    acts.sort_by_key(|(at, _)| *at);
    let mut reservations = Vec::new();
    for (at, act) in acts {
        while clock.now() < at {
            clock.sleep_until(Some(at)).await;
        }
        match act {
            Act::Submit(spec) => {
                let answer = ask(&messages, Request::Submit { spec, again: true }).await;
                assert!(matches!(
                    answer,
                    Answer::Submitted { .. } | Answer::Refused { .. }
                ));
            }
            Act::Look => {
                let there = (0..DEVICES).filter(|&number| !world.is_away(number));
                let there = Message::Devices(there.map(device).collect());
                messages.send(there).await.expect("a dispatcher");
            }
            Act::Reserve(device, until) => {
                let from = clock.now();
                let request = Request::Reserve {
                    device: device.clone(),
                    from,
                    until,
                    note: "an engineer".to_owned(),
                };
                // A device that was never seen cannot be taken.
                if ask(&messages, request).await == Answer::Done {
                    reservations.push((device, from, until));
                }
            }
            Act::Cancel(job) => drop(ask(&messages, Request::Cancel { job }).await),
            Act::PauseAndResume(job) => {
                ask(&messages, Request::Pause { job }).await;
                sleep(Duration::from_secs(7200)).await;
                ask(&messages, Request::Resume { job }).await;
            }
        }
    }
    // More nights for what came last.
    sleep(Duration::from_secs(10 * 24 * 3600)).await;
    let Answer::Status(status) = ask(&messages, Request::Status).await else {
        panic!("no status");
    };
    let explained: BTreeMap<i64, String> = status.waiting.into_iter().collect();
    let busy: BTreeSet<i64> = status
        .devices
        .iter()
        .filter_map(|device| device.run)
        .collect();
    messages.send(Message::Stop).await.expect("a dispatcher");
    lab.await.expect("no panic").expect("a store");

    let reader = Reader::open(folder.path()).await.expect("a store");
    let kept = reader.all().await.expect("all");
    let events = reader.events(start, clock.now()).await.expect("events");
    let stays = world.stays.lock().expect("no panic").clone();
    assert!(stays.len() > 1000, "{} stays", stays.len());

    // Every job ends, and what did not give a profile is explained.
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for job in kept.jobs.values() {
        *ends.entry(job.state.to_string()).or_default() += 1;
    }
    for run in kept.runs.values() {
        let is_explained = match run.state {
            RunState::Done => run.profile.is_some(),
            RunState::Queued | RunState::Parked | RunState::Running => {
                explained.contains_key(&run.number) || busy.contains(&run.number)
            }
            _ => run.reason.is_some(),
        };
        assert!(
            is_explained,
            "run {} is {} for no reason",
            run.number, run.state
        );
    }
    println!(
        "{} stays, {} events, jobs: {ends:?}",
        stays.len(),
        events.len()
    );
    assert!(ends["done"] > JOBS * 3 / 4, "{ends:?}");

    // Journals are kept for thirty days, of which those of the first nights are over.
    let old = clock.now() - SignedDuration::from_hours(24 * 30);
    let mut removed = 0;
    for run in kept.runs.values().filter(|run| run.attempt > 0) {
        let is_old =
            |margin: SignedDuration| (run.ended).is_some_and(|ended| ended + margin <= old);
        let (least, most) = (
            is_old(SignedDuration::from_hours(25)),
            is_old(SignedDuration::ZERO),
        );
        let is_removed = run.journals_removed.is_some();
        assert!(
            least <= is_removed && is_removed <= most,
            "{run:?} at {old}"
        );
        removed += usize::from(is_removed);
    }
    assert!(removed > 100, "{removed} runs have no journals any more");

    // No two runs ever hold one device.
    let mut by_device: BTreeMap<&str, Vec<&Stay>> = BTreeMap::new();
    for stay in &stays {
        by_device.entry(&stay.device).or_default().push(stay);
    }
    for stays in by_device.values_mut() {
        stays.sort_by_key(|stay| stay.from);
        for pair in stays.windows(2) {
            assert!(pair[0].until <= pair[1].from, "{pair:?}");
        }
    }

    // Windows and reservations are overrun by no more than a block, and the wait for a phone that vanished in it.
    let block =
        SignedDuration::try_from(LONGEST_BLOCK).expect("short") + SignedDuration::from_mins(11);
    for stay in &stays {
        let window = kept.jobs[&stay.job]
            .spec
            .window
            .as_ref()
            .expect("every job has one");
        match window.state(stay.from) {
            WindowState::Open { until: Some(until) } => {
                assert!(stay.until <= until + block, "{stay:?} ends after {until}");
            }
            WindowState::Open { until: None } => {}
            WindowState::Closed { opens } => panic!("{stay:?} begins before {opens}"),
        }
        for (device, from, until) in reservations.iter().filter(|one| one.0 == stay.device) {
            let begins_in_it = *from < stay.from && stay.from < *until;
            assert!(
                !begins_in_it,
                "{stay:?} begins on {device}, reserved from {from} to {until}"
            );
            if stay.from <= *from {
                assert!(
                    stay.until <= *from + block,
                    "{stay:?} stays on {device}, reserved from {from}"
                );
            }
        }
    }

    check_priorities(&kept, &events, &stays, block);
}

/// No run begins on a device that a waiting run of a higher priority could have, and none stays on one for long.
fn check_priorities(kept: &Kept, events: &[Event], stays: &[Stay], block: SignedDuration) {
    // A run that was asked to leave ends its block; meanwhile another may come that is of a higher priority still.
    let patience = block * 3;
    // Those that wait for their first device, and since when. Others wait for the device that has their journal.
    let mut waiting: BTreeMap<i64, Timestamp> = BTreeMap::new();
    let mut begun: BTreeSet<i64> = BTreeSet::new();
    let runs_of = |job: i64| kept.runs.values().filter(move |run| run.job == job);
    let job_of = |run: i64| &kept.jobs[&kept.runs[&run].job];
    let suits = |run: i64, device: &str| match &kept.runs[&run].only {
        Some(only) => only == device,
        None => job_of(run).spec.devices[kept.runs[&run].selector].matches(&kept.devices[device]),
    };
    let may_run = |run: i64, at: Timestamp| {
        let spec = &job_of(run).spec;
        let window = spec.window.as_ref().map(|window| window.state(at));
        spec.not_before.is_none_or(|from| from <= at)
            && matches!(window, Some(WindowState::Open { .. }))
    };
    let wants = |run: i64, of_lower: i64, device: &str, at: Timestamp| {
        job_of(run).spec.priority > job_of(of_lower).spec.priority
            && suits(run, device)
            && may_run(run, at)
    };
    let (mut beginnings, mut waits) = (0, 0);
    // What is decided at one moment is judged as a whole.
    for now in events.chunk_by(|one, other| one.at == other.at) {
        let at = now[0].at;
        let mut began = Vec::new();
        for event in now {
            match (&event.what, event.run, event.job) {
                (What::Submitted | What::Resumed, _, Some(job)) => {
                    let fresh = runs_of(job).filter(|run| !begun.contains(&run.number));
                    waiting.extend(fresh.map(|run| (run.number, at)));
                }
                (What::Started { .. } | What::Continued, Some(run), _) => {
                    waiting.remove(&run);
                    begun.insert(run);
                    began.push((run, event.device.as_deref().expect("a device")));
                }
                (What::JobEnded { .. } | What::Paused, _, Some(job)) => {
                    waiting.retain(|&run, _| kept.runs[&run].job != job);
                }
                _ => {}
            }
        }
        let long_ago = at - patience;
        let stayed: Vec<&Stay> = stays
            .iter()
            .filter(|stay| stay.from <= long_ago && at < stay.until)
            .collect();
        for (&run, &since) in &waiting {
            for &(other, device) in &began {
                beginnings += 1;
                assert!(
                    !wants(run, other, device, at),
                    "at {at} run {other} began on {device}, for which run {run} of a higher priority waited"
                );
            }
            for stay in stayed.iter().filter(|_| since <= long_ago) {
                waits += 1;
                assert!(
                    !(wants(run, stay.run, &stay.device, at) && may_run(run, long_ago)),
                    "at {at} {stay:?} is still not over, and run {run} of a higher priority has waited since {since}"
                );
            }
        }
    }
    println!("{beginnings} beginnings and {waits} waits were compared");
    assert!(beginnings > 1000 && waits > 1000);
}
