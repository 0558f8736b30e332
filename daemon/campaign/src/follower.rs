//! Who follows a run's journal.

use std::future::{Future, pending};

use layerlab_protocol::Entry;

/// Who follows a run.
pub trait Follower: Send {
    /// Hears, once, how many samples the run will have; `None` if that turns out while it measures.
    fn planned(&mut self, _samples: Option<u64>) {}

    /// Sees each entry once, as it comes. The next one is not read before this returns.
    fn entry(&mut self, entry: &Entry) -> impl Future<Output = ()> + Send;

    /// Ends when the run is to be parked. Waited for again and again, and dropped in between.
    fn park_asked(&mut self) -> impl Future<Output = ()> + Send {
        pending()
    }
}

impl<F: FnMut(&Entry) + Send> Follower for F {
    async fn entry(&mut self, entry: &Entry) {
        self(entry);
    }
}
