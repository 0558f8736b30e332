//! The lab: a night of runs on all devices.

pub mod gates;
pub mod readings;
