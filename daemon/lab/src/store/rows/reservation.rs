//! A reservation in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoredRecord;
use crate::record::Reservation;

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct ReservationRow {
    id: i64,
    device: String,
    from: Timestamp,
    until: Timestamp,
    note: String,
}

impl StoredRecord for Reservation {
    const WHAT: &'static str = "a reservation";
    const VERSION: u32 = 1;
    type Row = ReservationRow;
}

impl From<Reservation> for ReservationRow {
    fn from(reservation: Reservation) -> ReservationRow {
        ReservationRow {
            id: reservation.id,
            device: reservation.device,
            from: reservation.from,
            until: reservation.until,
            note: reservation.note,
        }
    }
}

impl From<ReservationRow> for Reservation {
    fn from(row: ReservationRow) -> Reservation {
        Reservation {
            id: row.id,
            device: row.device,
            from: row.from,
            until: row.until,
            note: row.note,
        }
    }
}
