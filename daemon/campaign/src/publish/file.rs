//! One file that becomes visible in one rename, whole or not at all.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::{PublishError, parent, prepare_parent, sync};

/// A place for a file that is not yet visible, beside where it will be. Dropping it removes it.
#[derive(Debug)]
pub struct StagedFile {
    file: NamedTempFile,
    target: PathBuf,
    replace: bool,
}

impl StagedFile {
    /// Prepares to publish at `target`. Unless `replace` is set, nothing may be there.
    ///
    /// # Errors
    /// When something is, or the folder cannot be written.
    pub fn prepare(target: &Path, replace: bool) -> Result<StagedFile, PublishError> {
        let name = prepare_parent(target, replace)?;
        let file = tempfile::Builder::new()
            .prefix(&format!(".{name}.unpublished-"))
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(parent(target))
            .map_err(|source| PublishError::Folder {
                path: parent(target).to_owned(),
                source,
            })?;
        Ok(StagedFile {
            file,
            target: target.to_owned(),
            replace,
        })
    }

    /// Writes the file and makes it visible.
    ///
    /// # Errors
    /// When there is no room, or something is there by now.
    pub fn publish(mut self, bytes: &[u8]) -> Result<(), PublishError> {
        let failed = |source| PublishError::File {
            path: self.target.clone(),
            source,
        };
        self.file.write_all(bytes).map_err(failed)?;
        self.file.as_file().sync_all().map_err(failed)?;
        let renamed = match self.replace {
            true => self.file.persist(&self.target),
            false => self.file.persist_noclobber(&self.target),
        };
        match renamed {
            Ok(_) => sync(parent(&self.target)),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(PublishError::Exists { path: self.target })
            }
            Err(error) => Err(failed(error.error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("new/set");
        let staged = StagedFile::prepare(&target, false).expect("room");
        let late = StagedFile::prepare(&target, false).expect("nothing is there yet");
        assert!(!target.exists());
        staged.publish(b"one").expect("room");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"one");
        let refused = late.publish(b"two").expect_err("something is there");
        assert!(refused.to_string().contains("--replace"), "{refused}");
        let refused = StagedFile::prepare(&target, false).expect_err("something is there");
        assert!(refused.to_string().contains("--replace"), "{refused}");
        let replaced = StagedFile::prepare(&target, true).expect("room");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"one");
        replaced.publish(b"three").expect("room");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"three");
        let left = std::fs::read_dir(folder.path().join("new")).expect("a folder");
        assert_eq!(left.count(), 1);
    }

    #[test]
    fn a_folder_is_not_replaced_by_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("thesis");
        std::fs::create_dir(&target).expect("a folder");
        let staged = StagedFile::prepare(&target, true).expect("room beside it");
        let refused = staged.publish(b"set").expect_err("a folder");
        assert!(refused.to_string().contains("thesis"), "{refused}");
        assert!(target.is_dir());
    }
}
