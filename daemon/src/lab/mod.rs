//! The lab: a night of profiling runs, and when they may run.

mod days;
pub mod recurrence;
pub mod when;
pub mod window;
pub mod zone;
