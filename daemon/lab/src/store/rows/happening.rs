//! What happened, in the store.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::states::JobStateRow;
use crate::record::What;

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum WhatRow {
    DaemonStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    DaemonStopped {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    Submitted,
    JobEnded {
        state: JobStateRow,
    },
    Paused,
    Resumed,
    RetryAsked,
    DeviceCame,
    DeviceGone,
    Quarantined {
        reason: String,
        until: Timestamp,
    },
    QuarantineLifted,
    Reserved {
        from: Timestamp,
        until: Timestamp,
        note: String,
    },
    ReservationLifted,
    Started {
        attempt: u32,
    },
    Continued,
    NotReady {
        reason: String,
    },
    Parked {
        reason: String,
    },
    AttemptFailed {
        reason: String,
    },
    BlockRejected {
        reason: String,
    },
    Published {
        profile: PathBuf,
        findings: Vec<String>,
    },
    VideoPublished {
        folder: PathBuf,
        findings: Vec<String>,
    },
    LinkPublished {
        folder: PathBuf,
        findings: Vec<String>,
    },
    Worse {
        than: PathBuf,
        numbers: Vec<String>,
    },
    Failed {
        reason: String,
    },
    Trouble {
        reason: String,
    },
    Asked {
        by: String,
        command: String,
    },
}

impl From<What> for WhatRow {
    fn from(what: What) -> WhatRow {
        match what {
            What::DaemonStarted { host } => WhatRow::DaemonStarted { host },
            What::DaemonStopped { host } => WhatRow::DaemonStopped { host },
            What::Submitted => WhatRow::Submitted,
            What::JobEnded { state } => WhatRow::JobEnded {
                state: state.into(),
            },
            What::Paused => WhatRow::Paused,
            What::Resumed => WhatRow::Resumed,
            What::RetryAsked => WhatRow::RetryAsked,
            What::DeviceCame => WhatRow::DeviceCame,
            What::DeviceGone => WhatRow::DeviceGone,
            What::Quarantined { reason, until } => WhatRow::Quarantined { reason, until },
            What::QuarantineLifted => WhatRow::QuarantineLifted,
            What::Reserved { from, until, note } => WhatRow::Reserved { from, until, note },
            What::ReservationLifted => WhatRow::ReservationLifted,
            What::Started { attempt } => WhatRow::Started { attempt },
            What::Continued => WhatRow::Continued,
            What::NotReady { reason } => WhatRow::NotReady { reason },
            What::Parked { reason } => WhatRow::Parked { reason },
            What::AttemptFailed { reason } => WhatRow::AttemptFailed { reason },
            What::BlockRejected { reason } => WhatRow::BlockRejected { reason },
            What::Published { profile, findings } => WhatRow::Published { profile, findings },
            What::VideoPublished { folder, findings } => {
                WhatRow::VideoPublished { folder, findings }
            }
            What::LinkPublished { folder, findings } => WhatRow::LinkPublished { folder, findings },
            What::Worse { than, numbers } => WhatRow::Worse { than, numbers },
            What::Failed { reason } => WhatRow::Failed { reason },
            What::Asked { by, command } => WhatRow::Asked { by, command },
            What::Trouble { reason } => WhatRow::Trouble { reason },
        }
    }
}

impl From<WhatRow> for What {
    fn from(row: WhatRow) -> What {
        match row {
            WhatRow::DaemonStarted { host } => What::DaemonStarted { host },
            WhatRow::DaemonStopped { host } => What::DaemonStopped { host },
            WhatRow::Submitted => What::Submitted,
            WhatRow::JobEnded { state } => What::JobEnded {
                state: state.into(),
            },
            WhatRow::Paused => What::Paused,
            WhatRow::Resumed => What::Resumed,
            WhatRow::RetryAsked => What::RetryAsked,
            WhatRow::DeviceCame => What::DeviceCame,
            WhatRow::DeviceGone => What::DeviceGone,
            WhatRow::Quarantined { reason, until } => What::Quarantined { reason, until },
            WhatRow::QuarantineLifted => What::QuarantineLifted,
            WhatRow::Reserved { from, until, note } => What::Reserved { from, until, note },
            WhatRow::ReservationLifted => What::ReservationLifted,
            WhatRow::Started { attempt } => What::Started { attempt },
            WhatRow::Continued => What::Continued,
            WhatRow::NotReady { reason } => What::NotReady { reason },
            WhatRow::Parked { reason } => What::Parked { reason },
            WhatRow::AttemptFailed { reason } => What::AttemptFailed { reason },
            WhatRow::BlockRejected { reason } => What::BlockRejected { reason },
            WhatRow::Published { profile, findings } => What::Published { profile, findings },
            WhatRow::VideoPublished { folder, findings } => {
                What::VideoPublished { folder, findings }
            }
            WhatRow::LinkPublished { folder, findings } => What::LinkPublished { folder, findings },
            WhatRow::Worse { than, numbers } => What::Worse { than, numbers },
            WhatRow::Failed { reason } => What::Failed { reason },
            WhatRow::Asked { by, command } => What::Asked { by, command },
            WhatRow::Trouble { reason } => What::Trouble { reason },
        }
    }
}
