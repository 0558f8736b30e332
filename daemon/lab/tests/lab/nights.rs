//! Thirty nights of a lab: twelve devices that overheat, vanish and come back, four hundred jobs with windows, deadlines and
//! priorities, reservations, and the end of summer time.

mod chance;
mod judge;
mod world;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use layerlab_lab::clock::Clock;
use layerlab_lab::dispatcher::Message;
use layerlab_lab::job::JobSpec;
use layerlab_lab::talk::{Answer, Request};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::sleep;

use crate::home::Home;
use crate::played::PlayedLab;
use chance::{device, job, periods};
use judge::PlayedNights;
use world::{Played, World};

const DEVICES: usize = 12;
const JOBS: usize = 400;
const NIGHTS: i64 = 30;
/// Several times as many as there are runs.
const MOST_STAYS: usize = 100_000;
const LONGEST_BLOCK: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn thirty_nights_in_a_file() {
    thirty_nights(Home::in_a_file()).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn thirty_nights_on_a_server() {
    if let Some(home) = Home::on_a_server() {
        thirty_nights(home).await;
    }
}

async fn thirty_nights(home: Home) {
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
    let mut lab = PlayedLab::new(home, clock, Played(Arc::clone(&world))).await;

    let mut reservations = Vec::new();
    for (at, act) in acts(start, &away, &mut random) {
        while clock.now() < at {
            lab.sleep_until(at).await;
        }
        match act {
            Act::Submit(spec) => {
                let (again, sizes) = (true, Vec::new());
                let answer = lab.ask(Request::Submit { spec, again, sizes }).await;
                assert!(matches!(
                    answer,
                    Answer::Submitted { .. } | Answer::Refused { .. }
                ));
            }
            Act::Look => {
                let there = (0..DEVICES).filter(|&number| !world.is_away(number));
                let there = Message::Devices(there.map(device).collect());
                lab.send(there).await;
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
                if lab.ask(request).await == Answer::Done {
                    reservations.push((device, from, until));
                }
            }
            Act::Cancel(job) => drop(lab.ask(Request::Cancel { job }).await),
            Act::PauseAndResume(job) => {
                lab.ask(Request::Pause { job }).await;
                sleep(Duration::from_secs(7200)).await;
                lab.ask(Request::Resume { job }).await;
            }
        }
    }
    // More nights for what came last.
    sleep(Duration::from_secs(10 * 24 * 3600)).await;
    let Answer::Status(status) = lab.ask(Request::Status).await else {
        panic!("no status");
    };
    let explained: BTreeSet<i64> = status.waiting.iter().map(|waiting| waiting.job).collect();
    let busy: BTreeSet<i64> = status
        .devices
        .iter()
        .filter_map(|device| device.run)
        .collect();
    lab.stop().await;

    let kept = lab.kept().await;
    let events = lab.reader().await.events(start, clock.now()).await;
    let events = events.expect("events");
    let stays = world.stays.lock().expect("no panic").clone();
    assert!(stays.len() > 1000, "{} stays", stays.len());

    let played = PlayedNights {
        kept,
        events,
        stays,
        reservations,
        ended: clock.now(),
    };
    played.every_job_ends_or_is_explained(|run| {
        explained.contains(&run.job) || busy.contains(&run.number)
    });
    played.old_journals_are_removed_and_no_others();
    played.no_two_runs_ever_hold_one_device();
    played.windows_and_reservations_are_overrun_by_no_more_than_a_block();
    played.no_run_keeps_one_of_a_higher_priority_waiting();
}

/// What happens from outside.
enum Act {
    Submit(Box<JobSpec>),
    Look,
    Reserve(String, Timestamp),
    Cancel(i64),
    PauseAndResume(i64),
}

/// What happens from outside, in order.
fn acts(
    start: Timestamp,
    away: &[Vec<(Timestamp, Timestamp)>],
    random: &mut ChaCha8Rng,
) -> Vec<(Timestamp, Act)> {
    let mut acts: Vec<(Timestamp, Act)> = vec![(start, Act::Look)];
    for number in 0..JOBS {
        let (at, spec) = job(number, start, random);
        acts.push((at, Act::Submit(Box::new(spec))));
    }
    for periods in away {
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
    acts
}
