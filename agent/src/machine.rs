//! What this agent measures with: whoever holds it has the device and its processors to itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::runtime::Runtimes;

/// The device and its runtimes.
pub struct Machine {
    /// The device.
    pub device: Box<dyn Device>,
    /// Its runtimes.
    pub runtimes: Runtimes,
}

/// A machine that work of several kinds takes turns on.
pub struct SharedMachine(Mutex<Machine>);

impl SharedMachine {
    /// Shares `machine`.
    pub fn new(machine: Machine) -> SharedMachine {
        SharedMachine(Mutex::new(machine))
    }

    /// Waits until nothing else runs on it: what does has a deadline of its own.
    pub fn wait(&self) -> MutexGuard<'_, Machine> {
        // What panicked has ended, and its sessions are dropped.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine, unless something runs on it.
    pub fn if_free(&self) -> Option<MutexGuard<'_, Machine>> {
        match self.0.try_lock() {
            Ok(machine) => Some(machine),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}
