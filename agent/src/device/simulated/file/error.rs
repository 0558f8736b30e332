//! What can be wrong with a device file: one sentence each.

use std::io;

/// What is wrong with a device file.
#[derive(Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// It cannot be read.
    #[error("cannot read the device file {file} ({source}): check the path and its permissions")]
    Unreadable {
        /// The device file's path, as the user gave it.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is not TOML, or has a field that does not exist or is of the wrong type.
    #[error(
        "{file}, line {line}: {message}: correct it, or compare with the files in tests/devices"
    )]
    Malformed {
        /// The device file's path, as the user gave it.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What the parser said.
        message: String,
    },
    /// A field that there must be is missing.
    #[error("{file}: {place} has no `{field}`: add {expected}")]
    Missing {
        /// The device file's path, as the user gave it.
        file: String,
        /// The part of the file.
        place: String,
        /// The name of the field that is missing.
        field: &'static str,
        /// What to write.
        expected: &'static str,
    },
    /// A field's value makes no sense.
    #[error("{file}: `{field}` of {place} is {value}: write {expected}")]
    Senseless {
        /// The device file's path, as the user gave it.
        file: String,
        /// The part of the file.
        place: String,
        /// The name of the field.
        field: &'static str,
        /// The value that the file gives it.
        value: String,
        /// What to write.
        expected: &'static str,
    },
    /// A field stands where it means nothing.
    #[error("{file}: {place} has `{field}`, which means nothing for {reason}: remove it")]
    Misplaced {
        /// The device file's path, as the user gave it.
        file: String,
        /// The part of the file.
        place: String,
        /// The name of the field that does not belong there.
        field: &'static str,
        /// Why it means nothing.
        reason: &'static str,
    },
}
