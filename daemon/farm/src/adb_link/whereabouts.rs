//! Where a phone is now. A phone on a network may come back at another address: wireless debugging has another port after
//! each boot, and routers give addresses anew. Its serial says that it is the same.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::join_all;

use crate::adb::naming::{is_of_network, name_by};
use crate::adb::{AdbError, Address, Identity, Phone, Route, Row, State};

/// Where one phone is, on the way that leads to it.
#[derive(Debug)]
pub(super) struct Whereabouts {
    route: Route,
    /// The phone's own serial, once it is known.
    own: Option<String>,
    /// What to call it, once it is known.
    name: Option<String>,
    /// As what it is listed now.
    listed: Mutex<String>,
    /// Phones that turned out to be others, by what each is listed as, and the number of the connection to it. None is asked
    /// twice: it may be measuring.
    others: Mutex<HashMap<String, u32>>,
}

impl Whereabouts {
    /// The phone that `route` lists as `listed`.
    pub(super) fn new(route: Route, listed: &str) -> Whereabouts {
        Whereabouts {
            route,
            own: None,
            name: None,
            listed: Mutex::new(listed.to_owned()),
            others: Mutex::default(),
        }
    }

    /// The same, now that the phone has said who it is.
    pub(super) fn of(self, identity: &Identity) -> Whereabouts {
        Whereabouts {
            own: Some(identity.serial.clone()).filter(|serial| !serial.is_empty()),
            name: Some(name_by(&self.route, &self.listed(), identity)),
            ..self
        }
    }

    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    /// As what it is listed now.
    pub(super) fn listed(&self) -> String {
        // What is behind it is replaced as a whole.
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.clone()
    }

    /// What to call it: by its serial, once that is known.
    pub(super) fn name(&self) -> String {
        let listed = || self.route.name_of(&self.listed());
        self.name.clone().unwrap_or_else(listed)
    }

    /// Its network address, if that is how it is reached now.
    pub(super) fn address(&self) -> Option<Address> {
        self.listed().parse().ok()
    }

    /// Whether it is reached by a network, and by no cable.
    pub(super) fn is_on_network(&self) -> bool {
        is_of_network(&self.listed())
    }

    /// The row of the phone where it was seen last.
    pub(super) fn row<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        let listed = self.listed();
        rows.iter().find(|row| row.serial == listed)
    }

    /// The phone, where it was seen last.
    pub(super) async fn phone(&self) -> Result<Phone, AdbError> {
        let rows = self.route.phones().await?;
        let name = self.name();
        match self.row(&rows) {
            Some(row) => Phone::called(name, &self.route, row),
            None => Err(AdbError::Absent { name }),
        }
    }

    /// Looks whether it is one of those in `rows` where it was not before, and goes there if it is: what on a network has
    /// its serial, or on a cable. Those that are none of these are not asked.
    pub(super) async fn moved(&self, rows: &[Row]) -> Option<(Phone, Identity)> {
        let own = self.own.as_deref()?;
        let listed = self.listed();
        let candidates = rows.iter().filter(|row| {
            let may_be = is_of_network(&row.serial) || row.serial == own;
            row.state == State::Ready && row.serial != listed && may_be && !self.is_other(row)
        });
        let asked = join_all(candidates.map(|row| async move {
            let phone = Phone::called(self.name(), &self.route, row).ok()?;
            let identity = phone.identity().await.ok()?;
            Some((row, phone, identity))
        }));
        let mut found = None;
        for (row, phone, identity) in asked.await.into_iter().flatten() {
            if identity.serial == own {
                found = found.or(Some((row, phone, identity)));
            } else if let Some(transport) = row.transport {
                self.others().insert(row.serial.clone(), transport);
            }
        }
        let (row, phone, identity) = found?;
        let (was, is) = (&listed, &row.serial);
        tracing::warn!(
            phone = self.name(),
            was,
            is,
            "the phone has another address"
        );
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.clone_from(&row.serial);
        Some((phone, identity))
    }

    fn is_other(&self, row: &Row) -> bool {
        row.transport.is_some() && self.others().get(&row.serial).copied() == row.transport
    }

    fn others(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        // Each entry is put there as a whole.
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
