//! A device that all hosts of a lab leave alone.

use jiff::Timestamp;

/// A device that is in quarantine in a lab that several hosts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceQuarantine {
    /// The device's own serial; the name that it was given if the lab has never seen it.
    pub device: String,
    /// Why, for a person.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// When it may be used again.
    pub until: Timestamp,
    /// Whose decision it is, for a person.
    pub by: String,
}
