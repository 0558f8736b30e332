//! A profile's digest: one name for all that its files say.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DocumentError, PROFILE_JSON};
use crate::sha256;

/// The file beside `profile.json` that holds its digest, as `sha256sum` writes and checks it.
pub const DIGEST_FILE: &str = "profile.json.sha256";

/// How many hexadecimal digits a digest is shortened to, and the fewest that may be given for one.
const SHORT: usize = 12;

/// How many hexadecimal digits a digest has.
const WHOLE: usize = 64;

/// The SHA-256 of a profile's `profile.json`, in hexadecimal. That file holds the SHA-256 of every table, so that no
/// file of the profile can change without another digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ProfileDigest(String);

/// A whole digest that somebody else has written.
impl TryFrom<String> for ProfileDigest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<ProfileDigest, NoDigest> {
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == WHOLE && text.bytes().all(hexadecimal) {
            true => Ok(ProfileDigest(text)),
            false => Err(NoDigest),
        }
    }
}

impl ProfileDigest {
    /// Of a `profile.json` of these bytes.
    pub fn of(profile_json: &[u8]) -> ProfileDigest {
        ProfileDigest(sha256(profile_json))
    }

    /// Of the profile in `folder`, whatever its version.
    pub fn of_folder(folder: &Path) -> Result<ProfileDigest, DocumentError> {
        let path = folder.join(PROFILE_JSON);
        match fs::read(&path) {
            Ok(bytes) => Ok(ProfileDigest::of(&bytes)),
            Err(reason) => Err(DocumentError::Read { path, reason }),
        }
    }

    /// All 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve, by which people tell profiles apart.
    pub fn short(&self) -> &str {
        &self.0[..SHORT]
    }

    /// What [`DIGEST_FILE`] holds.
    pub(super) fn line(&self) -> String {
        format!("{self}  {PROFILE_JSON}\n")
    }
}

impl fmt::Display for ProfileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A digest that somebody expects a profile to have, whole or shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedDigest(String);

impl ExpectedDigest {
    /// Whether `digest` is the expected one.
    pub fn is(&self, digest: &ProfileDigest) -> bool {
        digest.0.starts_with(&self.0)
    }
}

impl fmt::Display for ExpectedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a digest has {WHOLE} hexadecimal digits, of which the first {SHORT} or more are to be given, as `layerlab show` \
     prints them"
)]
pub struct NoDigest;

impl FromStr for ExpectedDigest {
    type Err = NoDigest;
    fn from_str(text: &str) -> Result<ExpectedDigest, NoDigest> {
        let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match hexadecimal && (SHORT..=WHOLE).contains(&text.len()) {
            true => Ok(ExpectedDigest(text.to_ascii_lowercase())),
            false => Err(NoDigest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_expected_whole_or_by_its_beginning() {
        let digest = ProfileDigest::of(b"layerlab\n");
        assert_eq!(digest.short(), "712ae41cb5a9");
        for text in [digest.as_str(), digest.short(), "712AE41CB5A9"] {
            let expected: ExpectedDigest = text.parse().expect("digits");
            assert!(expected.is(&digest), "{text}");
        }
        let other: ExpectedDigest = "712ae41cb5a8".parse().expect("digits");
        assert!(!other.is(&digest));
        for text in ["", "712ae41cb5a", "712ae41cb5ag", &"0".repeat(65)] {
            assert_eq!(text.parse::<ExpectedDigest>(), Err(NoDigest), "{text}");
        }
    }
}
