//! The store's tables, by version.

use sqlx::AnyConnection;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection, SqlSafeStr, query, query_scalar};

use super::error::{StoreError, is_about_tables};
use super::place::StorePlace;

/// The version of the tables that this program reads and writes.
const VERSION: i64 = 1;

fn migrator() -> Migrator {
    Migrator::with_migrations(vec![Migration::new(
        VERSION,
        "lab".into(),
        MigrationType::Simple,
        include_str!("migrations/0001_lab.sql").into_sql_str(),
        false,
    )])
}

/// Brings the tables up to date, and gives a new store its name.
pub(super) async fn prepare(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    migrator()
        .run_direct(None, connection, false)
        .await
        .map_err(|error| StoreError::of_migration(place, error))?;
    name(connection)
        .await
        .map_err(|error| StoreError::of_database(place, &error))
}

/// Sees that the tables are there, and of the version that this program reads.
pub(super) async fn check(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    let place = place.clone();
    match version(connection).await {
        Ok(VERSION) => Ok(()),
        Ok(version) if version > VERSION => Err(StoreError::Newer { place, version }),
        Ok(0) => Err(StoreError::Missing),
        Ok(_) => Err(StoreError::Older { place }),
        // The daemon has made no tables yet.
        Err(error) if is_about_tables(&error) => Err(StoreError::Missing),
        Err(error) => Err(StoreError::of_database(&place, &error)),
    }
}

async fn version(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    query_scalar("SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await
}

async fn name(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let names: i64 = query_scalar("SELECT COUNT(*) FROM lab")
        .fetch_one(&mut *transaction)
        .await?;
    if names == 0 {
        query("INSERT INTO lab (id) VALUES ($1)")
            .bind(format!("{:032x}", rand::random::<u128>()))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
