//! The lab's decisions over days and nights, on a paused clock, with devices that are played here: real ones would take as
//! long. What decides, and the store, are the lab's own.

mod archive;
mod nights;
mod played;
mod progress;
