//! The lab: a night of profiling runs, when they may run, and what the daemon is told about it.

pub mod config;
mod days;
pub mod job;
pub mod record;
pub mod recurrence;
pub mod talk;
pub mod when;
pub mod window;
pub mod zone;
