//! Who may write to a store on a server: the hosts that hold leases, each with one daemon.
//!
//! A daemon holds a lock of its host's that its connection has, so that a second one of the same host does not begin. A connection
//! can be lost while the daemon lives, and the lock with it. Therefore each daemon that begins has a number, one more than the one
//! before it, and writes only while that number stands in its host's row: who was replaced, or whose runs were given to other hosts,
//! cannot write any more, however late it comes.

use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use sqlx::{AnyConnection, query, query_as, query_scalar};

use super::error::StoreError;
use super::lost::LostLease;
use super::obstacle::Outcome;
use super::place::StorePlace;
use super::schema;

/// The advisory lock of a lab's tables, which daemons share and who changes tables has alone; each database has locks of its own.
const TABLES: i64 = i64::from_be_bytes(*b"layerlab");

/// The class of the advisory locks of hosts, whose numbers are those of the hosts' rows.
const HOSTS: i32 = i32::from_be_bytes(*b"host");

/// How long a daemon that has just been killed may still seem to have a lock.
const ENDING: Duration = Duration::from_secs(3);

/// How long a host that nothing is heard of has its lease. A daemon that has nothing to write looks in four times as often.
pub(super) const LEASE: Duration = Duration::from_secs(120);

/// A host that may write, as long as it has its lease.
pub(super) struct HostLease {
    /// Of its row.
    id: i64,
    number: i64,
    /// The number of the batch that is to be written now.
    batch: i64,
    /// What came of that batch, if it was written and nothing is known of the end.
    in_doubt: Option<Vec<Outcome>>,
    has_locks: bool,
}

/// What a transaction is to do.
pub(super) enum Standing {
    /// Write the batch.
    Write,
    /// Nothing: the batch was written before, with these outcomes.
    Written(Vec<Outcome>),
    /// Nothing ever: the lease is lost.
    Lost(LostLease),
}

/// Brings the tables up to date, which no daemon may be working with then, and sees that they stay so.
pub(super) async fn enter(
    place: &StorePlace,
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::of_database(place, &error);
    let until = Instant::now() + ENDING;
    loop {
        if schema::is_up_to_date(place, connection).await? {
            if share_tables(connection).await.map_err(failed)? {
                return schema::prepare(place, connection).await;
            }
        } else if lock(connection, "SELECT pg_try_advisory_lock($1)", TABLES)
            .await
            .map_err(failed)?
        {
            schema::prepare(place, connection).await?;
            share_tables(connection).await.map_err(failed)?;
            let unlocked = lock(connection, "SELECT pg_advisory_unlock($1)", TABLES);
            unlocked.await.map_err(failed)?;
            return Ok(());
        }
        if Instant::now() > until {
            return Err(StoreError::InUse {
                place: place.clone(),
            });
        }
        wait();
    }
}

/// This is a thread that may block, and no clock of the runtime's goes on meanwhile.
fn wait() {
    std::thread::sleep(Duration::from_millis(20));
}

async fn share_tables(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    lock(connection, "SELECT pg_try_advisory_lock_shared($1)", TABLES).await
}

async fn lock(
    connection: &mut AnyConnection,
    question: &'static str,
    key: i64,
) -> Result<bool, sqlx::Error> {
    query_scalar(question).bind(key).fetch_one(connection).await
}

impl HostLease {
    /// Takes the lease of the host as which the store is opened; whoever has it is named.
    pub(super) async fn begin(
        place: &StorePlace,
        connection: &mut AnyConnection,
    ) -> Result<HostLease, StoreError> {
        let failed = |error: sqlx::Error| StoreError::of_database(place, &error);
        let name = place.host();
        let id = row(connection, &name).await.map_err(failed)?;
        let until = Instant::now() + ENDING;
        while !try_lock(connection, id).await.map_err(failed)? {
            if Instant::now() > until {
                let holder = holder(connection, id).await.ok();
                return Err(StoreError::TakenOnServer {
                    place: place.clone(),
                    host: name,
                    holder: holder.and_then(|(_, who)| who),
                });
            }
            wait();
        }
        let number = query_scalar(
            "UPDATE hosts SET number = number + 1, batch = 0, machine = $2, process = $3, version = $4, devices = '[]', \
             zone = $6, seen_at = lab_time(), lease_until = lab_time() + $5 WHERE id = $1 RETURNING number",
        )
        .bind(id)
        .bind(sysinfo::System::host_name().unwrap_or_default())
        .bind(i64::from(std::process::id()))
        .bind(env!("CARGO_PKG_VERSION"))
        .bind(LEASE.as_secs().cast_signed())
        .bind(TimeZone::system().iana_name().unwrap_or_default())
        .fetch_one(connection)
        .await
        .map_err(failed)?;
        Ok(HostLease {
            id,
            number,
            batch: 1,
            in_doubt: None,
            has_locks: true,
        })
    }

    /// The number of the host's row.
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// The locks went with the connection.
    pub(super) fn lost_connection(&mut self) {
        self.has_locks = false;
    }

    /// Takes the locks again, if they went. What is left of the connection before may still have them; the number counts.
    pub(super) async fn hold(&mut self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        if !self.has_locks {
            self.has_locks =
                share_tables(connection).await? && try_lock(connection, self.id).await?;
        }
        Ok(())
    }

    /// Whether this host still has its lease, which is renewed, in a transaction that then can write: nobody can take it before
    /// the end.
    pub(super) async fn confirm(
        &mut self,
        transaction: &mut AnyConnection,
    ) -> Result<Standing, sqlx::Error> {
        let ours = query(
            "UPDATE hosts SET batch = $1, seen_at = lab_time(), lease_until = lab_time() + $4 \
             WHERE id = $2 AND number = $3 AND batch < $1",
        )
        .bind(self.batch)
        .bind(self.id)
        .bind(self.number)
        .bind(LEASE.as_secs().cast_signed())
        .execute(&mut *transaction)
        .await?;
        if ours.rows_affected() > 0 {
            self.in_doubt = None;
            return Ok(Standing::Write);
        }
        let (number, holder) = holder(transaction, self.id).await?;
        match self.in_doubt.take() {
            Some(outcomes) if number == self.number => Ok(Standing::Written(outcomes)),
            _ => Ok(Standing::Lost(LostLease::of(holder))),
        }
    }

    /// The same without anything to write.
    pub(super) async fn look(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Standing, sqlx::Error> {
        let ours = query(
            "UPDATE hosts SET seen_at = lab_time(), lease_until = lab_time() + $3 WHERE id = $1 AND number = $2",
        )
        .bind(self.id)
        .bind(self.number)
        .bind(LEASE.as_secs().cast_signed())
        .execute(&mut *connection)
        .await?;
        match ours.rows_affected() {
            0 => {
                let (_, holder) = holder(connection, self.id).await?;
                Ok(Standing::Lost(LostLease::of(holder)))
            }
            _ => Ok(Standing::Write),
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

    /// Gives the lease and the locks back, so that another daemon need not wait until the server has seen that the connection is
    /// closed.
    pub(super) async fn end(self, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
        query(
            "UPDATE hosts SET process = 0, devices = '[]', seen_at = lab_time(), lease_until = lab_time() \
             WHERE id = $1 AND number = $2",
        )
        .bind(self.id)
        .bind(self.number)
        .execute(&mut *connection)
        .await?;
        query("SELECT pg_advisory_unlock_all()")
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// The number of the row of the host `name`, which is made if there is none.
async fn row(connection: &mut AnyConnection, name: &str) -> Result<i64, sqlx::Error> {
    query(
        "INSERT INTO hosts (name, number, batch, machine, process, version, seen_at, lease_until, devices) \
         VALUES ($1, 0, 0, '', 0, '', 0, 0, '[]') ON CONFLICT (name) DO NOTHING",
    )
    .bind(name)
    .execute(&mut *connection)
    .await?;
    query_scalar("SELECT id FROM hosts WHERE name = $1")
        .bind(name)
        .fetch_one(connection)
        .await
}

async fn try_lock(connection: &mut AnyConnection, id: i64) -> Result<bool, sqlx::Error> {
    query_scalar("SELECT pg_try_advisory_lock($1, CAST($2 AS INTEGER))")
        .bind(HOSTS)
        .bind(id)
        .fetch_one(connection)
        .await
}

/// The number of the daemon that has the lease, and who it is if there is one.
async fn holder(
    connection: &mut AnyConnection,
    id: i64,
) -> Result<(i64, Option<String>), sqlx::Error> {
    let (number, machine, process): (i64, String, i64) =
        query_as("SELECT number, machine, process FROM hosts WHERE id = $1")
            .bind(id)
            .fetch_one(connection)
            .await?;
    let holder = (process != 0).then(|| format!("process {process} on {machine}"));
    Ok((number, holder))
}
