//! One inference at a time: who computes, and how long the others wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What one connection has at a time.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    waiting: usize,
}

/// The one turn. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TakenTurn<'a>(&'a Turn);

impl Turn {
    /// Waits for the turn, at most so long.
    pub(crate) fn take(&self, patience: Duration) -> Option<TakenTurn<'_>> {
        let mut state = self.lock();
        state.waiting += 1;
        let waited = self
            .freed
            .wait_timeout_while(state, patience, |state| state.is_taken);
        let mut state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(it, _)| it);
        state.waiting -= 1;
        if state.is_taken {
            return None;
        }
        state.is_taken = true;
        Some(TakenTurn(self))
    }

    /// How many wait for it.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        self.0.lock().is_taken = false;
        self.0.freed.notify_one();
    }
}
