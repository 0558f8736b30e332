//! The lab's decisions over days and nights, on a paused clock, with devices that are played here: real ones would take as
//! long. What decides, and the store, are the lab's own.

mod archive;
mod fetching;
mod home;
mod hosts;
mod nights;
mod played;
#[path = "../../../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is shared with the tests of the whole"
)]
mod postgres;
mod progress;
#[path = "../../../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of the whole")]
mod skip;
