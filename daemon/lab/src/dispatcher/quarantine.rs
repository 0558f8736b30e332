//! The host's quarantine, which commands without a daemon, and those that measure beside it, use as well. Where several hosts
//! share the lab, the lab's store has it, and the file follows.

use jiff::Timestamp;

use crate::state::{LabState, QuarantineChange};
use layerlab_farm::quarantine::{Entry, Quarantine, QuarantineError, SharedQuarantine};

/// The host's quarantine; none in a lab that is played.
#[derive(Debug, Default)]
pub(super) struct HostQuarantine {
    file: Option<Quarantine>,
    /// What could not be written yet, in order. Until it is, the file knows less than the state.
    unwritten: Vec<QuarantineChange>,
    /// What the file said when the lab was told of it; nothing if it could not be read.
    told: Option<SharedQuarantine>,
}

/// What the file is to say, once the store has it.
pub(super) struct FileOfLab {
    lab: Vec<Entry>,
    told: SharedQuarantine,
}

impl HostQuarantine {
    pub(super) fn of(file: Quarantine) -> HostQuarantine {
        HostQuarantine {
            file: Some(file),
            ..HostQuarantine::default()
        }
    }

    /// Writes what has changed, and takes in what others have changed: a small file, read and written at once.
    pub(super) fn agree(&mut self, state: &mut LabState) {
        if state.kept.host.is_some() {
            // The lab's store has it.
            return;
        }
        self.unwritten.extend(state.take_quarantine_changes());
        let Some(file) = &self.file else {
            self.unwritten.clear();
            return;
        };
        while let Some(change) = self.unwritten.first() {
            if let Err(error) = write(file, change) {
                tracing::warn!(%error, "who is left alone cannot be kept yet");
                return;
            }
            self.unwritten.remove(0);
        }
        match file.list() {
            Ok(entries) => state.know_quarantine(entries),
            Err(error) => tracing::warn!(%error, "who is left alone cannot be read"),
        }
    }

    /// Tells the lab, which is this host's to change, what was decided here without its daemon.
    pub(super) fn tell_lab(&mut self, state: &mut LabState, now: Timestamp) {
        let Some(file) = &self.file else { return };
        match file.shared() {
            Ok(said) => {
                state.tell_lab(&said, now);
                self.told = Some(said);
            }
            Err(error) => {
                tracing::warn!(%error, "who is left alone cannot be read");
                self.told = None;
            }
        }
    }

    /// What the file is to say once the store has what the lab decides now; nothing if it says that.
    pub(super) fn behind(&mut self, state: &LabState, now: Timestamp) -> Option<FileOfLab> {
        let told = self.told.take()?;
        let lab = state.quarantined_by_lab(now);
        let is_true = told.of_lab == lab && told.of_host.is_empty() && told.lifted.is_empty();
        (!is_true).then_some(FileOfLab { lab, told })
    }

    /// Has the file say what the store has. If it cannot be written, that is tried again in the next turn.
    pub(super) fn follow_lab(&self, FileOfLab { lab, told }: FileOfLab) {
        if let Some(file) = &self.file
            && let Err(error) = file.follow_lab(lab, &told)
        {
            tracing::warn!(%error, "who is left alone cannot be kept on this host yet");
        }
    }
}

fn write(file: &Quarantine, change: &QuarantineChange) -> Result<(), QuarantineError> {
    match change {
        QuarantineChange::Put(entry) => file.put(entry.clone()),
        QuarantineChange::Lift(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            // Who only rested is not in it.
            file.lift_all(&names).map(|_| ())
        }
    }
}
