//! Which devices are taken, and which will be.

use jiff::Timestamp;

use crate::record::{Kept, Reservation};

/// The reservations that are not over at `now`, in the order in which they begin.
pub fn open_reservations(kept: &Kept, now: Timestamp) -> Vec<&Reservation> {
    let mut reserved: Vec<&Reservation> = kept.reservations.values().collect();
    reserved.retain(|one| one.until > now);
    reserved.sort_by_key(|one| (one.from, one.id));
    reserved
}
