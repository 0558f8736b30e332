//! An event in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoredRecord;
use super::happening::WhatRow;
use crate::record::{Event, JobId, RunNumber};

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct EventRow {
    number: i64,
    at: Timestamp,
    job: Option<JobId>,
    run: Option<RunNumber>,
    device: Option<String>,
    what: WhatRow,
}

impl StoredRecord for Event {
    const WHAT: &'static str = "an event";
    const VERSION: u32 = 7;
    type Row = EventRow;
}

impl From<Event> for EventRow {
    fn from(event: Event) -> EventRow {
        EventRow {
            number: event.number,
            at: event.at,
            job: event.job,
            run: event.run,
            device: event.device,
            what: event.what.into(),
        }
    }
}

impl From<EventRow> for Event {
    fn from(row: EventRow) -> Event {
        Event {
            number: row.number,
            at: row.at,
            job: row.job,
            run: row.run,
            device: row.device,
            what: row.what.into(),
        }
    }
}
