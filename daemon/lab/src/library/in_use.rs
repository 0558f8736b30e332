//! Which copies are in use, and so stay at hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often each copy is in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses(Arc<Mutex<BTreeMap<String, usize>>>);

/// Copies that stay at hand until this is dropped.
#[derive(Debug)]
pub struct InUse {
    uses: Uses,
    hashes: Vec<String>,
}

impl Uses {
    pub(super) fn of(&self, hashes: &[String]) -> InUse {
        let mut uses = self.lock();
        for hash in hashes {
            *uses.entry(hash.clone()).or_default() += 1;
        }
        drop(uses);
        InUse {
            uses: self.clone(),
            hashes: hashes.to_vec(),
        }
    }

    pub(super) fn has(&self, hash: &str) -> bool {
        self.lock().contains_key(hash)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        // Numbers are whole, whoever counted them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut uses = self.uses.lock();
        for hash in &self.hashes {
            if let Some(count) = uses.get_mut(hash) {
                *count -= 1;
                if *count == 0 {
                    uses.remove(hash);
                }
            }
        }
    }
}
