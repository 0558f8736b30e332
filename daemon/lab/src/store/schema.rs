//! The store's tables, by version.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, SqlSafeStr, query, query_scalar};

use super::cause::is_about_tables;
use super::error::StoreError;
use super::place::StorePlace;

/// The tables.
const LAB: &str = include_str!("migrations/0001_lab.sql");
/// What a store on a server has beside them.
const OWNER: &str = include_str!("migrations/0001_owner.sql");
/// What several daemons on one server need.
const HOSTS: &str = include_str!("migrations/0002_hosts.sql");
/// What holds for all of them.
const LAB_WIDE: &str = include_str!("migrations/0003_lab_wide.sql");
/// What makes that fast.
const INDEXES: &str = include_str!("migrations/0004_indexes.sql");

/// The version of the tables at `place` that this program reads and writes.
fn newest(place: &StorePlace) -> i64 {
    if place.is_on_server() { 4 } else { 1 }
}

fn migrator(place: &StorePlace) -> Migrator {
    let migration = |version, name: &'static str, statements| {
        Migration::new(
            version,
            name.into(),
            MigrationType::Simple,
            statements,
            false,
        )
    };
    let migrations = match place.is_on_server() {
        false => vec![migration(1, "lab", LAB.into_sql_str())],
        // Texts are in the order of their bytes, as they are in SQLite, whatever language the database speaks.
        true => {
            let collated = |statements: String| {
                let statements = statements.replace(" TEXT", " TEXT COLLATE \"C\"");
                AssertSqlSafe(statements).into_sql_str()
            };
            vec![
                migration(1, "lab", collated(format!("{LAB}{OWNER}"))),
                migration(2, "hosts", collated(HOSTS.to_owned())),
                migration(3, "lab wide", collated(LAB_WIDE.to_owned())),
                migration(4, "indexes", collated(INDEXES.to_owned())),
            ]
        }
    };
    Migrator::with_migrations(migrations)
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

/// Whether the tables are as this program writes them; those of a newer version are refused.
pub(super) async fn is_up_to_date(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<bool, StoreError> {
    match check(place, connection).await {
        Ok(()) => Ok(true),
        Err(StoreError::Missing | StoreError::Older { .. }) => Ok(false),
        Err(error) => Err(error),
    }
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
    let (newest, place) = (newest(place), place.clone());
    match version(connection).await {
        Ok(version) if version == newest => Ok(()),
        Ok(version) if version > newest => Err(StoreError::Newer { place, version }),
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

/// Makes the tables as they were in version `version`, and gives the store its name.
#[cfg(test)]
pub(super) async fn prepare_as_of(
    place: &StorePlace,
    connection: &mut AnyConnection,
    version: i64,
) {
    let migrator = migrator(place);
    let migrations = migrator.iter().filter(|it| it.version <= version);
    Migrator::with_migrations(migrations.cloned().collect())
        .run_direct(None, connection, false)
        .await
        .expect("migrations");
    name(connection).await.expect("a name");
}
