//! One inference at a time: who computes, and how long the others wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What one connection has at a time.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// The one turn. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TakenTurn<'a>(&'a Turn);

impl Turn {
    /// Waits for the turn, at most so long.
    pub(crate) fn take(&self, patience: Duration) -> Option<TakenTurn<'_>> {
        let waited = self
            .freed
            .wait_timeout_while(self.lock(), patience, |is_taken| *is_taken);
        let mut is_taken = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(it, _)| it);
        if *is_taken {
            return None;
        }
        *is_taken = true;
        Some(TakenTurn(self))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        // It is replaced as a whole.
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.freed.notify_one();
    }
}
