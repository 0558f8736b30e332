//! What errors mean for a run, for its device and for this host.

use std::io::Write;
use std::path::Path;

use layerlab_protocol::{FailureKind, Refusal};

use super::OpenDevice;
use crate::bench::Assignment;
use crate::retention::artifacts_of_lab;
use crate::state::StayOutcome;
use layerlab_campaign::{CampaignError, LinkCampaignError, RunError};
use layerlab_farm::adb::{AdbError, Fault};
use layerlab_farm::artifacts;
use layerlab_farm::{AdbLink, ConnectionError, LinkError};

/// What an error means for the run and for the device.
pub(super) fn outcome(error: CampaignError, assignment: &Assignment) -> StayOutcome {
    let reason = error.to_string();
    match error {
        CampaignError::Run(RunError::Parked) => StayOutcome::Parked,
        CampaignError::Run(RunError::Gap { .. } | RunError::NeverStarted { .. }) => {
            StayOutcome::JournalLost { reason }
        }
        CampaignError::Run(RunError::Order { kind, .. }) => match kind {
            FailureKind::Throttled | FailureKind::Device => StayOutcome::DeviceFailed { reason },
            _ => StayOutcome::Failed { reason },
        },
        CampaignError::Run(RunError::Planner(_)) => StayOutcome::Failed { reason },
        // It was to leave anyway; its journal will be found again.
        CampaignError::Run(_) if assignment.is_asked_to_leave() => StayOutcome::Parked,
        CampaignError::Run(RunError::Link(error) | RunError::GaveUp { last: error }) => {
            of_link(&error, reason)
        }
        CampaignError::Run(RunError::Stuck) => StayOutcome::DeviceFailed { reason },
        CampaignError::Plan(_)
        | CampaignError::Processor(_)
        | CampaignError::Probe(_)
        | CampaignError::Journal(_)
        | CampaignError::Build(_)
        | CampaignError::Evaluation(_)
        | CampaignError::Energy(_)
        | CampaignError::NoMeter
        | CampaignError::Frames(_)
        | CampaignError::Tensors(_)
        | CampaignError::Publish(_) => StayOutcome::Failed { reason },
    }
}

/// So many attempts that failed keep what their phones logged; the oldest goes.
const MOST_FAILURES: usize = 200;

/// The outcome of an attempt that failed, whose reason says where what the phone logged around that is kept.
pub(super) async fn with_artifacts(
    mut outcome: StayOutcome,
    phone: &AdbLink,
    assignment: &Assignment,
    state: &Path,
) -> StayOutcome {
    let (StayOutcome::DeviceFailed { reason }
    | StayOutcome::JournalLost { reason }
    | StayOutcome::Failed { reason }) = &mut outcome
    else {
        return outcome;
    };
    let run = &assignment.run;
    let all = artifacts_of_lab(state);
    let folder = all.join(format!("run-{}-attempt-{}", run.number, run.attempt));
    let began = super::started(assignment);
    if let Some(kept) = artifacts::keep(phone, began, reason, &folder).await {
        *reason = format!("{reason}; {}", kept.in_words());
        artifacts::keep_newest(&all, MOST_FAILURES);
    }
    outcome
}

/// What it means that a device cannot be reached.
pub(super) fn lost(error: LinkError) -> StayOutcome {
    let reason = error.to_string();
    of_link(&error, reason)
}

/// What it means for the run and for the device that a link was not measured. Where the server or what was asked is at fault,
/// another attempt soon would fail as well.
pub(super) fn unmeasured(error: LinkCampaignError) -> StayOutcome {
    let reason = error.to_string();
    match error {
        // It is reached without an adb server, of which it can do nothing.
        LinkCampaignError::Phone(LinkError::Adb(AdbError::NoTunnel { .. })) => {
            StayOutcome::Failed { reason }
        }
        // Nor for what this host or its adb server cannot do now.
        LinkCampaignError::Phone(LinkError::Adb(error))
            if matches!(error, AdbError::Own { .. }) || error.fault() == Some(Fault::Server) =>
        {
            StayOutcome::NotReady { reason }
        }
        LinkCampaignError::Phone(error) => of_link(&error, reason),
        // Nothing is wrong with a phone that was unplugged, or whose agent was ended.
        LinkCampaignError::Lost { .. } | LinkCampaignError::Silent { .. } => {
            StayOutcome::DeviceGone { reason }
        }
        LinkCampaignError::OtherAnswer { .. } => StayOutcome::DeviceFailed { reason },
        LinkCampaignError::Busy { .. } => StayOutcome::NotReady { reason },
        _ => StayOutcome::Failed { reason },
    }
}

fn of_link(error: &LinkError, reason: String) -> StayOutcome {
    match error {
        LinkError::Adb(AdbError::Quarantined { .. }) => StayOutcome::LeftAlone { reason },
        error if error.is_gone() => StayOutcome::DeviceGone { reason },
        _ => StayOutcome::DeviceFailed { reason },
    }
}

/// Whether the run broke off because this host cannot store what it must, for which no device is to blame. The storage of
/// a device that needs no phone is this host's; `agents` is where that is.
pub(super) fn host_is_full(error: &CampaignError, device: &OpenDevice, agents: &Path) -> bool {
    let CampaignError::Run(RunError::Link(error) | RunError::GaveUp { last: error }) = error else {
        return false;
    };
    match (error, device) {
        (LinkError::Adb(AdbError::Own { .. }), _) => true,
        (LinkError::Storage { .. }, OpenDevice::Local(_)) => true,
        (LinkError::Connection(ConnectionError::Refused { refusal, .. }), OpenDevice::Local(_)) => {
            *refusal == Refusal::Storage
        }
        // An agent that cannot write its log, its socket or its journal does not even start.
        (LinkError::NoAgent { .. } | LinkError::DiedAtStart { .. }, OpenDevice::Local(_)) => {
            has_no_room(agents)
        }
        _ => false,
    }
}

/// What must fit, so that an agent can go on for a while.
const ROOM: usize = 1 << 20;

/// Whether no file of a mebibyte can be written in `folder`.
pub(super) fn has_no_room(folder: &Path) -> bool {
    let file = tempfile::NamedTempFile::new_in(folder);
    let written = file.and_then(|mut file| file.write_all(&vec![0; ROOM]));
    written.is_err()
}
