//! The store's tables, by version.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, SqlSafeStr, query, query_scalar};

use super::cause::is_about_tables;
use super::error::StoreError;
use super::place::StorePlace;

/// The version of the tables that this program reads and writes.
const VERSION: i64 = 1;

/// The tables.
const LAB: &str = include_str!("migrations/0001_lab.sql");
/// What a store on a server has beside them.
const OWNER: &str = include_str!("migrations/0001_owner.sql");

fn migrator(place: &StorePlace) -> Migrator {
    let statements = match place.is_on_server() {
        false => LAB.into_sql_str(),
        // Texts are in the order of their bytes, as they are in SQLite, whatever language the database speaks.
        true => {
            let statements = format!("{LAB}{OWNER}").replace(" TEXT", " TEXT COLLATE \"C\"");
            AssertSqlSafe(statements).into_sql_str()
        }
    };
    Migrator::with_migrations(vec![Migration::new(
        VERSION,
        "lab".into(),
        MigrationType::Simple,
        statements,
        false,
    )])
}

/// Brings the tables up to date, and gives a new store its name.
pub(super) async fn prepare(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    if place.is_on_server() {
        make_schema(place, connection).await?;
    }
    migrator(place)
        .run_direct(None, connection, false)
        .await
        .map_err(|error| StoreError::of_migration(place, error))?;
    name(connection)
        .await
        .map_err(|error| StoreError::of_database(place, &error))
}

/// Makes what holds the tables on a server, if it is not there.
async fn make_schema(place: &StorePlace, connection: &mut AnyConnection) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::of_database(place, &error);
    let encoding: String = query_scalar("SELECT current_setting('server_encoding')")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    if encoding != "UTF8" {
        let place = place.clone();
        return Err(StoreError::Encoding { place, encoding });
    }
    // Who may not make schemas may use one that is there.
    let schemas: i64 = query_scalar("SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'layerlab'")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    if schemas == 0 {
        let made = query("CREATE SCHEMA layerlab").execute(connection).await;
        made.map_err(failed)?;
    }
    Ok(())
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
