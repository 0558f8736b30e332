//! Signatures: who published a profile, and that no file of it was changed since.
//!
//! A signature is made by Ed25519 (RFC 8032) over the bytes of `profile.json`, which hold the hashes of all tables. Keys are
//! PEM files as OpenSSL writes them, signatures 64 bytes, so that OpenSSL verifies without layerlab.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ed25519_compact::{KeyPair, Noise, PublicKey, SecretKey, Signature};
use layerlab_profiles::document::PROFILE_JSON;

/// The file beside `profile.json` that holds its signature.
pub const SIGNATURE: &str = "profile.json.sig";

/// What the name of a public key's file has after that of the private one.
const PUBLIC: &str = "pub";

/// A private key, by which a lab signs what it publishes.
#[derive(Clone)]
pub struct SigningKey(SecretKey);

/// A public key, by which anybody tells whether a lab signed a profile.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    path: PathBuf,
    key: PublicKey,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the key {}: {source}; make one with `layerlab key new FILE`", path.display())]
    Read {
        /// The key's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no key of the kind that is needed.
    #[error("{} is no {kind} Ed25519 key in PEM; `layerlab key new FILE` makes FILE, which is private, and FILE.pub", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// The kind of key.
        kind: &'static str,
    },
    /// The file cannot be written.
    #[error("cannot write the key {}: {source}; choose a new file in a folder that you may write to", path.display())]
    Write {
        /// The key's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a profile counts as not signed by a key.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("{} is not signed: {source}; get it again from the lab that signs its profiles", path.display())]
    Unsigned {
        /// The file that would be the signature.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The signature is of something else, or by another key.
    #[error(
        "{} was changed after it was signed, or was not signed by the key {}; get it again from the lab that signed it",
        folder.display(),
        key.display()
    )]
    Wrong {
        /// The profile's folder.
        folder: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

impl SigningKey {
    /// Reads a private key.
    pub fn read(path: &Path) -> Result<SigningKey, KeyError> {
        match SecretKey::from_pem(&read(path)?) {
            Ok(key) => Ok(SigningKey(key)),
            Err(_) => Err(KeyError::NoKey {
                path: path.to_owned(),
                kind: "private",
            }),
        }
    }

    /// The signature of a `profile.json` of these bytes.
    pub(super) fn sign(&self, profile_json: &[u8]) -> [u8; Signature::BYTES] {
        *self.0.sign(profile_json, Some(Noise::generate()))
    }
}

impl VerifyingKey {
    /// Reads a public key.
    pub fn read(path: &Path) -> Result<VerifyingKey, KeyError> {
        let path = path.to_owned();
        match PublicKey::from_pem(&read(&path)?) {
            Ok(key) => Ok(VerifyingKey { path, key }),
            Err(_) => Err(KeyError::NoKey {
                path,
                kind: "public",
            }),
        }
    }

    /// Refuses the profile in `folder` unless this key's private half signed its `profile.json`. That the tables are those
    /// of `profile.json` is for `check` to say.
    pub fn verify(&self, folder: &Path) -> Result<(), SignatureError> {
        let file = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(|source| SignatureError::Unsigned { path, source })
        };
        let (signature, signed) = (file(SIGNATURE)?, file(PROFILE_JSON)?);
        let signature = Signature::from_slice(&signature);
        let verified = signature.and_then(|signature| self.key.verify(signed, &signature));
        verified.map_err(|_| SignatureError::Wrong {
            folder: folder.to_owned(),
            key: self.path.clone(),
        })
    }
}

/// Makes a key: the private half at `path`, which nobody else may read, and the public one beside it, whose path is given
/// back. Neither may be there.
pub fn new_key(path: &Path) -> Result<PathBuf, KeyError> {
    let pair = KeyPair::generate();
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PUBLIC);
    let public = PathBuf::from(name);
    write(path, &pair.sk.to_pem(), 0o600)?;
    match write(&public, &pair.pk.to_pem(), 0o644) {
        Ok(()) => Ok(public),
        Err(error) => {
            // Half a key is of no use, and would be in the way of the next attempt.
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

fn read(path: &Path) -> Result<String, KeyError> {
    fs::read_to_string(path).map_err(|source| KeyError::Read {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), KeyError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| KeyError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn key_in(folder: &Path, name: &str) -> (SigningKey, VerifyingKey) {
        let private = folder.join(name);
        let public = new_key(&private).expect("room");
        let signing = SigningKey::read(&private).expect("just written");
        (signing, VerifyingKey::read(&public).expect("just written"))
    }

    #[test]
    fn a_profile_is_signed_by_one_key_and_not_changed_after_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let (key, public) = key_in(folder.path(), "lab");
        let (_, other) = key_in(folder.path(), "other");
        let refused = |key: &VerifyingKey| key.verify(folder.path()).expect_err("unsigned");
        fs::write(folder.path().join(PROFILE_JSON), "{}").expect("room");
        assert!(refused(&public).to_string().contains("is not signed"));

        fs::write(folder.path().join(SIGNATURE), key.sign(b"{}")).expect("room");
        public.verify(folder.path()).expect("signed");
        assert!(matches!(refused(&other), SignatureError::Wrong { .. }));

        fs::write(folder.path().join(PROFILE_JSON), "{} ").expect("room");
        assert!(matches!(refused(&public), SignatureError::Wrong { .. }));
        fs::write(folder.path().join(SIGNATURE), "short").expect("room");
        assert!(matches!(refused(&public), SignatureError::Wrong { .. }));
    }

    #[test]
    fn a_private_key_is_its_owner_s_and_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab");
        let public = new_key(&path).expect("room");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = fs::read(&path).expect("a key");
        assert!(matches!(new_key(&path), Err(KeyError::Write { .. })));
        fs::remove_file(&public).expect("a file");
        assert!(matches!(new_key(&path), Err(KeyError::Write { .. })));
        assert_eq!(fs::read(&path).expect("a key"), before);
        assert!(!public.exists(), "a public half of no key");
        fs::remove_file(&path).expect("a file");
        fs::write(&public, "another's").expect("room");
        assert!(matches!(new_key(&path), Err(KeyError::Write { .. })));
        assert!(!path.exists(), "a private half of no key");
    }

    #[test]
    fn the_two_halves_are_not_taken_for_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab");
        let public = new_key(&path).expect("room");
        assert!(matches!(
            SigningKey::read(&public),
            Err(KeyError::NoKey { .. })
        ));
        assert!(matches!(
            VerifyingKey::read(&path),
            Err(KeyError::NoKey { .. })
        ));
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(
            SigningKey::read(&nowhere),
            Err(KeyError::Read { .. })
        ));
    }
}
