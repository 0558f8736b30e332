//! The clock of a simulated device: one of its own that only modelled time moves, or the machine's.

use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_protocol::Clock;

use super::file::ClockKind;

/// The end of a wait is spun instead of slept: schedulers wake a sleeper up to this much too late.
const SPIN: Duration = Duration::from_micros(200);

/// A clock that modelled time passes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimulatedClock {
    Exact { now: Nanos },
    Real { start: Instant },
}

impl SimulatedClock {
    /// A clock that reads zero.
    pub(super) fn new(kind: ClockKind) -> Self {
        match kind {
            ClockKind::Exact => SimulatedClock::Exact { now: Nanos::ZERO },
            ClockKind::Real => SimulatedClock::Real {
                start: Instant::now(),
            },
        }
    }

    /// The clock as profiles name it.
    pub(super) fn kind(&self) -> Clock {
        match self {
            SimulatedClock::Exact { .. } => Clock::SimulatedExact,
            SimulatedClock::Real { .. } => Clock::SimulatedReal,
        }
    }

    /// The time since the clock was made.
    pub(super) fn now(&self) -> Nanos {
        match self {
            SimulatedClock::Exact { now } => *now,
            SimulatedClock::Real { start } => start.elapsed().into(),
        }
    }

    /// Lets `time` pass.
    pub(super) fn pass(&mut self, time: Nanos) {
        match self {
            SimulatedClock::Exact { now } => *now = *now + time,
            SimulatedClock::Real { .. } => wait(time.into()),
        }
    }
}

fn wait(time: Duration) {
    let begin = Instant::now();
    if let Some(sleep) = time.checked_sub(SPIN) {
        std::thread::sleep(sleep);
    }
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_clock_moves_by_modelled_time_alone() {
        let mut clock = SimulatedClock::new(ClockKind::Exact);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(clock.now(), Nanos::ZERO);
        clock.pass(Nanos::from_nanos(17));
        assert_eq!(clock.now(), Nanos::from_nanos(17));
    }

    #[test]
    fn the_real_clock_lets_at_least_the_time_pass() {
        let mut clock = SimulatedClock::new(ClockKind::Real);
        let before = clock.now();
        clock.pass(Nanos::from_micros(1_500));
        assert!(clock.now() >= before + Nanos::from_micros(1_500));
    }
}
