//! Where the store of a lab is, and connections to it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::AnyConnection;
use sqlx::any::install_default_drivers;

use super::sqlite;

/// Where the store of a lab is: in a file of the lab's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    folder: PathBuf,
}

impl StorePlace {
    /// A file in the lab's folder.
    pub fn in_folder(folder: &Path) -> StorePlace {
        StorePlace {
            folder: folder.to_owned(),
        }
    }

    /// The lab's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes what connections need, if it is not there.
    pub(super) fn make(&self) -> io::Result<()> {
        sqlite::make_private_file(&self.file())
    }

    /// Whether nothing can be there yet.
    pub(super) fn is_missing(&self) -> bool {
        !self.file().exists()
    }

    /// A connection that writes.
    pub(super) async fn connect(&self) -> Result<AnyConnection, sqlx::Error> {
        install_default_drivers();
        sqlite::connect(&self.file()).await
    }

    /// A connection that only reads, and sees the same in all of a transaction.
    pub(super) async fn connect_to_read(&self) -> Result<AnyConnection, sqlx::Error> {
        install_default_drivers();
        sqlite::connect_to_read(&self.file()).await
    }

    /// Sees that the store can shrink.
    pub(super) async fn let_shrink(&self, connection: &mut AnyConnection) {
        sqlite::let_shrink(&self.file(), connection).await;
    }

    /// Gives the room of what was removed back.
    pub(super) async fn shrink(&self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        sqlite::shrink(connection).await
    }

    fn file(&self) -> PathBuf {
        sqlite::file(&self.folder)
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file().display().fmt(f)
    }
}
