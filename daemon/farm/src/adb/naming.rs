//! What phones are called: by their own serials, however they are reached. The server calls a phone on a cable by its
//! serial, and one on a network by its address, which changes: wireless debugging has another port after each boot.

use super::address::Address;
use super::phone::Identity;
use super::route::Route;

/// What phones without a serial of their own say that it is.
const NO_SERIALS: [&str; 2] = ["", "unknown"];

/// Whether a server's name for a phone is a place in a network, or of a service that announced itself there.
pub(crate) fn is_of_network(name: &str) -> bool {
    name.parse::<Address>().is_ok() || name.contains("._adb")
}

/// The serial that a phone tells, if it has one of its own.
fn own_serial(identity: &Identity) -> Option<&str> {
    let serial = identity.serial.as_str();
    (!NO_SERIALS.contains(&serial)).then_some(serial)
}

/// What to call the phone that `route` lists as `listed`, and that says who it is.
pub(crate) fn name_by(route: &Route, listed: &str, identity: &Identity) -> String {
    match own_serial(identity).filter(|_| is_of_network(listed)) {
        Some(serial) => route.name_of(serial),
        None => route.name_of(listed),
    }
}
