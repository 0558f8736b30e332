//! Devices that users take from the lab for a while.

use jiff::Timestamp;

use super::LabState;
use super::commands::refused;
use crate::record::{RecordChange, Reservation, What};
use crate::talk::{Answer, RefusalCode};

impl LabState {
    /// Takes a device for somebody.
    pub fn reserve(
        &mut self,
        device: &str,
        from: Timestamp,
        until: Timestamp,
        note: String,
        now: Timestamp,
    ) -> Answer {
        if until <= now || until <= from {
            return refused(
                RefusalCode::WrongPeriod,
                "the reservation would end before it begins; give a later --until",
            );
        }
        let device = match self.device(device) {
            Ok(device) => device,
            Err(unknown) => return unknown,
        };
        let id = self
            .kept
            .reservations
            .keys()
            .next_back()
            .copied()
            .unwrap_or(0)
            + 1;
        let reservation = Reservation {
            id,
            device: device.clone(),
            from,
            until,
            note: note.clone(),
        };
        self.changes
            .push(RecordChange::Reservation(reservation.clone()));
        self.kept.reservations.insert(id, reservation);
        self.tell(
            now,
            None,
            None,
            Some(&device),
            What::Reserved { from, until, note },
        );
        Answer::Done
    }

    /// Gives a device back.
    pub fn release(&mut self, device: &str, now: Timestamp) -> Answer {
        let device = match self.device(device) {
            Ok(device) => device,
            Err(unknown) => return unknown,
        };
        let of_device = self
            .kept
            .reservations
            .values()
            .filter(|one| one.device == device);
        let ids: Vec<i64> = of_device.map(|one| one.id).collect();
        if ids.is_empty() {
            return refused(
                RefusalCode::WrongState,
                &format!("{device} is not reserved"),
            );
        }
        for id in ids {
            self.kept.reservations.remove(&id);
            self.changes.push(RecordChange::ReservationGone(id));
        }
        if let Some(place) = self.places.get_mut(&device) {
            place.changed = now;
        }
        self.tell(now, None, None, Some(&device), What::ReservationLifted);
        Answer::Done
    }

    /// Forgets reservations that are over.
    pub fn end_reservations(&mut self, now: Timestamp) {
        let over = self
            .kept
            .reservations
            .values()
            .filter(|one| one.until <= now);
        let over: Vec<i64> = over.map(|one| one.id).collect();
        for id in over {
            self.kept.reservations.remove(&id);
            self.changes.push(RecordChange::ReservationGone(id));
        }
    }

    fn device(&self, name: &str) -> Result<String, Answer> {
        let mut devices = self.kept.devices.values();
        devices
            .find(|device| device.is_called(name))
            .map(|device| device.name.clone())
            .ok_or_else(|| {
                refused(RefusalCode::UnknownDevice, &format!(
                    "the lab has never seen `{name}`; `layerlab devices` lists what is plugged in"
                ))
            })
    }
}
