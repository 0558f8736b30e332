//! A lab has one daemon: who has the lock of its folder.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::error::StoreError;

const FILE: &str = "lab.lock";

/// Held as long as it lives; the system gives it back when its process ends, however that happens.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Gives it back although a program that is just being started still has the file open, too: that one shares the lock
    /// until it has begun.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!("cannot give the lock of the lab's folder back: {error}");
        }
    }
}

impl Lock {
    pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
        let path = folder.join(FILE);
        let failed = |source: io::Error| StoreError::Folder {
            path: path.clone(),
            source,
        };
        // Not truncated: it may be another daemon's.
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        // Whoever can open it can take it.
        let private = Permissions::from_mode(0o600);
        file.set_permissions(private).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Whatever is wrong with the text, the lock is taken.
                let read = file.read_to_string(&mut text);
                return Err(StoreError::Taken {
                    folder: folder.to_owned(),
                    process: read.ok().and_then(|_| text.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        if let Err(error) = writeln!(file, "{}", std::process::id()) {
            tracing::warn!("cannot write to {}: {error}", path.display());
        }
        Ok(Lock { file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_given_back_though_a_program_that_begins_shares_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = Lock::take(folder.path()).expect("nobody has it");
        // What such a program has until it has begun: the same open file.
        let _inherited = lock.file.try_clone().expect("another descriptor");
        drop(lock);
        Lock::take(folder.path()).expect("it was given back");
    }
}
