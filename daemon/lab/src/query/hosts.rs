//! The hosts of the lab, with what they are doing.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::record::{Host, Kept, LeaseState, RunState};
use crate::when::moment;

/// A host, and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedHost {
    /// What the host is called in the lab.
    pub name: String,
    /// Whether it may work on the lab's runs.
    pub lease: LeaseState,
    /// When it lost its lease, or ended; nothing while it is alive.
    pub since: Option<Timestamp>,
    /// When the store heard of it last.
    pub seen: Timestamp,
    /// The names of the devices that it has, or had last.
    pub devices: Vec<String>,
    /// How many runs are on its devices; of one that is not alive, as far as is known.
    pub running: usize,
    /// How many runs that it left between two blocks wait for its devices.
    pub parked: usize,
    /// Its time zone by its name, if that has one: windows that name none are meant in it.
    pub zone: Option<String>,
    /// The version of its daemon.
    pub version: String,
    /// What its machine calls itself.
    pub machine: String,
    /// The process of its daemon, if it has one.
    pub process: Option<u32>,
}

impl ListedHost {
    /// Whether it is alive, for a person who reads it at `now` and whose clock shows `zone`: `lost since 14:02`.
    pub fn lease_in_words(&self, now: Timestamp, zone: &TimeZone) -> String {
        match (self.lease, self.since) {
            (LeaseState::Alive, _) | (_, None) => "alive".to_owned(),
            (LeaseState::Lost, Some(at)) => format!("lost since {}", moment(at, now, zone)),
            (LeaseState::Ended, Some(at)) => format!("ended {}", moment(at, now, zone)),
        }
    }
}

/// The hosts of the lab that knows `kept`, at `now`.
pub fn listed_hosts(hosts: Vec<Host>, kept: &Kept, now: Timestamp) -> Vec<ListedHost> {
    let listed = hosts.into_iter().map(|host| {
        let runs = |state: RunState| {
            let of_host = (kept.runs.values()).filter(|run| run.host.as_ref() == Some(&host.name));
            of_host.filter(|run| run.state == state).count()
        };
        let over = SignedDuration::try_from(host.lease_over).unwrap_or(SignedDuration::MAX);
        ListedHost {
            running: runs(RunState::Running),
            parked: runs(RunState::Parked),
            since: match host.lease {
                LeaseState::Alive => None,
                LeaseState::Lost | LeaseState::Ended => now.checked_sub(over).ok(),
            },
            name: host.name,
            lease: host.lease,
            seen: host.seen,
            devices: host.devices,
            zone: host.zone,
            version: host.version,
            machine: host.machine,
            process: host.process,
        }
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Run;

    #[test]
    fn hosts_have_the_runs_that_they_claimed_and_a_lost_lease_has_its_time() {
        let host = |name: &str, lease, over| Host {
            name: name.to_owned(),
            machine: "db".to_owned(),
            process: Some(7),
            version: "1.0.0".to_owned(),
            zone: Some("Europe/Berlin".to_owned()),
            devices: vec!["PHONE1".to_owned()],
            lease,
            seen: Timestamp::UNIX_EPOCH,
            lease_over: Duration::from_secs(over),
            is_given_up: false,
        };
        let runs = [
            (1, "one", RunState::Running),
            (2, "one", RunState::Running),
            (3, "one", RunState::Done),
            (4, "two", RunState::Parked),
        ];
        let run = |(number, host, state): (i64, &str, RunState)| Run {
            number,
            host: Some(host.to_owned()),
            state,
            ..Run::default()
        };
        let kept = Kept {
            runs: runs.map(|it| (it.0, run(it))).into(),
            ..Kept::default()
        };
        let hosts = vec![
            host("one", LeaseState::Alive, 0),
            host("two", LeaseState::Lost, 60),
        ];
        let now = Timestamp::from_second(3600).expect("a time");
        let listed = listed_hosts(hosts, &kept, now);
        let counts = listed.iter().map(|host| (host.running, host.parked));
        assert_eq!(counts.collect::<Vec<_>>(), [(2, 0), (0, 1)]);
        let minute_before = Timestamp::from_second(3540).expect("a time");
        let since = listed.iter().map(|host| host.since);
        assert_eq!(since.collect::<Vec<_>>(), [None, Some(minute_before)]);
    }
}
