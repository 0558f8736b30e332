//! A machine of which it is known what readings do to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use layerlab_profiles::Bytes;
use layerlab_protocol::{Clock, Device as Identity, MeterChoice};

use super::*;
use crate::device::{DeviceIdentity, MeterError, PowerMeter};
use crate::runtime::Inference;

/// What a reading takes.
const READING: u64 = 700;

/// The machine's clock in nanoseconds, and how many inferences ago the last reading was.
#[derive(Default)]
struct Machine {
    now: AtomicU64,
    since: AtomicU64,
}

struct Planted(Arc<Machine>);

impl Device for Planted {
    fn identity(&self) -> DeviceIdentity {
        DeviceIdentity {
            device: Identity {
                name: "planted".to_owned(),
                simulated: true,
                clock: Clock::SimulatedExact,
            },
            system: String::new(),
        }
    }

    fn now(&self) -> Nanos {
        Nanos::from_nanos(self.0.now.load(Ordering::Relaxed))
    }

    fn idle(&mut self, gap: Nanos) {
        self.0.now.fetch_add(gap.as_nanos(), Ordering::Relaxed);
    }

    fn conditions(&mut self) -> Conditions {
        self.0.now.fetch_add(READING, Ordering::Relaxed);
        self.0.since.store(0, Ordering::Relaxed);
        Conditions::default()
    }

    fn power_meter(&mut self, _choice: &MeterChoice) -> Result<Box<dyn PowerMeter>, MeterError> {
        Err(MeterError::NoGauge)
    }
}

impl Session for Planted {
    fn memory(&self) -> Bytes {
        Bytes::from_bytes(0)
    }

    fn load_time(&self) -> Nanos {
        Nanos::ZERO
    }

    /// The machine becomes slower and slower, and the first inference after a reading takes half as long again.
    fn run(&mut self, _: &[Tensor]) -> Result<Inference, RuntimeError> {
        let is_first = self.0.since.fetch_add(1, Ordering::Relaxed) == 0;
        let took = 1_000_000 + self.now().as_nanos() / 100;
        let took = if is_first { took * 3 / 2 } else { took };
        self.0.now.fetch_add(took, Ordering::Relaxed);
        Ok(Inference {
            outputs: Vec::new(),
            duration: Nanos::from_nanos(took),
        })
    }
}

#[test]
fn what_a_reading_takes_is_found_by_the_devices_clock() {
    let mut device = Planted(Arc::default());
    let times = reading_times(&mut device, 9);
    let reading = Nanos::from_nanos(READING);
    assert_eq!(times.read_times, 9);
    assert_eq!((times.median_ns, times.longest_ns), (reading, reading));
}

#[test]
fn a_reading_that_slows_the_next_inference_is_found_out_and_drift_is_not_taken_for_one() {
    let machine = Arc::new(Machine::default());
    let (mut device, mut session) = (Planted(Arc::clone(&machine)), Planted(machine));
    let turns = Turns {
        pairs: 40,
        inferences: 3,
        gap: Nanos::from_micros(10),
    };
    let places = after_readings(&mut device, &mut session, &[], turns).expect("times");
    let numbers: Vec<u32> = places.iter().map(|place| place.place).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let [first, second, third] = &places[..] else {
        panic!("{places:?}");
    };
    let holds = |place: &AfterReading, ratio: f64| {
        let (low, high) = place.ratio_ci95.expect("forty pairs");
        assert!(
            low <= ratio && ratio <= high && high - low < 0.2,
            "{place:?}"
        );
    };
    holds(first, 1.5);
    holds(second, 1.0);
    holds(third, 1.0);
    assert!(first.ratio > 1.4 && second.ratio < 1.1, "{places:?}");
    assert_eq!(first.pairs, 40);
}

#[test]
fn processor_time_is_read_whatever_the_program_is_called() {
    let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 90 0 0 0 3 4 50 600 20 0 1 0 100";
    assert_eq!(of_stat(stat), Some(Nanos::from_nanos(657 * TICK)));
    assert_eq!(of_stat("7 (a) S 1 7"), None);
    let before = processor_time().expect("this process");
    assert!(processor_time().expect("this process") >= before);
}
