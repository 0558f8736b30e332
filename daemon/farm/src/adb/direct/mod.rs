//! Phones without an adb server or program. Each is spoken to by a child process: layerlab itself with a hidden
//! subcommand, around the crate adb_client. That crate knows neither deadlines nor cancellation, and loses exit codes; so
//! the child is killed at the deadline of what it does, and whatever it did is proved.
//!
//! A phone has one child, which does one thing at a time. While its agent is spoken with, which takes a child of its own,
//! a phone on the network has a second one for everything else; USB gives only one connection, so that the agent's ends.

mod command;
pub mod frames;
mod phone;
mod pipe;
mod process;
mod sightings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::address::Address;
use super::list::{Row, State};
use frames::{Sighting, Target};
pub(crate) use phone::DirectPhone;
use process::Program;
use sightings::Sightings;

/// How often to look whether anything has changed.
const LOOK: Duration = Duration::from_millis(200);

/// How long phones that were seen may take until they greet us, where somebody waits for all of them.
const SETTLE: Duration = Duration::from_secs(3);

/// All phones that are reached without an adb server.
#[derive(Clone, Debug)]
pub struct Direct(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    means: Arc<Means>,
    phones: Mutex<BTreeMap<String, Arc<DirectPhone>>>,
    sightings: Sightings,
}

/// What every phone's child is started with.
#[derive(Debug)]
struct Means {
    layerlab: PathBuf,
    key: PathBuf,
    /// The number of the last connection.
    connections: AtomicU32,
}

impl Means {
    fn program(&self) -> Program<'_> {
        Program {
            layerlab: &self.layerlab,
            key: &self.key,
        }
    }
}

impl Direct {
    /// Phones that know this host by `key`, spoken to by the program `layerlab`.
    pub fn new(layerlab: PathBuf, key: PathBuf) -> Direct {
        let means = Arc::new(Means {
            layerlab,
            key,
            connections: AtomicU32::new(0),
        });
        Direct(Arc::new(Inner {
            means,
            phones: Mutex::default(),
            sightings: Sightings::default(),
        }))
    }

    /// Looks for phones on USB and the network from now on, which takes a moment.
    pub(super) fn look(&self) {
        self.0.sightings.start(&self.0.means);
    }

    /// Waits until phones that are there have been seen, and greeted us or not.
    pub(super) async fn settle(&self) {
        self.look();
        self.0.sightings.settled().await;
        let connecting = || {
            let rows = self.rows(&self.0.sightings.now());
            rows.iter().any(|row| row.state == State::Connecting)
        };
        let end = Instant::now() + SETTLE;
        while connecting() && Instant::now() < end {
            sleep(LOOK).await;
        }
    }

    /// All phones that were named or seen, in whatever state. Those on USB are connected to, but not waited for.
    pub(super) fn phones(&self) -> Vec<Row> {
        let seen = self.0.sightings.now();
        for sighting in &seen {
            if let Ok(target) = sighting.target.parse() {
                let phone = self.phone(&target);
                phone.see(sighting);
                if matches!(phone.target(), Target::Usb(_)) && sighting.obstacle.is_none() {
                    phone.ensure_soon();
                }
            }
        }
        self.rows(&seen)
    }

    fn rows(&self, seen: &[Sighting]) -> Vec<Row> {
        let phones: Vec<Arc<DirectPhone>> = self.map().values().cloned().collect();
        let is_there = |phone: &&Arc<DirectPhone>| {
            let target = phone.target();
            let name = target.to_string();
            matches!(target, Target::Network(_)) || seen.iter().any(|seen| seen.target == name)
        };
        let there = phones.iter().filter(is_there);
        there.map(|phone| phone.row()).collect()
    }

    /// The phone that is listed as `serial`.
    pub(super) fn find(&self, serial: &str) -> Option<Arc<DirectPhone>> {
        self.map().get(serial).cloned()
    }

    /// Connects to the phone at `address`, unless it is connected.
    pub(super) async fn connect(&self, address: &Address) {
        self.phone(&Target::Network(address.clone())).ensure().await;
    }

    /// Makes the connection with the number `transport` anew.
    pub(super) async fn reconnect(&self, transport: u32) {
        let phones: Vec<Arc<DirectPhone>> = self.map().values().cloned().collect();
        let phone = phones
            .into_iter()
            .find(|phone| phone.row().transport == Some(transport));
        if let Some(phone) = phone {
            phone.reconnect().await;
        }
    }

    /// Makes the connections anew to all phones that are not ready.
    pub(super) async fn reconnect_offline(&self) {
        let phones: Vec<Arc<DirectPhone>> = self.map().values().cloned().collect();
        let offline = phones
            .iter()
            .filter(|phone| phone.row().state != State::Ready);
        join_all(offline.map(|phone| phone.reconnect())).await;
    }

    /// The list of phones now and each time that it changes.
    pub(super) fn track(&self) -> DirectTracker {
        DirectTracker {
            direct: self.clone(),
            last: None,
        }
    }

    fn phone(&self, target: &Target) -> Arc<DirectPhone> {
        let name = match target {
            Target::Network(address) => address.to_string(),
            Target::Usb(serial) => serial.clone(),
        };
        let mut phones = self.map();
        let phone = phones.entry(name.clone()).or_insert_with(|| {
            let means = Arc::clone(&self.0.means);
            Arc::new(DirectPhone::new(name, target.clone(), means))
        });
        Arc::clone(phone)
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DirectPhone>>> {
        // Phones are only ever added.
        self.0.phones.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the list of phones.
#[derive(Debug)]
pub struct DirectTracker {
    direct: Direct,
    last: Option<Vec<Row>>,
}

impl DirectTracker {
    /// The next list that is another one. Waits as long as nothing changes.
    pub(super) async fn next(&mut self) -> Vec<Row> {
        loop {
            let rows = self.direct.phones();
            if self.last.as_ref() != Some(&rows) {
                self.last = Some(rows.clone());
                return rows;
            }
            sleep(LOOK).await;
        }
    }
}
