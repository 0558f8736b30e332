//! The recovery ladder: what to try next when a phone, its agent or the server fails. Cheapest first,
//! one rung per failure. Pure: climbing is the link's business.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::adb::Fault;

/// A thing to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The same again, after a moment.
    Retry,
    /// Wait for the phone to come (back), as long as patience lasts.
    Wait,
    /// Make the connection to this phone anew.
    Reconnect,
    /// Make the connections to all phones anew that the server cannot talk to.
    ReconnectOffline,
    /// Kill the agent and start it again; its journal lives on.
    RestartAgent,
    /// Boot the phone anew.
    Reboot,
    /// Switch its USB port off and on.
    CyclePort,
    /// Start the server anew. It hurts every phone: only when the server itself does not answer.
    RestartServer,
}

/// How often failures on the way to phones were met with each rung, by all links that share this.
#[derive(Clone, Debug)]
pub struct RungCounts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Default for RungCounts {
    fn default() -> RungCounts {
        let rungs = Rung::ALL.into_iter().map(Rung::name);
        let all = rungs.chain([GIVEN_UP]).map(|name| (name, 0));
        RungCounts(Arc::new(Mutex::new(all.collect())))
    }
}

impl RungCounts {
    /// Counts a failure: what is tried next, or that nothing is left to try.
    pub(super) fn count(&self, rung: Option<Rung>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(rung.map_or(GIVEN_UP, Rung::name)).or_default() += 1;
    }

    /// How often each rung was climbed, by its name, and how often a phone was given up, as `given-up`.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.clone()
    }
}

/// What came of a failure for which nothing was left to try.
const GIVEN_UP: &str = "given-up";

impl Rung {
    const ALL: [Rung; 8] = [
        Rung::Retry,
        Rung::Wait,
        Rung::Reconnect,
        Rung::ReconnectOffline,
        Rung::RestartAgent,
        Rung::Reboot,
        Rung::CyclePort,
        Rung::RestartServer,
    ];

    /// What it is called where it is counted.
    fn name(self) -> &'static str {
        match self {
            Rung::Retry => "retry",
            Rung::Wait => "wait",
            Rung::Reconnect => "reconnect",
            Rung::ReconnectOffline => "reconnect-offline",
            Rung::RestartAgent => "restart-agent",
            Rung::Reboot => "reboot",
            Rung::CyclePort => "cycle-port",
            Rung::RestartServer => "restart-server",
        }
    }

    /// How long climbing it may take; waiting has a patience of its own.
    pub fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Rung::Retry => 5,
            Rung::Reconnect | Rung::ReconnectOffline | Rung::CyclePort => 20,
            Rung::RestartAgent => 60,
            Rung::RestartServer => 90,
            Rung::Reboot => 300,
            Rung::Wait => u64::MAX / 2,
        })
    }
}

/// How the phone is reached, as far as the ladder cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Over the network: the server cannot tell an unplugged phone from one that does not answer.
    pub network: bool,
    /// The server is ours.
    pub own_server: bool,
    /// The user allows phones to be booted anew.
    pub may_reboot: bool,
}

/// How far up one is, for each fault.
#[derive(Debug)]
pub struct Ladder {
    way: Way,
    climbed: HashMap<Fault, usize>,
}

impl Ladder {
    /// A ladder that nobody has climbed.
    pub fn new(way: Way) -> Ladder {
        Ladder {
            way,
            climbed: HashMap::new(),
        }
    }

    /// What to try next; `None` when everything was tried.
    pub fn next(&mut self, fault: Fault) -> Option<Rung> {
        let rungs = self.rungs(fault);
        let at = self.climbed.entry(fault).or_default();
        let rung = rungs
            .iter()
            .filter(|rung| self.way.allows(**rung))
            .nth(*at)
            .copied();
        // The last rung of these is waiting, which has a patience of its own.
        let rung = rung.or_else(|| rungs.last().copied().filter(|last| *last == Rung::Wait));
        *at += 1;
        rung
    }

    fn rungs(&self, fault: Fault) -> &'static [Rung] {
        match fault {
            Fault::Server if self.way.own_server => &[
                Rung::Retry,
                Rung::RestartServer,
                Rung::Retry,
                Rung::RestartServer,
            ],
            Fault::Server | Fault::Away => &[Rung::Wait],
            Fault::Offline if self.way.network => &[Rung::Wait],
            Fault::Offline => &[
                Rung::Retry,
                Rung::Reconnect,
                Rung::ReconnectOffline,
                Rung::CyclePort,
            ],
            Fault::Shell => &[
                Rung::Retry,
                Rung::Reconnect,
                Rung::ReconnectOffline,
                Rung::Reboot,
                Rung::CyclePort,
            ],
            Fault::Agent => &[
                Rung::Retry,
                Rung::RestartAgent,
                Rung::Reconnect,
                Rung::Reboot,
            ],
        }
    }
}

impl Way {
    fn allows(self, rung: Rung) -> bool {
        match rung {
            Rung::Reboot => self.may_reboot,
            Rung::CyclePort => !self.network,
            Rung::RestartServer => self.own_server,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USB: Way = Way {
        network: false,
        own_server: true,
        may_reboot: true,
    };

    fn climb(way: Way, fault: Fault) -> Vec<Rung> {
        let mut ladder = Ladder::new(way);
        std::iter::from_fn(|| ladder.next(fault)).take(10).collect()
    }

    #[test]
    fn the_cheapest_comes_first_and_the_ladder_ends() {
        assert_eq!(
            climb(USB, Fault::Agent),
            [
                Rung::Retry,
                Rung::RestartAgent,
                Rung::Reconnect,
                Rung::Reboot
            ]
        );
        assert_eq!(
            climb(USB, Fault::Offline),
            [
                Rung::Retry,
                Rung::Reconnect,
                Rung::ReconnectOffline,
                Rung::CyclePort
            ]
        );
    }

    #[test]
    fn the_server_is_never_restarted_for_one_phones_sake() {
        for fault in [Fault::Away, Fault::Offline, Fault::Shell, Fault::Agent] {
            assert!(
                !climb(USB, fault).contains(&Rung::RestartServer),
                "{fault:?}"
            );
        }
        let given = Way {
            own_server: false,
            ..USB
        };
        assert!(!climb(given, Fault::Server).contains(&Rung::RestartServer));
    }

    #[test]
    fn an_unplugged_phone_is_waited_for() {
        let network = Way {
            network: true,
            ..USB
        };
        for (way, fault) in [(USB, Fault::Away), (network, Fault::Offline)] {
            assert_eq!(climb(way, fault), [Rung::Wait; 10]);
        }
    }

    #[test]
    fn a_phone_that_must_not_be_rebooted_is_not() {
        let way = Way {
            may_reboot: false,
            ..USB
        };
        for fault in [Fault::Shell, Fault::Agent] {
            assert!(!climb(way, fault).contains(&Rung::Reboot), "{fault:?}");
        }
    }
}
