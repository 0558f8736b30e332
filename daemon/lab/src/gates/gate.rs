//! Waiting until a device is ready, but not for ever.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{NotReady, Readings, Thresholds, check};

/// Looking disturbs: a device is not looked at more often than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long to wait for a device, and how often to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time from one look to the next.
    pub poll: Duration,
    /// After this it is given up.
    pub deadline: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            poll: Duration::from_secs(30),
            deadline: Duration::from_secs(3600),
        }
    }
}

/// The gate before one run. All times are on one clock of the caller's.
#[derive(Clone, Debug)]
pub struct Gate {
    thresholds: Thresholds,
    patience: Patience,
    since: Duration,
    reasons: Vec<NotReady>,
}

/// What comes of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run may start.
    Ready {
        /// How long that took.
        after: Duration,
        /// What the device does not tell, in words.
        unknown: Vec<&'static str>,
    },
    /// The device is not ready yet; it is to be looked at again.
    Wait {
        /// When to look again, by the clock that [`Gate::new`] was given.
        until: Duration,
    },
    /// It took too long.
    GaveUp(GaveUp),
}

/// A device was not ready in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("not ready within {}: {}", rounded(*waited), with_remedies(reasons))]
pub struct GaveUp {
    /// How long it was waited for.
    pub waited: Duration,
    /// What kept it from being ready at the last look.
    pub reasons: Vec<NotReady>,
}

impl Gate {
    /// A gate at which waiting begins `now`.
    pub fn new(thresholds: Thresholds, patience: Patience, now: Duration) -> Gate {
        Gate {
            thresholds,
            patience,
            since: now,
            reasons: Vec::new(),
        }
    }

    /// Judges what was read `now`. A device that is ready after the deadline is ready.
    pub fn look(&mut self, readings: &Readings, now: Duration) -> Verdict {
        let reasons = check(readings, &self.thresholds);
        if reasons.is_empty() {
            self.reasons.clear();
            return Verdict::Ready {
                after: now.saturating_sub(self.since),
                unknown: readings.unknown(),
            };
        }
        self.wait(reasons, now)
    }

    /// Says that nothing could be read `now`.
    pub fn unread(&mut self, why: impl Into<String>, now: Duration) -> Verdict {
        self.wait(vec![NotReady::Unread { why: why.into() }], now)
    }

    /// What keeps the device from being ready, for people: `battery 22 % < 30 %`. `None` as with [`Gate::waiting`].
    pub fn obstacles(&self) -> Option<String> {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// What is waited for, for people: `waiting: battery 22 % < 30 %, 14 min`. `None` before the first look
    /// and when the device is ready.
    pub fn waiting(&self, now: Duration) -> Option<String> {
        let waited = rounded(now.saturating_sub(self.since));
        self.obstacles()
            .map(|reasons| format!("waiting: {reasons}, {waited}"))
    }

    fn wait(&mut self, reasons: Vec<NotReady>, now: Duration) -> Verdict {
        self.reasons = reasons;
        let end = self.since.saturating_add(self.patience.deadline);
        if now >= end {
            return Verdict::GaveUp(GaveUp {
                waited: now.saturating_sub(self.since),
                reasons: self.reasons.clone(),
            });
        }
        let next = now.saturating_add(self.patience.poll.max(SHORTEST));
        // The last look is at the deadline.
        Verdict::Wait {
            until: next.min(end),
        }
    }
}

fn with_remedies(reasons: &[NotReady]) -> String {
    let sentence = |reason: &NotReady| format!("{reason}; {}", reason.remedy());
    reasons
        .iter()
        .map(sentence)
        .collect::<Vec<_>>()
        .join(", and ")
}

/// A duration as people say it: `40 s`, `14 min`, `2 h 5 min`.
fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn drained() -> Readings {
        Readings {
            battery_level_percent: Some(22),
            ..Readings::default()
        }
    }

    fn gate(patience: Patience, now: Duration) -> Gate {
        Gate::new(Thresholds::default(), patience, now)
    }

    #[test]
    fn a_ready_device_waits_for_nothing() {
        let mut gate = gate(Patience::default(), MINUTE);
        assert_eq!(gate.waiting(MINUTE), None);
        let charged = Readings {
            battery_level_percent: Some(30),
            screen_on: Some(false),
            ..Readings::default()
        };
        let verdict = gate.look(&charged, 3 * MINUTE);
        let unknown = charged.unknown();
        let after = 2 * MINUTE;
        assert_eq!(verdict, Verdict::Ready { after, unknown });
        assert_eq!(gate.waiting(3 * MINUTE), None);
    }

    #[test]
    fn it_says_what_it_waits_for_and_for_how_long() {
        let mut gate = gate(Patience::default(), MINUTE);
        let until = MINUTE + Duration::from_secs(30);
        assert_eq!(gate.look(&drained(), MINUTE), Verdict::Wait { until });
        let said = gate.waiting(15 * MINUTE);
        assert_eq!(
            said.as_deref(),
            Some("waiting: battery 22 % < 30 %, 14 min")
        );
        gate.look(
            &Readings {
                screen_on: Some(true),
                ..drained()
            },
            16 * MINUTE,
        );
        let said = gate.waiting(16 * MINUTE);
        let both = "waiting: battery 22 % < 30 %; screen is on, 15 min";
        assert_eq!(said.as_deref(), Some(both));
        assert!(matches!(
            gate.look(&Readings::default(), 17 * MINUTE),
            Verdict::Ready { .. }
        ));
        assert_eq!(gate.waiting(17 * MINUTE), None);
    }

    #[test]
    fn after_the_deadline_it_gives_up_with_reasons_and_remedies() {
        let mut gate = gate(Patience::default(), Duration::ZERO);
        gate.look(&drained(), Duration::ZERO);
        let Verdict::GaveUp(gave_up) = gate.look(&drained(), 60 * MINUTE) else {
            panic!("it waits on");
        };
        let sentence = "not ready within 1 h: battery 22 % < 30 %; charge it";
        assert_eq!(gave_up.to_string(), sentence);
    }

    #[test]
    fn a_device_that_cannot_be_asked_is_given_up_too() {
        let mut gate = gate(Patience::default(), Duration::ZERO);
        gate.unread("P1 is not plugged in", MINUTE);
        let said = gate.waiting(MINUTE);
        let expected = "waiting: cannot be asked (P1 is not plugged in), 1 min";
        assert_eq!(said.as_deref(), Some(expected));
        let verdict = gate.unread("P1 is not plugged in", 61 * MINUTE);
        assert!(matches!(verdict, Verdict::GaveUp(_)), "{verdict:?}");
    }

    #[test]
    fn a_device_that_is_ready_late_is_ready() {
        let mut gate = gate(Patience::default(), Duration::ZERO);
        let verdict = gate.look(&Readings::default(), 600 * MINUTE);
        assert!(matches!(verdict, Verdict::Ready { .. }), "{verdict:?}");
    }

    /// Whatever the patience: time goes on, the last look is at the deadline, and there is a last one.
    #[test]
    fn every_wait_ends_at_its_deadline() {
        let seconds = Duration::from_secs;
        for start in [0, 7, 1 << 40].map(seconds) {
            for poll in [0, 1, 29, 30, 3600, u64::MAX].map(seconds) {
                for deadline in [0, 1, 30, 31, 600].map(seconds) {
                    let mut gate = gate(Patience { poll, deadline }, start);
                    let (mut now, mut looks) = (start, 1);
                    while let Verdict::Wait { until } = gate.look(&drained(), now) {
                        assert!(until > now, "{poll:?} {deadline:?}");
                        (now, looks) = (until, looks + 1);
                    }
                    assert_eq!(now, start + deadline, "{poll:?}");
                    let most = deadline.as_secs().div_ceil(poll.as_secs().max(1)) + 1;
                    assert_eq!(looks, most, "{poll:?} {deadline:?}");
                }
            }
        }
    }

    #[test]
    fn durations_read_as_people_say_them() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (899, "14 min"),
            (3600, "1 h"),
            (7500, "2 h 5 min"),
        ] {
            assert_eq!(rounded(Duration::from_secs(seconds)), text);
        }
    }
}
