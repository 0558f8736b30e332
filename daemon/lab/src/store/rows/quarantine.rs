//! A device in quarantine, in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoredRecord;
use crate::record::DeviceQuarantine;

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct QuarantineRow {
    device: String,
    reason: String,
    since: Timestamp,
    until: Timestamp,
    by: String,
}

impl StoredRecord for DeviceQuarantine {
    const WHAT: &'static str = "a device in quarantine";
    const VERSION: u32 = 1;
    type Row = QuarantineRow;
}

impl From<DeviceQuarantine> for QuarantineRow {
    fn from(quarantine: DeviceQuarantine) -> QuarantineRow {
        QuarantineRow {
            device: quarantine.device,
            reason: quarantine.reason,
            since: quarantine.since,
            until: quarantine.until,
            by: quarantine.by,
        }
    }
}

impl From<QuarantineRow> for DeviceQuarantine {
    fn from(row: QuarantineRow) -> DeviceQuarantine {
        DeviceQuarantine {
            device: row.device,
            reason: row.reason,
            since: row.since,
            until: row.until,
            by: row.by,
        }
    }
}
