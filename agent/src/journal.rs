//! The journal of one run: an append-only file of JSON lines. A lost link or a killed agent loses nothing.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use layerlab_protocol::{Entry, Event, decode, encode};

/// A run's journal, in memory and on storage.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// The file's length up to which it holds whole entries.
    length: u64,
    entries: Vec<Entry>,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The storage refused.
    #[error("cannot {operation} the journal {}: {source}; free some storage or check the folder's permissions", path.display())]
    Storage {
        /// What was tried.
        operation: &'static str,
        /// The journal's file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The journal has an unreadable entry before its end, which a crash cannot explain.
    #[error("the journal {} is damaged at entry {sequence}; move the file away to start its run anew", path.display())]
    Damaged {
        /// The journal's file.
        path: PathBuf,
        /// The number that the unreadable entry should have.
        sequence: u64,
    },
}

impl Journal {
    /// Opens the journal at `path`, or starts it. A last line that a crash cut short is removed.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let failed = |operation| {
            move |source| JournalError::Storage {
                operation,
                path: path.to_owned(),
                source,
            }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(failed("open"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read"))?;
        // What follows the last line feed was being written when the agent died.
        let whole = bytes
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |end| end + 1);
        let mut entries = Vec::new();
        for line in bytes[..whole].split_inclusive(|&b| b == b'\n') {
            let sequence = entries.len() as u64 + 1;
            let entry = std::str::from_utf8(line)
                .ok()
                .and_then(|line| decode::<Entry>(line).ok())
                .filter(|entry| entry.sequence == sequence)
                .ok_or_else(|| JournalError::Damaged {
                    path: path.to_owned(),
                    sequence,
                })?;
            entries.push(entry);
        }
        let length = whole as u64;
        file.set_len(length).map_err(failed("repair"))?;
        Ok(Journal {
            file,
            path: path.to_owned(),
            length,
            entries,
        })
    }

    /// All entries so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends `event` as the next entry. When it returns an error the journal is as it was before.
    pub fn append(&mut self, order: u32, event: Event) -> Result<(), JournalError> {
        let entry = Entry {
            sequence: self.entries.len() as u64 + 1,
            order,
            event,
        };
        let line = encode(&entry);
        let mut written = self.file.write_all(line.as_bytes());
        // What is done again may be lost with the phone's power: samples, answers, loading, warming up. What was
        // promised (an accepted order) or will not be repeated (an end) may not.
        let repeatable = matches!(
            entry.event,
            Event::Sample { .. }
                | Event::Answered { .. }
                | Event::Judged { .. }
                | Event::FramesAnswered { .. }
                | Event::TensorsPacked { .. }
                | Event::Loaded { .. }
                | Event::Warm { .. }
        );
        if written.is_ok() && !repeatable {
            written = self.file.sync_data();
        }
        if let Err(source) = written {
            // A failure to cut the half-written line off shows when the journal is next opened.
            let _ = self.file.set_len(self.length);
            return Err(JournalError::Storage {
                operation: "write to",
                path: self.path.clone(),
                source,
            });
        }
        self.length += line.len() as u64;
        self.entries.push(entry);
        Ok(())
    }

    /// Removes the journal from storage.
    pub fn delete(self) -> Result<(), JournalError> {
        std::fs::remove_file(&self.path).map_err(|source| JournalError::Storage {
            operation: "delete",
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::{Nanos, Segment};

    fn sample(index: u64) -> Event {
        Event::Sample {
            block: 0,
            index,
            segment: Segment::single(1),
            started_ns: Nanos::from_nanos(10 * index),
            duration_ns: Nanos::from_nanos(7),
        }
    }

    fn with_two_entries(path: &Path) {
        let mut journal = Journal::open(path).expect("a new journal");
        journal.append(1, sample(0)).expect("room");
        journal.append(1, sample(1)).expect("room");
    }

    #[test]
    fn entries_survive_reopening_and_their_numbers_go_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        with_two_entries(&path);
        let mut journal = Journal::open(&path).expect("the same journal");
        journal.append(1, Event::Finished).expect("room");
        let sequences: Vec<u64> = journal.entries().iter().map(|e| e.sequence).collect();
        assert_eq!(sequences, [1, 2, 3]);
    }

    #[test]
    fn cut_at_any_byte_it_keeps_every_whole_entry_and_accepts_new_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        with_two_entries(&path);
        let bytes = std::fs::read(&path).expect("written");
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).expect("room");
            let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
            let mut journal = Journal::open(&path).expect("a torn end is no damage");
            assert_eq!(journal.entries().len(), whole, "cut at {cut}");
            journal.append(1, sample(9)).expect("room");
            drop(journal);
            assert_eq!(
                Journal::open(&path).expect("repaired").entries().len(),
                whole + 1
            );
        }
    }

    #[test]
    fn damage_before_the_end_is_refused_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        with_two_entries(&path);
        let text = std::fs::read_to_string(&path)
            .expect("written")
            .replacen("sequence", "sequins", 1);
        std::fs::write(&path, text).expect("room");
        let error = Journal::open(&path).expect_err("damaged");
        assert!(
            matches!(error, JournalError::Damaged { sequence: 1, .. }),
            "{error}"
        );
    }
}
