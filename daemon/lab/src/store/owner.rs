//! Whose a store on a server is: one daemon's, from whichever host.
//!
//! A daemon holds a lock that its connection has, so that a second one does not begin. A connection can be lost while the daemon
//! lives, and the lock with it. Therefore each daemon that begins has a number, one more than the one before it, and writes
//! only while that number stands in the table `owner`: who was replaced cannot write any more, however late it comes.

use std::time::{Duration, Instant};

use sqlx::{AnyConnection, query, query_as, query_scalar};

use super::error::StoreError;
use super::obstacle::Outcome;
use super::place::StorePlace;

/// The advisory lock of a lab's daemon; each database has locks of its own.
const LOCK: i64 = i64::from_be_bytes(*b"layerlab");

/// How long a daemon that has just been killed may still seem to have the lock.
const ENDING: Duration = Duration::from_secs(3);

/// A daemon that may write, as long as nobody has replaced it.
pub(super) struct Owner {
    number: i64,
    /// The number of the batch that is to be written now.
    batch: i64,
    /// What came of that batch, if it was written and nothing is known of the end.
    in_doubt: Option<Vec<Outcome>>,
    has_lock: bool,
}

/// What a transaction is to do.
pub(super) enum Standing {
    /// Write the batch.
    Write,
    /// Nothing: the batch was written before, with these outcomes.
    Written(Vec<Outcome>),
    /// Nothing ever: the store is of another daemon.
    Replaced(String),
}

/// Takes the lock of the store; whoever has it is named.
pub(super) async fn lock(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    let until = Instant::now() + ENDING;
    let failed = |error: sqlx::Error| StoreError::of_database(place, &error);
    while !try_lock(connection).await.map_err(failed)? {
        if Instant::now() > until {
            return Err(StoreError::TakenOnServer {
                place: place.clone(),
                // There may be no table yet.
                holder: holder(connection).await.ok().map(|(_, holder)| holder),
            });
        }
        // This is a thread that may block, and no clock of the runtime's goes on meanwhile.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Owner {
    /// Writes down that the store belongs to this daemon, which has the lock.
    pub(super) async fn begin(connection: &mut AnyConnection) -> Result<Owner, sqlx::Error> {
        let number = query_scalar(
            "UPDATE owner SET number = number + 1, batch = 0, host = $1, process = $2 RETURNING number",
        )
        .bind(sysinfo::System::host_name().unwrap_or_default())
        .bind(i64::from(std::process::id()))
        .fetch_one(connection)
        .await?;
        Ok(Owner {
            number,
            batch: 1,
            in_doubt: None,
            has_lock: true,
        })
    }

    /// The lock went with the connection.
    pub(super) fn lost_connection(&mut self) {
        self.has_lock = false;
    }

    /// Takes the lock again, if it went. What is left of the connection before may still have it; the number counts.
    pub(super) async fn hold(&mut self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        if !self.has_lock {
            self.has_lock = try_lock(connection).await?;
        }
        Ok(())
    }

    /// Whether the store is still this daemon's, in a transaction that then can write: nobody can replace it before the end.
    pub(super) async fn confirm(
        &mut self,
        transaction: &mut AnyConnection,
    ) -> Result<Standing, sqlx::Error> {
        let ours = query("UPDATE owner SET batch = $1 WHERE number = $2 AND batch < $1")
            .bind(self.batch)
            .bind(self.number)
            .execute(&mut *transaction)
            .await?;
        if ours.rows_affected() > 0 {
            self.in_doubt = None;
            return Ok(Standing::Write);
        }
        let (number, holder) = holder(transaction).await?;
        match self.in_doubt.take() {
            Some(outcomes) if number == self.number => Ok(Standing::Written(outcomes)),
            _ => Ok(Standing::Replaced(holder)),
        }
    }

    /// The same without anything to write.
    pub(super) async fn look(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Standing, sqlx::Error> {
        match holder(connection).await? {
            (number, _) if number == self.number => Ok(Standing::Write),
            (_, holder) => Ok(Standing::Replaced(holder)),
        }
    }

    /// Remembers what comes of the batch, before it is known whether that is kept.
    pub(super) fn commits(&mut self, outcomes: &[Outcome]) {
        self.in_doubt = Some(outcomes.to_vec());
    }

    /// Goes on to the next batch.
    pub(super) fn committed(&mut self) {
        self.in_doubt = None;
        self.batch += 1;
    }

    /// Gives the lock back, so that another daemon need not wait until the server has seen that the connection is closed.
    pub(super) async fn end(self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        query("SELECT pg_advisory_unlock($1)")
            .bind(LOCK)
            .execute(connection)
            .await?;
        Ok(())
    }
}

async fn try_lock(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(LOCK)
        .fetch_one(connection)
        .await
}

/// The number of the daemon that has the store, and who it is.
async fn holder(connection: &mut AnyConnection) -> Result<(i64, String), sqlx::Error> {
    let (number, host, process): (i64, String, i64) =
        query_as("SELECT number, host, process FROM owner")
            .fetch_one(connection)
            .await?;
    Ok((number, format!("process {process} on host {host}")))
}
