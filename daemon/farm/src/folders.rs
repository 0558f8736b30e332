//! Where layerlab keeps what outlives a command: its state (quarantine, locks, the adb server's files,
//! the secret of its agents), its data (agents built for phones), and what it can make again (its cache).

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// What layerlab knows about phones.
    pub state: PathBuf,
    /// What users put there: `agents/ABI/layerlab-agent`.
    pub data: PathBuf,
    /// What is kept to be faster next time, and may be deleted at any time.
    pub cache: PathBuf,
}

impl Folders {
    /// `LAYERLAB_STATE`, `LAYERLAB_DATA` and `LAYERLAB_CACHE`, else the folders of the XDG specification.
    pub fn of_this_user() -> Folders {
        let place = |own: &str, xdg: &str, in_home: &str| {
            let set = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
            if let Some(path) = set(own) {
                return PathBuf::from(path);
            }
            let base = set(xdg).map(PathBuf::from).unwrap_or_else(|| {
                let home = set("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
                home.join(in_home)
            });
            base.join("layerlab")
        };
        Folders {
            state: place("LAYERLAB_STATE", "XDG_STATE_HOME", ".local/state"),
            data: place("LAYERLAB_DATA", "XDG_DATA_HOME", ".local/share"),
            cache: place("LAYERLAB_CACHE", "XDG_CACHE_HOME", ".cache"),
        }
    }
}

/// Makes `folder`, or takes the one that is there, and sees that nobody but its owner can look into it.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Writes a file that is whole whenever somebody reads it, and readable by nobody else.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_could_look_into_is_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let (new, old) = (folder.path().join("new/state"), folder.path().join("old"));
        fs::create_dir(&old).expect("room");
        fs::set_permissions(&old, Permissions::from_mode(0o755)).expect("our own");
        for path in [&new, &old] {
            make_private(path).expect("our own");
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
    }
}
