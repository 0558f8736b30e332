//! An adb server: what it is asked, each question with a deadline.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::address::Address;
use super::ask::{ANSWER, ask, version};
use super::endpoint::Endpoint;
use super::error::AdbError;
use super::fault::Fault;
use super::list::{self, Row};
use super::own::OwnServer;
use super::wire::{Wire, within};

/// How long connecting to a phone's network address may take: the server gives up after ten seconds.
const CONNECT: Duration = Duration::from_secs(12);

/// How often to ask for the list while the server tells no change.
const LOOK: Duration = Duration::from_secs(1);

/// A server, ours or a given one.
#[derive(Clone, Debug)]
pub struct Server {
    at: Endpoint,
    own: Option<Arc<OwnServer>>,
}

impl Server {
    /// A server that somebody else runs at `address`.
    pub fn given(address: Address) -> Server {
        Server {
            at: Endpoint::Port(address),
            own: None,
        }
    }

    /// Our own server; started if it does not run.
    pub async fn own(own: OwnServer) -> Result<Server, AdbError> {
        own.ensure().await?;
        Ok(Server {
            at: own.endpoint(),
            own: Some(Arc::new(own)),
        })
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.at
    }

    /// Whether it is ours, so that we may restart it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The log of our own server.
    pub fn log(&self) -> Option<PathBuf> {
        self.own.as_ref().map(|own| own.log())
    }

    /// What `serial` is called: for a given server, its address comes with it.
    pub fn name_of(&self, serial: &str) -> String {
        if self.is_own() {
            serial.to_owned()
        } else {
            format!("{serial}@{}", self.at)
        }
    }

    /// The version of its protocol. The cheapest sign of life.
    pub async fn version(&self) -> Result<u32, AdbError> {
        version(&self.at).await
    }

    /// What the server itself can do.
    pub async fn features(&self) -> Result<Vec<String>, AdbError> {
        let features = self.ask("host:host-features", ANSWER).await?;
        Ok(features.split(',').map(str::to_owned).collect())
    }

    /// What the adbd of the phone behind `transport` can do.
    pub async fn features_of(&self, transport: u32) -> Result<Vec<String>, AdbError> {
        let request = format!("host-transport-id:{transport}:features");
        let features = self.ask(&request, ANSWER).await?;
        Ok(features.split(',').map(str::to_owned).collect())
    }

    /// All phones, in whatever state.
    pub async fn phones(&self) -> Result<Vec<Row>, AdbError> {
        Ok(list::parse(&self.ask("host:devices-l", ANSWER).await?))
    }

    /// The list of phones now and each time that it changes.
    pub async fn track(&self) -> Result<Tracker, AdbError> {
        let subject = self.to_string();
        within(&subject, "list its phones", Fault::Server, ANSWER, async {
            let mut wire = Wire::open(&self.at).await?;
            wire.request("host:track-devices-l", "track phones").await?;
            Ok(Tracker {
                server: self.clone(),
                wire,
                received: Vec::new(),
                last: None,
            })
        })
        .await
    }

    /// Has the server connect to a phone at a network address. Doing it again is free. The server says
    /// OKAY whatever happens; what it says besides is for people.
    pub async fn connect(&self, phone: &Address) -> Result<String, AdbError> {
        self.ask(&format!("host:connect:{phone}"), CONNECT).await
    }

    /// Drops the connection to one phone and makes it anew.
    pub async fn reconnect(&self, transport: u32) -> Result<(), AdbError> {
        let request = format!("host-transport-id:{transport}:reconnect");
        self.ask(&request, ANSWER).await.map(drop)
    }

    /// Drops the connections to all phones that are offline, and to no others, and makes them anew.
    pub async fn reconnect_offline(&self) -> Result<(), AdbError> {
        self.ask("host:reconnect-offline", ANSWER).await.map(drop)
    }

    /// Starts our own server anew if it still does not answer. Returns whether it is ours.
    pub async fn restart(&self) -> Result<bool, AdbError> {
        match &self.own {
            None => Ok(false),
            Some(own) => own.restart().await.map(|()| true),
        }
    }

    /// Starts our own server if it does not run.
    pub async fn ensure(&self) -> Result<(), AdbError> {
        match &self.own {
            None => self.version().await.map(drop),
            Some(own) => own.ensure().await,
        }
    }

    /// A connection that is switched to the phone behind `transport`.
    pub(super) async fn to_phone(&self, transport: u32, name: &str) -> Result<Wire, AdbError> {
        let mut wire = Wire::open(&self.at).await?;
        let request = format!("host:transport-id:{transport}");
        wire.about(name, Fault::Offline);
        wire.request(&request, "answer the adb server").await?;
        wire.about(name, Fault::Shell);
        Ok(wire)
    }

    async fn ask(&self, request: &str, deadline: Duration) -> Result<String, AdbError> {
        ask(&self.at, request, deadline).await
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the adb server at {}", self.at)
    }
}

/// Follows the list of phones of one server.
pub struct Tracker {
    server: Server,
    wire: Wire,
    /// What has come of the next message.
    received: Vec<u8>,
    last: Option<Vec<Row>>,
}

impl Tracker {
    /// The next list that is another one. Waits as long as nothing changes: the caller knows the
    /// deadline. Fails when the server does not answer. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Row>, AdbError> {
        loop {
            let rows = match timeout(LOOK, self.message()).await {
                Ok(list) => list::parse(&list?),
                // adb 29 tells only some ten seconds later that a phone at a network address is gone.
                Err(_) => self.server.phones().await?,
            };
            if self.last.as_ref() != Some(&rows) {
                self.last = Some(rows.clone());
                return Ok(rows);
            }
        }
    }

    async fn message(&mut self) -> Result<String, AdbError> {
        loop {
            if let Some(text) = self.wire.take_text(&mut self.received)? {
                return Ok(text);
            }
            self.wire.read_some(&mut self.received).await?;
        }
    }
}
