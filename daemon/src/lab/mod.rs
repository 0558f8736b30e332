//! The lab: a night of profiling runs on the phones that are plugged in.

pub mod bench;
pub mod clock;
pub mod config;
mod days;
pub mod decide;
pub mod dispatcher;
pub mod farm;
pub mod gates;
pub mod job;
pub mod journal;
pub mod library;
pub mod night;
pub mod readings;
pub mod record;
pub mod recurrence;
pub mod report;
pub mod socket;
pub mod state;
mod status;
pub mod talk;
pub mod toml_file;
pub mod webhook;
pub mod when;
pub mod window;
pub mod zone;
