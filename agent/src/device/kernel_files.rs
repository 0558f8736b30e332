//! The files in which the kernel tells of the machine. Every one is optional: on a phone the shell user may read some
//! of them, in a container none.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What is in `folder` under a name that begins with `prefix`, by its name.
pub(super) fn entries(
    folder: &Path,
    prefix: &'static str,
) -> impl Iterator<Item = (String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .filter(move |(name, _)| name.starts_with(prefix))
}

/// What the file says, without its line break.
pub(super) fn text(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// The number that the file holds.
pub(super) fn number<T: FromStr>(file: &Path) -> Option<T> {
    text(file)?.parse().ok()
}
