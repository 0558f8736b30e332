//! The host's quarantine, which commands without a daemon, and those that measure beside it, use as well.

use crate::state::{LabState, QuarantineChange};
use layerlab_farm::quarantine::{Quarantine, QuarantineError};

/// The host's quarantine; none in a lab that is played.
#[derive(Debug, Default)]
pub(super) struct HostQuarantine {
    file: Option<Quarantine>,
    /// What could not be written yet, in order. Until it is, the file knows less than the state.
    unwritten: Vec<QuarantineChange>,
}

impl HostQuarantine {
    pub(super) fn of(file: Quarantine) -> HostQuarantine {
        HostQuarantine {
            file: Some(file),
            unwritten: Vec::new(),
        }
    }

    /// Writes what has changed, and takes in what others have changed: a small file, read and written at once.
    pub(super) fn agree(&mut self, state: &mut LabState) {
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
