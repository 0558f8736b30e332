//! A store in a file: SQLite.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, query, query_scalar};

use super::cause::sentence;

/// The file of the store of the lab in `folder`.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("lab.sqlite")
}

/// Makes the store's file, or takes the one that is there, and sees that nobody else can read it. What SQLite puts beside it
/// has the same mode.
pub(super) fn make_private_file(path: &Path) -> io::Result<()> {
    let mut options = File::options();
    let file = options.create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

/// A connection that writes, to a file that is there.
pub(super) async fn connect(path: &Path) -> Result<AnyConnection, sqlx::Error> {
    let mut connection = options(path, "rw")?.connect().await?;
    for statement in [
        // What is removed can be given back to the disk; of a file that is there, see `let_shrink`.
        "PRAGMA auto_vacuum = INCREMENTAL",
        "PRAGMA journal_mode = WAL",
        // What is acknowledged outlives a power cut.
        "PRAGMA synchronous = FULL",
    ] {
        query(statement).execute(&mut connection).await?;
    }
    Ok(connection)
}

/// A connection that only reads, also while the daemon writes.
pub(super) async fn connect_to_read(path: &Path) -> Result<AnyConnection, sqlx::Error> {
    options(path, "ro")?.connect().await
}

fn options(path: &Path, mode: &str) -> Result<AnyConnectOptions, sqlx::Error> {
    let path = path.canonicalize().map_err(sqlx::Error::Io)?;
    let text = path.to_str().ok_or_else(|| {
        let why = "its path is no UTF-8, which SQLite needs";
        sqlx::Error::Io(io::Error::new(io::ErrorKind::InvalidInput, why))
    })?;
    let mut options: AnyConnectOptions = "sqlite:///".parse()?;
    // A path of a URL may have other characters written as %41, and this one has not.
    options.database_url.set_path(&text.replace('%', "%25"));
    options
        .database_url
        .set_query(Some(&format!("mode={mode}")));
    Ok(options.disable_statement_logging())
}

/// Sees that a file that an earlier layerlab made can shrink: it is written anew, once. One that cannot be, because there is
/// no room for a second one, is used as it is.
pub(super) async fn let_shrink(path: &Path, connection: &mut AnyConnection) {
    const INCREMENTAL: i64 = 2;
    let mode = query_scalar("PRAGMA auto_vacuum");
    let is_right =
        (mode.fetch_one(&mut *connection).await).is_ok_and(|mode: i64| mode == INCREMENTAL);
    if is_right {
        return;
    }
    for statement in ["PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"] {
        if let Err(error) = query(statement).execute(&mut *connection).await {
            let why = sentence(&error);
            tracing::warn!(store = %path.display(), why, "it cannot be made to shrink");
            return;
        }
    }
}

/// Gives the room of what was removed back to the disk.
pub(super) async fn shrink(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    for statement in [
        "PRAGMA incremental_vacuum",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ] {
        query(statement).fetch_all(&mut *connection).await?;
    }
    Ok(())
}
