//! Where the store of a lab is, and connections to it: what differs between SQLite and PostgreSQL, for all others.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, Connection};

use super::server::StoreServer;
use super::sqlite;

/// Where the store of a lab is: in a file of the lab's folder, or on a PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    folder: PathBuf,
    server: Option<Arc<StoreServer>>,
}

impl StorePlace {
    /// A file in the lab's folder.
    pub fn in_folder(folder: &Path) -> StorePlace {
        StorePlace {
            folder: folder.to_owned(),
            server: None,
        }
    }

    /// On `server`.
    #[must_use]
    pub fn on(self, server: StoreServer) -> StorePlace {
        StorePlace {
            server: Some(Arc::new(server)),
            ..self
        }
    }

    /// The lab's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server, if it is on one.
    pub(super) fn server(&self) -> Option<&StoreServer> {
        self.server.as_deref()
    }

    /// Whether it is on a server, which may be out of reach.
    pub(super) fn is_on_server(&self) -> bool {
        self.server.is_some()
    }

    /// The name of the host as which it is used; empty where there is only one.
    pub(super) fn host(&self) -> String {
        self.server().map(StoreServer::host).unwrap_or_default()
    }

    /// How long runs of other hosts wait for those that have lost their leases.
    pub(super) fn host_patience(&self) -> Duration {
        (self.server()).map_or(Duration::MAX, StoreServer::host_patience)
    }

    /// What to use instead, for another lab.
    pub(super) fn another(&self) -> &'static str {
        match self.server {
            None => "another LAYERLAB_STATE",
            Some(_) => "another database",
        }
    }

    /// Makes what connections need, if it is not there.
    pub(super) fn make(&self) -> io::Result<()> {
        match self.server {
            None => sqlite::make_private_file(&self.file()),
            Some(_) => Ok(()),
        }
    }

    /// Whether nothing can be there yet.
    pub(super) fn is_missing(&self) -> bool {
        self.server.is_none() && !self.file().exists()
    }

    /// A connection that writes.
    pub(super) async fn connect(&self) -> Result<AnyConnection, sqlx::Error> {
        install_default_drivers();
        match &self.server {
            None => sqlite::connect(&self.file()).await,
            Some(server) => server.connect().await,
        }
    }

    /// A connection that only reads, and sees the same in all of a transaction.
    pub(super) async fn connect_to_read(&self) -> Result<AnyConnection, sqlx::Error> {
        install_default_drivers();
        match &self.server {
            None => sqlite::connect_to_read(&self.file()).await,
            Some(server) => server.connect_to_read().await,
        }
    }

    /// Ends a connection, in whatever state it is. One to a server is not said goodbye to, which could take long.
    pub(super) async fn leave(&self, connection: AnyConnection) {
        if self.server.is_none()
            && let Err(error) = connection.close().await
        {
            tracing::debug!("cannot close {self}: {error}");
        }
    }

    /// Sees that the store can shrink. A server gives room back by itself.
    pub(super) async fn let_shrink(&self, connection: &mut AnyConnection) {
        if self.server.is_none() {
            sqlite::let_shrink(&self.file(), connection).await;
        }
    }

    /// Gives the room of what was removed back.
    pub(super) async fn shrink(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        match self.server {
            None => sqlite::shrink(connection).await,
            Some(_) => Ok(()),
        }
    }

    fn file(&self) -> PathBuf {
        sqlite::file(&self.folder)
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            None => self.file().display().fmt(f),
            Some(server) => server.fmt(f),
        }
    }
}
