//! Phones that are left alone for a while: a small file that outlives layerlab, changed under a lock
//! and replaced in one rename.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::folders::write_whole;

/// The version of the file.
const VERSION: u32 = 1;

/// One phone in quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The phone's serial, or the name by which it is reached.
    pub phone: String,
    /// Why it is left alone.
    pub reason: String,
    /// When the quarantine began.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// When the phone may be used again.
    #[serde(with = "time::serde::rfc3339")]
    pub until: OffsetDateTime,
}

impl Entry {
    /// When the phone may be used again, for people, by this host's clock: `Sat 21 Nov 2026 07:00`.
    pub fn until_here(&self) -> String {
        self.until_in(&TimeZone::system())
    }

    fn until_in(&self, zone: &TimeZone) -> String {
        match Timestamp::from_second(self.until.unix_timestamp()) {
            Ok(until) => {
                let until = until.to_zoned(zone.clone());
                until.strftime("%a %-d %b %Y %H:%M").to_string()
            }
            // A clock that cannot tell so late a time is of no use.
            Err(_) => "it is lifted".to_owned(),
        }
    }
}

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: u32,
    phones: Vec<Entry>,
}

/// The quarantine of this host.
#[derive(Clone, Debug)]
pub struct Quarantine {
    path: PathBuf,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {source}", path.display())]
pub struct QuarantineError {
    /// The file or folder that failed.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Quarantine {
    /// The quarantine kept in the folder `state`.
    pub fn in_folder(state: &Path) -> Quarantine {
        Quarantine {
            path: state.join("quarantine.json"),
        }
    }

    /// Who is in quarantine now.
    pub fn list(&self) -> Result<Vec<Entry>, QuarantineError> {
        let now = OffsetDateTime::now_utc();
        let entries = self.read()?.into_iter();
        Ok(entries.filter(|entry| entry.until > now).collect())
    }

    /// The entry of the phone that goes by any of `names`.
    pub fn of(&self, names: &[&str]) -> Result<Option<Entry>, QuarantineError> {
        let entries = self.list()?.into_iter();
        Ok(entries
            .rev()
            .find(|entry| names.contains(&entry.phone.as_str())))
    }

    /// Puts `phone` into quarantine; an earlier entry of it is replaced.
    pub fn add(
        &self,
        phone: &str,
        reason: &str,
        period: Duration,
    ) -> Result<Entry, QuarantineError> {
        let since = whole_second(OffsetDateTime::now_utc());
        let entry = Entry {
            phone: phone.to_owned(),
            reason: reason.to_owned(),
            since,
            until: since
                .saturating_add(time::Duration::try_from(period).unwrap_or(time::Duration::MAX)),
        };
        self.change(|phones| {
            phones.retain(|other| other.phone != entry.phone);
            phones.push(entry.clone());
        })?;
        Ok(entry)
    }

    /// Lifts the quarantine of `phone`; false if it was in none.
    pub fn lift(&self, phone: &str) -> Result<bool, QuarantineError> {
        let mut lifted = false;
        self.change(|phones| {
            let before = phones.len();
            phones.retain(|entry| entry.phone != phone);
            lifted = phones.len() < before;
        })?;
        Ok(lifted)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Result<(), QuarantineError> {
        let lock = self.path.with_extension("lock");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| QuarantineError { path, source }
        };
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed(folder))?;
        }
        let file = File::create(&lock).map_err(failed(&lock))?;
        // Held for two file operations: whoever has it gives it back at once.
        file.lock().map_err(failed(&lock))?;
        let now = OffsetDateTime::now_utc();
        let mut phones = self.read()?;
        phones.retain(|entry| entry.until > now);
        change(&mut phones);
        let document = Document {
            version: VERSION,
            phones,
        };
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        write_whole(&self.path, text.as_bytes()).map_err(failed(&self.path))
    }

    fn read(&self) -> Result<Vec<Entry>, QuarantineError> {
        let failed = |source| QuarantineError {
            path: self.path.clone(),
            source,
        };
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(failed)?,
        };
        let document: Document = serde_json::from_slice(&text)
            .map_err(|error| failed(io::Error::other(format!("{error}; remove the file"))))?;
        Ok(document.phones)
    }
}

/// Fractions of seconds would only make the file hard to read.
fn whole_second(instant: OffsetDateTime) -> OffsetDateTime {
    instant.replace_nanosecond(0).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_entry_survives_and_is_lifted() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = "; $(reboot) ' \" \n .. \u{1f4f1}";
        let entry = Quarantine::in_folder(folder.path())
            .add(name, "it sulks", HOUR)
            .expect("room");
        // Another process, later.
        let again = Quarantine::in_folder(folder.path());
        assert_eq!(again.list().expect("a file"), std::slice::from_ref(&entry));
        assert_eq!(again.of(&["other", name]).expect("a file"), Some(entry));
        assert!(again.lift(name).expect("room"));
        assert!(!again.lift(name).expect("room"));
        assert_eq!(again.list().expect("a file"), []);
    }

    #[test]
    fn people_read_its_end_by_their_own_clock() {
        let entry = Entry {
            phone: "a".to_owned(),
            reason: "it sulks".to_owned(),
            since: OffsetDateTime::UNIX_EPOCH,
            until: OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000),
        };
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        assert_eq!(entry.until_in(&berlin), "Fri 4 Oct 2024 02:00");
    }

    #[test]
    fn an_entry_ends_by_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let quarantine = Quarantine::in_folder(folder.path());
        quarantine
            .add("a", "it sulks", Duration::ZERO)
            .expect("room");
        assert_eq!(quarantine.of(&["a"]).expect("a file"), None);
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("quarantine.json"), "{").expect("room");
        let error = Quarantine::in_folder(folder.path())
            .list()
            .expect_err("no JSON");
        assert!(error.to_string().contains("quarantine.json"), "{error}");
    }
}
