//! What people and programs ask about the lab, computed from what the store holds and from what the daemon says; the
//! command line renders it.

mod calendar;
mod devices;
mod hosts;
mod job;
mod jobs;
mod latest_block;
mod page;
mod profiles;
mod report;
mod reservations;
mod snapshot;
mod watch;

pub use calendar::{Calendar, CalendarDay, OpenHours};
pub use devices::simulated_devices;
pub use hosts::{ListedHost, listed_hosts};
pub use job::{ShownJob, why_nothing};
pub use jobs::{ListedJob, RunCounts, listed_jobs};
pub use latest_block::{LatestBlock, SegmentSoFar, latest_block};
pub use page::Page;
pub use profiles::{IndexedProfile, indexed_profiles, newest_of_each};
pub use report::report;
pub use reservations::open_reservations;
pub use snapshot::{JobsAsked, Snapshot};
pub use watch::{
    SeenDevice, WaitingGroup, WatchedDevice, WatchedDevices, WatchedJob, WatchedLab, WatchedRuns,
};
