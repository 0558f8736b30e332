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
        let all = Host::new().cores()[0].clone();
        assert!(all.pinned, "a process may stay where it is");
        let one = CoreSet {
            name: "cpu:big1".to_owned(),
            cores: vec![*all.cores.last().expect("a core")],
            pinned: true,
        };
        for set in [all, one] {
            let threads = threads(&set).expect("threads");
            let seen = threads.broadcast(|_| allowed_cores());
            assert_eq!(seen, vec![set.cores.clone(); set.cores.len()]);
        }
    }
}
