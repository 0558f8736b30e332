//! The lab: a night of profiling runs, when they may run, and what the daemon is told about it.

pub mod config;
mod days;
pub mod recurrence;
pub mod when;
pub mod window;
pub mod zone;
