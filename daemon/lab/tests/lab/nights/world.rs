//! Devices that overheat, vanish and come back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use layerlab_lab::bench::{Assignment, Bench, Desk, News};
use layerlab_lab::clock::Clock;
use layerlab_lab::gates::Readings;
use layerlab_lab::record::Spent;
use layerlab_lab::state::StayOutcome;
use layerlab_profiles::MilliCelsius;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::sleep;

use super::{LONGEST_BLOCK, MOST_STAYS};
use crate::played::{pass_gates, published};

/// A run had a device from one moment to the other.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    pub(super) device: String,
    pub(super) run: i64,
    pub(super) job: i64,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// What the devices go through.
pub(super) struct World {
    pub(super) clock: Clock,
    /// When each device is away.
    pub(super) away: Vec<Vec<(Timestamp, Timestamp)>>,
    /// When each device is hot.
    pub(super) hot: Vec<Vec<(Timestamp, Timestamp)>>,
    /// Blocks done of each attempt.
    pub(super) done: Mutex<HashMap<(i64, u32, String), u32>>,
    pub(super) stays: Mutex<Vec<Stay>>,
}

#[derive(Clone)]
pub(super) struct Played(pub(super) Arc<World>);

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
    pub(super) fn is_away(&self, device: usize) -> bool {
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
    type Opened = ();

    async fn work(
        &self,
        open_device: &mut Option<()>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> (StayOutcome, Spent) {
        let world = &self.0;
        let device = index(&assignment.device.name);
        open_device.get_or_insert(());
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
    async fn measure(&self, assignment: &Assignment, desk: &Desk, device: usize) -> StayOutcome {
        let world = &self.0;
        let half_an_hour = Duration::from_secs(1800);
        let read = || world.readings(device);
        if let Err(outcome) = pass_gates(assignment, desk, half_an_hour, read).await {
            return outcome;
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
            if assignment.is_asked_to_leave() {
                return StayOutcome::Parked;
            }
            sleep(*block).await;
            // The phone works on while it is unplugged; the lab has patience for ten minutes.
            let mut waited = Duration::ZERO;
            while world.is_away(device) {
                if waited >= Duration::from_secs(600) {
                    return StayOutcome::DeviceFailed {
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
        published(run.number)
    }
}
