//! What can change of what the lab keeps.

use layerlab_protocol::{Entry, RunId};

use super::{Device, DeviceQuarantine, Event, Job, JobState, Reservation, Run, RunState};

/// Something that is to be kept. A record that is there already is replaced.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a call has few changes, and they do not live long"
)]
pub enum RecordChange {
    /// A job that is new or has changed.
    Job(Job),
    /// A run that is new or has changed.
    Run(Run),
    /// A device that is new or has changed.
    Device(Device),
    /// The names of the devices that this host has now, for other hosts of the lab.
    DevicesHere(Vec<String>),
    /// A reservation that is new or has changed.
    Reservation(Reservation),
    /// The reservation of this number is over.
    ReservationGone(i64),
    /// A device that all hosts leave alone, or that is left alone otherwise than before; only where several share the lab.
    Quarantine(DeviceQuarantine),
    /// The device of this serial is left alone no more.
    QuarantineGone(String),
    /// An event. What happened does not change: another event of the same number is refused.
    Event(Event),
    /// What a run's journal goes on with. Entries that were kept before may come again.
    Entries {
        /// The name of the run's journal.
        run: RunId,
        /// The entries, in order.
        entries: Vec<Entry>,
    },
    /// The journal of this run is needed no more.
    JournalGone(RunId),
}

impl RecordChange {
    /// Whether it changes what other hosts of the lab decide on, too: anything but a journal.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(
            self,
            RecordChange::Entries { .. } | RecordChange::JournalGone(_)
        )
    }

    /// Whether other hosts of the lab may have something to do because of it, which they are to decide at once. What becomes of
    /// a run on a device of this host's is nothing for them to decide: they learn of it with their next turn.
    pub(crate) fn concerns_other_hosts(&self) -> bool {
        match self {
            // That of a job which was cancelled or has expired may be in progress on theirs.
            RecordChange::Job(job) => !matches!(job.state, JobState::Done | JobState::Failed),
            // One that waits may be another's to begin, or to go on with.
            RecordChange::Run(run) => matches!(run.state, RunState::Queued | RunState::Parked),
            RecordChange::DevicesHere(_)
            | RecordChange::Quarantine(_)
            | RecordChange::QuarantineGone(_)
            | RecordChange::Reservation(_)
            | RecordChange::ReservationGone(_) => true,
            RecordChange::Device(_)
            | RecordChange::Event(_)
            | RecordChange::Entries { .. }
            | RecordChange::JournalGone(_) => false,
        }
    }
}
