//! Phones that are left alone for a while: a small file that outlives layerlab, changed under a lock
//! and replaced in one rename. On a host that shares its lab with others it also says what the lab says, and keeps what was
//! decided here until the lab knows it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::folders::{make_private, write_whole};

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
    /// Whose decision it is, for a person: of an entry that a lab of several hosts has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Entry {
    /// Why the phone is left alone and, where that is known, by whose decision.
    pub fn why(&self) -> String {
        match &self.by {
            None => self.reason.clone(),
            Some(by) => format!("{} (by {by})", self.reason),
        }
    }

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

/// A phone that a lab of several hosts has in quarantine, and that was lifted here while the lab was not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// The phone, as the lab's entry names it.
    pub phone: String,
    /// When it was lifted.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// When its quarantine would have ended.
    #[serde(with = "time::serde::rfc3339")]
    pub until: OffsetDateTime,
}

/// What the file says on a host that shares its lab with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedQuarantine {
    /// What the lab said last.
    pub of_lab: Vec<Entry>,
    /// What was put into quarantine here since.
    pub of_host: Vec<Entry>,
    /// What of the lab's was lifted here since.
    pub lifted: Vec<Lifted>,
}

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: u32,
    phones: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lifted: Vec<Lifted>,
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
        let entries = self.read()?.phones.into_iter();
        Ok(entries.filter(|entry| entry.until > now).collect())
    }

    /// The same with what the lab, which this host shares with others, does not know yet.
    pub fn shared(&self) -> Result<SharedQuarantine, QuarantineError> {
        let now = OffsetDateTime::now_utc();
        let Document {
            mut phones, lifted, ..
        } = self.read()?;
        phones.retain(|entry| entry.until > now);
        let (of_lab, of_host) = phones.into_iter().partition(|entry| entry.by.is_some());
        let lifted = lifted.into_iter().filter(|lifted| lifted.until > now);
        Ok(SharedQuarantine {
            of_lab,
            of_host,
            lifted: lifted.collect(),
        })
    }

    /// Says what the lab says, which knows by now what this host had decided by itself when it was `known`. What was decided
    /// since then stays.
    pub fn follow_lab(
        &self,
        lab: Vec<Entry>,
        known: &SharedQuarantine,
    ) -> Result<(), QuarantineError> {
        self.change(|document| {
            let mut phones = lab;
            let new = document.phones.drain(..);
            phones.extend(new.filter(|entry| entry.by.is_none() && !known.of_host.contains(entry)));
            document.phones = phones;
            (document.lifted).retain(|lifted| !known.lifted.contains(lifted));
        })
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
            by: None,
        };
        self.put(entry.clone())?;
        Ok(entry)
    }

    /// Puts a phone into quarantine as `entry` says; an earlier entry of it is replaced.
    pub fn put(&self, entry: Entry) -> Result<(), QuarantineError> {
        self.change(|document| {
            (document.phones).retain(|other| other.phone != entry.phone);
            document.phones.push(entry);
        })
    }

    /// Lifts the quarantine of `phone`; false if it was in none.
    pub fn lift(&self, phone: &str) -> Result<bool, QuarantineError> {
        self.lift_all(&[phone])
    }

    /// Lifts the quarantine of the phone that goes by all of `names`; false if it was in none. A lab of several hosts that has
    /// it in quarantine is told by the next daemon.
    pub fn lift_all(&self, names: &[&str]) -> Result<bool, QuarantineError> {
        let mut is_lifted = false;
        let at = whole_second(OffsetDateTime::now_utc());
        self.change(|document| {
            let is_meant = |entry: &mut Entry| names.contains(&entry.phone.as_str());
            for entry in document.phones.extract_if(.., is_meant) {
                is_lifted = true;
                if entry.by.is_some() {
                    document.lifted.push(Lifted {
                        phone: entry.phone,
                        at,
                        until: entry.until,
                    });
                }
            }
        })?;
        Ok(is_lifted)
    }

    fn change(&self, change: impl FnOnce(&mut Document)) -> Result<(), QuarantineError> {
        let lock = self.path.with_extension("lock");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| QuarantineError { path, source }
        };
        if let Some(folder) = self.path.parent() {
            make_private(folder).map_err(failed(folder))?;
        }
        let file = File::create(&lock).map_err(failed(&lock))?;
        // Held for two file operations: whoever has it gives it back at once.
        file.lock().map_err(failed(&lock))?;
        let now = OffsetDateTime::now_utc();
        let mut document = self.read()?;
        document.version = VERSION;
        document.phones.retain(|entry| entry.until > now);
        document.lifted.retain(|lifted| lifted.until > now);
        change(&mut document);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        write_whole(&self.path, text.as_bytes()).map_err(failed(&self.path))
    }

    fn read(&self) -> Result<Document, QuarantineError> {
        let failed = |source| QuarantineError {
            path: self.path.clone(),
            source,
        };
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Document {
                    version: VERSION,
                    phones: Vec::new(),
                    lifted: Vec::new(),
                });
            }
            text => text.map_err(failed)?,
        };
        serde_json::from_slice(&text)
            .map_err(|error| failed(io::Error::other(format!("{error}; remove the file"))))
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
            by: None,
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
    fn what_a_lab_says_replaces_what_it_said_and_leaves_what_was_decided_since() {
        let folder = tempfile::tempdir().expect("a folder");
        let quarantine = Quarantine::in_folder(folder.path());
        let of_lab = |phone: &str| Entry {
            by: Some("host `rack-2`".to_owned()),
            ..quarantine.add(phone, "it fell", HOUR).expect("room")
        };
        let (a, b) = (of_lab("a"), of_lab("b"));
        let own = quarantine.add("own", "it sulks", HOUR).expect("room");
        quarantine.lift_all(&["a", "b"]).expect("room");
        let known = quarantine.shared().expect("a file");
        assert_eq!(known.of_host, std::slice::from_ref(&own));
        assert_eq!(known.lifted, [], "no lab knew of them");

        let later = quarantine.add("later", "it sulks", HOUR).expect("room");
        let told = Entry {
            by: Some("host `rack-1`".to_owned()),
            ..own
        };
        let lab = vec![a.clone(), b.clone(), told.clone()];
        quarantine.follow_lab(lab.clone(), &known).expect("room");
        let known = quarantine.shared().expect("a file");
        assert_eq!((known.of_lab, known.of_host), (lab, vec![later.clone()]));

        // Without a daemon, which tells the lab of it.
        assert!(quarantine.lift_all(&["a"]).expect("room"));
        let known = quarantine.shared().expect("a file");
        assert_eq!(known.of_lab, [b.clone(), told]);
        assert_eq!(known.lifted.len(), 1);
        assert_eq!(
            (known.lifted[0].phone.as_str(), known.lifted[0].until),
            ("a", a.until)
        );
        quarantine
            .follow_lab(vec![b.clone()], &known)
            .expect("room");
        let known = quarantine.shared().expect("a file");
        assert_eq!(
            (known.of_lab, known.of_host, known.lifted),
            (vec![b], vec![], vec![])
        );
        assert_eq!(quarantine.list().expect("a file").len(), 1);
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
