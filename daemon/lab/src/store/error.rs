//! What goes wrong with the lab's store.

use std::io;
use std::path::PathBuf;

use sqlx::migrate::MigrateError;

use super::cause::{Cause, remedy, sentence};
use super::lost::LostLease;
use super::place::StorePlace;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A lab has one daemon.
    #[error(
        "another layerlab daemon{} has the lab in {}; stop it first, or use another LAYERLAB_STATE",
        process.map(|id| format!(" (process {id})")).unwrap_or_default(),
        folder.display()
    )]
    Taken {
        /// The lab's folder.
        folder: PathBuf,
        /// The other daemon, if it has said so.
        process: Option<u32>,
    },
    /// On a server, a host of a lab has one daemon.
    #[error(
        "another layerlab daemon{} is host `{host}` of the lab in {place}; stop it first, or give this one another name: `host` in its configuration",
        holder.as_ref().map(|who| format!(" ({who})")).unwrap_or_default()
    )]
    TakenOnServer {
        /// Where the store is.
        place: StorePlace,
        /// The host's name.
        host: String,
        /// The other daemon's process and machine, if it has said so.
        holder: Option<String>,
    },
    /// Tables are not changed while daemons work with them.
    #[error(
        "the tables in {place} are of another version of layerlab, whose daemons work with them; stop those first"
    )]
    InUse {
        /// Where the store is.
        place: StorePlace,
    },
    /// Another daemon began while this one could not reach the server.
    #[error(
        "another layerlab daemon ({by}) is host `{host}` of the lab in {place} now, so that this one may not change it any more; let one of them run"
    )]
    Replaced {
        /// Where the store is.
        place: StorePlace,
        /// The host's name.
        host: String,
        /// The other daemon's process and machine.
        by: String,
    },
    /// The host was away from the server for longer than `host-patience`.
    #[error(
        "host `{host}` was away from {place} for so long that its runs were given to other hosts, and may not change the lab as it knew it; start `layerlab daemon` again"
    )]
    Released {
        /// Where the store is.
        place: StorePlace,
        /// The host's name.
        host: String,
    },
    /// Another host changed the lab between a change of this one's and its end, which a lost connection hid.
    #[error(
        "host `{host}` lost its connection to {place} in the middle of a change, and another host came first; start `layerlab daemon` again"
    )]
    Overtaken {
        /// Where the store is.
        place: StorePlace,
        /// The host's name.
        host: String,
    },
    /// There is nothing to read.
    #[error("no lab has been here yet; start `layerlab daemon`")]
    Missing,
    /// Its tables have changed since this program was made.
    #[error(
        "{place} was written by a newer layerlab (its tables have version {version}); use that one, or {}",
        place.another()
    )]
    Newer {
        /// Where the store is.
        place: StorePlace,
        /// The version of its tables.
        version: i64,
    },
    /// One of its records has changed since this program was made.
    #[error(
        "{place} holds {what} that was written by a newer layerlab (version {version} of its kind); update layerlab, or use {}",
        place.another()
    )]
    NewerRecord {
        /// Where the store is.
        place: StorePlace,
        /// What the record is called, with its article.
        what: &'static str,
        /// The version of its body.
        version: u32,
    },
    /// Its tables have not been changed to what this program reads.
    #[error(
        "{place} was written by an older layerlab; start `layerlab daemon`, which brings it up to date"
    )]
    Older {
        /// Where the store is.
        place: StorePlace,
    },
    /// It is no store, or no longer a whole one.
    #[error(
        "{place} is damaged ({reason}); restore it from a backup, or move it away to begin a new lab"
    )]
    Damaged {
        /// Where the store is.
        place: StorePlace,
        /// What is wrong.
        reason: String,
    },
    /// The folder, or the lock in it, cannot be made.
    #[error("cannot use {} for the lab: {source}", path.display())]
    Folder {
        /// The folder or the lock.
        path: PathBuf,
        /// What the system said about the folder.
        source: io::Error,
    },
    /// The database cannot be opened or read.
    #[error("the lab cannot use {place}: {reason}; {remedy}")]
    Unusable {
        /// Where the store is.
        place: StorePlace,
        /// What the database said.
        reason: String,
        /// What may help.
        remedy: &'static str,
    },
    /// Its server does not answer, or not now.
    #[error("the lab cannot reach {place}: {reason}; {remedy}")]
    Away {
        /// Where the store is.
        place: StorePlace,
        /// What the system or the server said.
        reason: String,
        /// What may help.
        remedy: &'static str,
    },
    /// Not every text can be kept there.
    #[error(
        "the database {place} keeps texts as {encoding}, and not every one can be; make one with `createdb --encoding UTF8 --template template0`"
    )]
    Encoding {
        /// Where the store is.
        place: StorePlace,
        /// What PostgreSQL calls the encoding.
        encoding: String,
    },
    /// It would contradict what was kept before. Nothing of the call was kept.
    #[error("the lab's store refuses what contradicts it: {reason}; this is a bug of layerlab")]
    Refused {
        /// What is wrong.
        reason: String,
    },
    /// Nothing is written any more.
    #[error("the lab's store no longer works; start `layerlab daemon` again")]
    Gone,
}

impl StoreError {
    pub(super) fn of_lease(place: &StorePlace, lost: LostLease) -> StoreError {
        let (place, host) = (place.clone(), place.host());
        match lost {
            LostLease::Replaced(by) => StoreError::Replaced { place, host, by },
            LostLease::Released => StoreError::Released { place, host },
            LostLease::Overtaken => StoreError::Overtaken { place, host },
        }
    }

    pub(super) fn of_database(place: &StorePlace, error: &sqlx::Error) -> StoreError {
        let place = place.clone();
        let reason = sentence(error);
        let remedy = remedy(error);
        match Cause::of(error) {
            Cause::Damage => StoreError::Damaged { place, reason },
            Cause::Connection if place.is_on_server() => StoreError::Away {
                place,
                reason,
                remedy,
            },
            _ => StoreError::Unusable {
                place,
                reason,
                remedy,
            },
        }
    }

    pub(super) fn of_migration(place: &StorePlace, error: MigrateError) -> StoreError {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                StoreError::of_database(place, &error)
            }
            MigrateError::VersionMissing(version) => StoreError::Newer {
                place: place.clone(),
                version,
            },
            other => StoreError::Damaged {
                place: place.clone(),
                reason: other.to_string(),
            },
        }
    }

    pub(super) fn unreadable(
        place: &StorePlace,
        what: &str,
        error: &serde_json::Error,
    ) -> StoreError {
        StoreError::Damaged {
            place: place.clone(),
            reason: format!("{what} is not as layerlab writes it: {error}"),
        }
    }
}
