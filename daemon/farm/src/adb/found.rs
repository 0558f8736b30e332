//! A phone that was found.

use super::list::Row;
use super::naming::{is_of_network, name_by};
use super::phone::Identity;
use super::route::Route;

/// A phone that is listed.
#[derive(Clone, Debug)]
pub struct Found {
    /// What to call it: its serial, with `@HOST:PORT` where another server leads to it. Its address only while it cannot be
    /// asked for its serial.
    pub name: String,
    /// The serial that it told, where it is reached over a network and was asked.
    pub serial: Option<String>,
    /// What lists it, and leads to it.
    pub route: Route,
    /// What is said of it.
    pub row: Row,
}

impl Found {
    /// As what it is listed, where that is an address.
    pub fn address(&self) -> Option<&str> {
        let listed = self.row.serial.as_str();
        is_of_network(listed).then_some(listed)
    }

    /// What to call it, now that it has said who it is: its name, unless it could not be asked before.
    pub fn name_by(&self, identity: &Identity) -> String {
        match &self.serial {
            Some(_) => self.name.clone(),
            None => name_by(&self.route, &self.row.serial, identity),
        }
    }

    /// Whether `name` means this phone: its own name, or that by which it is listed.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.route.name_of(&self.row.serial) == name
    }
}
