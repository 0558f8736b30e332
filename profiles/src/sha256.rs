//! SHA-256 in hexadecimal: the name of a file's content, in profiles and on devices.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `bytes`, as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hash = Hash::default();
    hash.update(bytes);
    hash.finish()
}

/// The SHA-256 of bytes that come one portion after the other.
#[derive(Clone, Debug, Default)]
pub struct Hash(Sha256);

impl Hash {
    /// The next portion.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// What `sha256sum` prints of all portions together.
    pub fn finish(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_sha256sum_prints() {
        assert_eq!(
            sha256(b"layerlab\n"),
            "712ae41cb5a973b05cd1146370d050f8aa91975722f6fa66c52cd6329f47d12d"
        );
        let mut hash = Hash::default();
        for portion in [&b"layer"[..], b"", b"lab\n"] {
            hash.update(portion);
        }
        assert_eq!(hash.finish(), sha256(b"layerlab\n"));
    }
}
