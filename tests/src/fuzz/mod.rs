//! Readers fed with damaged files: real ones of the repository, changed at random. What a reader makes of an input does
//! not matter. That it answers does: without a panic, within a deadline, in a process of at most 1 GiB.
//!
//! Input number n of a target is the same on every machine ([`mutate`]). `bin/fuzz` and the test of the gate run the same
//! targets, for more or fewer inputs.

mod bytes;
pub mod mutate;
mod protobuf;
pub mod targets;
pub mod work;
