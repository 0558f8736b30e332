//! Threads that tract computes with: one for each core of a set, bound to it.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::device::CoreSet;

/// A thread for each core, bound to the set where the system allows it.
pub(super) fn threads(set: &CoreSet) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
    let cores = set.clone();
    ThreadPoolBuilder::new()
        .num_threads(set.cores.len())
        .thread_name(|number| format!("tract-{number}"))
        .start_handler(move |_| cores.bind_this_thread())
        .build()
        .map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Host, allowed_cores};

    #[test]
    fn threads_run_on_the_cores_of_their_set() {
        for set in Host::new().cores().iter().filter(|set| set.pinned) {
            let threads = threads(set).expect("threads");
            let seen = threads.broadcast(|_| allowed_cores());
            assert_eq!(seen.len(), set.cores.len());
            assert!(seen.iter().all(|cores| *cores == set.cores), "{seen:?}");
        }
    }
}
