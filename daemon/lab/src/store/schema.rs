//! The store's file and its tables, by version.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};

use super::error::{StoreError, is_about_sql};

/// The version of the tables that this program reads and writes.
const VERSION: i64 = 1;

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

fn migrator() -> Migrator {
    Migrator::with_migrations(vec![Migration::new(
        VERSION,
        "lab".into(),
        MigrationType::Simple,
        include_str!("migrations/0001_lab.sql").into_sql_str(),
        false,
    )])
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .disable_statement_logging()
}

/// A connection that writes, to a file that is made if `make`.
pub(super) async fn connect(path: &Path, make: bool) -> Result<SqliteConnection, sqlx::Error> {
    options(path)
        .create_if_missing(make)
        .journal_mode(SqliteJournalMode::Wal)
        // What is acknowledged outlives a power cut.
        .synchronous(SqliteSynchronous::Full)
        // What is removed can be given back to the disk; of a file that is there, see `let_shrink`.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .connect()
        .await
}

/// A connection that only reads, also while the daemon writes.
pub(super) async fn connect_to_read(path: &Path) -> Result<SqliteConnection, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing);
    }
    let failed = |error: &sqlx::Error| StoreError::of_database(path, error);
    let mut connection = options(path)
        .read_only(true)
        .connect()
        .await
        .map_err(|error| failed(&error))?;
    match version(&mut connection).await {
        Ok(VERSION) => Ok(connection),
        Ok(version) if version > VERSION => Err(StoreError::Newer {
            path: path.to_owned(),
            version,
        }),
        Ok(0) => Err(StoreError::Missing),
        Ok(_) => Err(StoreError::Older {
            path: path.to_owned(),
        }),
        // The daemon has made the file, and no tables yet.
        Err(error) if is_about_sql(&error) => Err(StoreError::Missing),
        Err(error) => Err(failed(&error)),
    }
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await
}

/// Brings the tables up to date, and gives a new store its name.
pub(super) async fn prepare(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    migrator()
        .run_direct(None, connection, false)
        .await
        .map_err(|error| StoreError::of_migration(path, error))?;
    name(connection)
        .await
        .map_err(|error| StoreError::of_database(path, &error))
}

/// Sees that a file that an earlier layerlab made can shrink: it is written anew, once. One that cannot be, because there is
/// no room for a second one, is used as it is.
pub(super) async fn let_shrink(path: &Path, connection: &mut SqliteConnection) {
    const INCREMENTAL: i64 = 2;
    let mode = sqlx::query_scalar("PRAGMA auto_vacuum");
    let is_right =
        (mode.fetch_one(&mut *connection).await).is_ok_and(|mode: i64| mode == INCREMENTAL);
    if is_right {
        return;
    }
    for statement in ["PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"] {
        if let Err(error) = sqlx::query(statement).execute(&mut *connection).await {
            tracing::warn!(store = %path.display(), %error, "it cannot be made to shrink");
            return;
        }
    }
}

/// Gives the room of what was removed back to the disk.
pub(super) async fn shrink(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    for statement in [
        "PRAGMA incremental_vacuum",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ] {
        sqlx::query(statement).fetch_all(&mut *connection).await?;
    }
    Ok(())
}

async fn name(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let names: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM lab")
        .fetch_one(&mut *transaction)
        .await?;
    if names == 0 {
        sqlx::query("INSERT INTO lab (id) VALUES ($1)")
            .bind(format!("{:032x}", rand::random::<u128>()))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
