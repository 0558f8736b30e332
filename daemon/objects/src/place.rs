//! Where a lab's files are: in a bucket on an S3 server, or in a folder.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// What the URL of a bucket begins with.
const S3: &str = "s3://";

/// What the URL of a folder begins with.
const FILE: &str = "file://";

/// Where a lab's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsPlace {
    /// In a bucket on an S3 server.
    Bucket {
        /// The bucket's name.
        bucket: String,
        /// What the names of all files in it begin with, without slashes at its ends; may be empty.
        prefix: String,
    },
    /// In a folder, by its absolute path.
    Folder(PathBuf),
}

/// Why a text names no place for files. It may hold a password, and is not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It is neither a bucket nor a folder.
    #[error(
        "this is no place for files; write a bucket such as \"s3://bucket/prefix\", the absolute path of a folder, or \"\" for \
         none"
    )]
    Other,
    /// It has a key or a password.
    #[error(
        "a key stands in this URL; take it out, and give it by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or by a file that \
         `objects-credentials-file` names"
    )]
    Key,
    /// There can be no such bucket.
    #[error(
        "this bucket's name cannot be; write 3 to 63 small letters, digits, dashes and dots behind s3://"
    )]
    Bucket,
    /// Names in the bucket cannot begin so.
    #[error(
        "what follows the bucket's name cannot be; write letters, digits, dashes, dots and underscores, with single slashes \
         between them"
    )]
    Prefix,
}

impl FromStr for ObjectsPlace {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<ObjectsPlace, PlaceError> {
        if let Some(rest) = text.strip_prefix(S3) {
            return bucket(rest);
        }
        let path = Path::new(text.strip_prefix(FILE).unwrap_or(text));
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        match path.is_absolute() && path.components().all(is_plain) {
            true => Ok(ObjectsPlace::Folder(path.to_owned())),
            false => Err(PlaceError::Other),
        }
    }
}

fn bucket(text: &str) -> Result<ObjectsPlace, PlaceError> {
    let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
    if bucket.contains('@') {
        return Err(PlaceError::Key);
    }
    let is_usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_usual) {
        return Err(PlaceError::Bucket);
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_usual);
    match prefix.is_empty() || prefix.split('/').all(is_part) {
        true => Ok(ObjectsPlace::Bucket {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        }),
        false => Err(PlaceError::Prefix),
    }
}

impl fmt::Display for ObjectsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectsPlace::Bucket { bucket, prefix } if prefix.is_empty() => {
                write!(f, "{S3}{bucket}")
            }
            ObjectsPlace::Bucket { bucket, prefix } => write!(f, "{S3}{bucket}/{prefix}"),
            ObjectsPlace::Folder(folder) => folder.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_or_a_folder() {
        let bucket = |bucket: &str, prefix: &str| ObjectsPlace::Bucket {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        for (text, place, shown) in [
            ("s3://lab", bucket("lab", ""), "s3://lab"),
            ("s3://lab/", bucket("lab", ""), "s3://lab"),
            (
                "s3://lab-1/a/b_2/",
                bucket("lab-1", "a/b_2"),
                "s3://lab-1/a/b_2",
            ),
            (
                "/srv/lab",
                ObjectsPlace::Folder("/srv/lab".into()),
                "/srv/lab",
            ),
            (
                "file:///srv/lab",
                ObjectsPlace::Folder("/srv/lab".into()),
                "/srv/lab",
            ),
        ] {
            assert_eq!(text.parse(), Ok(place.clone()), "{text}");
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn what_is_none_is_refused_without_being_repeated() {
        for (text, error) in [
            ("", PlaceError::Other),
            ("files", PlaceError::Other),
            ("/srv/../etc", PlaceError::Other),
            ("file://host/srv", PlaceError::Other),
            ("gs://bucket", PlaceError::Other),
            ("s3://key:secret@bucket/lab", PlaceError::Key),
            ("s3://", PlaceError::Bucket),
            ("s3://Lab", PlaceError::Bucket),
            ("s3://lab?versionId=1", PlaceError::Bucket),
            ("s3://lab/../other", PlaceError::Prefix),
            ("s3://lab//a", PlaceError::Prefix),
            ("s3://lab/a?b", PlaceError::Prefix),
        ] {
            assert_eq!(text.parse::<ObjectsPlace>(), Err(error), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
