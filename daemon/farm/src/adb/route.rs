//! The ways to phones: an adb server, or none. A phone's recovery ladder is the same for both.

use super::address::Address;
use super::direct::{Direct, DirectTracker};
use super::error::AdbError;
use super::list::Row;
use super::server::{Server, Tracker};

/// What lists phones and leads to them.
#[derive(Clone, Debug)]
pub enum Route {
    /// An adb server.
    Server(Server),
    /// A process of ours for each phone.
    Direct(Direct),
}

impl From<Server> for Route {
    fn from(server: Server) -> Route {
        Route::Server(server)
    }
}

impl Route {
    /// A short name for it, for lists and the provenance.
    pub fn kind(&self) -> &'static str {
        match self {
            Route::Server(_) => "adb",
            Route::Direct(_) => "adb-direct",
        }
    }

    /// Whether it is an adb server of ours, so that we may restart it.
    pub fn is_own_server(&self) -> bool {
        matches!(self, Route::Server(server) if server.is_own())
    }

    /// What `serial` is called: for a given server, its address comes with it.
    pub fn name_of(&self, serial: &str) -> String {
        match self {
            Route::Server(server) => server.name_of(serial),
            Route::Direct(_) => serial.to_owned(),
        }
    }

    /// Which one it is among several.
    pub(super) fn place(&self) -> String {
        match self {
            Route::Server(server) => server.endpoint().to_string(),
            Route::Direct(_) => String::new(),
        }
    }

    /// All phones, in whatever state.
    pub async fn phones(&self) -> Result<Vec<Row>, AdbError> {
        match self {
            Route::Server(server) => server.phones().await,
            Route::Direct(direct) => Ok(direct.phones()),
        }
    }

    /// Gives phones that are there a moment to be seen, where that is nobody else's work.
    pub async fn settle(&self) {
        match self {
            Route::Server(_) => {}
            Route::Direct(direct) => direct.settle().await,
        }
    }

    /// The list of phones now and each time that it changes.
    pub async fn track(&self) -> Result<RouteTracker, AdbError> {
        Ok(match self {
            Route::Server(server) => RouteTracker::Server(server.track().await?),
            Route::Direct(direct) => RouteTracker::Direct(direct.track()),
        })
    }

    /// Connects to a phone at a network address. Doing it again is free. Whether it has come says the list.
    pub async fn connect(&self, phone: &Address) -> Result<(), AdbError> {
        match self {
            Route::Server(server) => server.connect(phone).await.map(drop),
            Route::Direct(direct) => {
                direct.connect(phone).await;
                Ok(())
            }
        }
    }

    /// Drops the connection with this number and makes it anew.
    pub async fn reconnect(&self, transport: u32) -> Result<(), AdbError> {
        match self {
            Route::Server(server) => server.reconnect(transport).await,
            Route::Direct(direct) => {
                direct.reconnect(transport).await;
                Ok(())
            }
        }
    }

    /// Makes the connections anew to all phones that cannot be talked to, and to no others.
    pub async fn reconnect_offline(&self) -> Result<(), AdbError> {
        match self {
            Route::Server(server) => server.reconnect_offline().await,
            Route::Direct(direct) => {
                direct.reconnect_offline().await;
                Ok(())
            }
        }
    }

    /// Starts our own server anew if it still does not answer.
    pub async fn restart(&self) -> Result<bool, AdbError> {
        match self {
            Route::Server(server) => server.restart().await,
            Route::Direct(_) => Ok(false),
        }
    }

    /// Starts our own server if nothing listens where it should.
    pub async fn ensure(&self) -> Result<(), AdbError> {
        match self {
            Route::Server(server) => server.ensure().await,
            Route::Direct(_) => Ok(()),
        }
    }
}

/// Follows the list of phones.
pub enum RouteTracker {
    /// A server's.
    Server(Tracker),
    /// Our own.
    Direct(DirectTracker),
}

impl RouteTracker {
    /// The next list that is another one. Waits as long as nothing changes: the caller knows the deadline.
    pub async fn next(&mut self) -> Result<Vec<Row>, AdbError> {
        match self {
            RouteTracker::Server(tracker) => tracker.next().await,
            RouteTracker::Direct(tracker) => Ok(tracker.next().await),
        }
    }
}
