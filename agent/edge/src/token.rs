//! The secret that phone and server share.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rand::RngCore as _;

/// As many bytes as nobody guesses.
pub(crate) const TOKEN_BYTES: usize = 32;

/// The secret that a client must know.
#[derive(Clone)]
pub struct Token([u8; TOKEN_BYTES]);

/// A file that holds no token, or should not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error(
        "cannot read the token in {}: {source}; `layerlab edge-server` makes one, copy it from there", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be made.
    #[error("cannot make the token file {}: {source}; choose another --token-file", path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read it.
    #[error("the token in {} is no secret, for its mode is {mode:o}: remove it and let `layerlab edge-server` make another", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It holds something else.
    #[error("{} holds no token, which is a line of {} hexadecimal digits: copy the server's file again", path.display(), 2 * TOKEN_BYTES)]
    NotAToken {
        /// The file.
        path: PathBuf,
    },
}

impl Token {
    /// The token of these bytes.
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Token {
        Token(bytes)
    }

    /// A new one, from the system's randomness.
    pub fn random() -> Token {
        let mut bytes = [0; TOKEN_BYTES];
        rand::rng().fill_bytes(&mut bytes);
        Token(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; TOKEN_BYTES] {
        &self.0
    }

    /// The token that these hexadecimal digits are, if they are one.
    pub fn from_hex(digits: &str) -> Option<Token> {
        parse(digits.as_bytes())
    }

    /// Its hexadecimal digits, for a channel that is as secret as the token.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The token in the file at `path`, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// When the file is not there, is open to others, or holds something else.
    pub fn read(path: &Path) -> Result<Token, TokenFileError> {
        let failed = |source| TokenFileError::Read {
            path: path.to_owned(),
            source,
        };
        let mode = fs::metadata(path).map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TokenFileError::Open {
                path: path.to_owned(),
                mode,
            });
        }
        let text = fs::read(path).map_err(failed)?;
        parse(&text).ok_or_else(|| TokenFileError::NotAToken {
            path: path.to_owned(),
        })
    }

    /// The token in the file at `path`; if there is no such file, it is made with a new one and mode 0600.
    ///
    /// # Errors
    /// As [`Token::read`], or when the file cannot be made.
    pub fn read_or_make(path: &Path) -> Result<Token, TokenFileError> {
        let failed = |source| TokenFileError::Make {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Token::read(path),
            made => made.map_err(failed)?,
        };
        let token = Token::random();
        writeln!(file, "{}", token.to_hex()).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(token)
    }
}

fn parse(text: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    if text.len() != 2 * TOKEN_BYTES || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; TOKEN_BYTES];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(Token(bytes))
}

impl PartialEq for Token {
    /// Takes as long whichever bytes differ, so that time does not tell a guesser how near a guess is.
    fn eq(&self, other: &Token) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        // Each step is hidden from the optimiser, which may not leave early.
        let different = pairs.fold(0, |so_far, (one, other)| black_box(so_far | (one ^ other)));
        black_box(different) == 0
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    /// Never the secret itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn tokens_that_differ_in_one_bit_anywhere_are_different() {
        let token = Token::random();
        assert_eq!(token, token.clone());
        for bit in 0..8 * TOKEN_BYTES {
            let mut bytes = token.0;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(token, Token(bytes), "bit {bit}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn a_token_file_is_made_once_and_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/token");
        let made = Token::read_or_make(&path).expect("room");
        let mode = fs::metadata(&path).expect("it is there").mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(Token::read(&path).expect("it is there"), made);
        assert_eq!(Token::read_or_make(&path).expect("it is there"), made);
        assert_ne!(Token::random(), made);
    }

    #[test]
    fn a_file_that_is_missing_open_to_others_or_no_token_is_refused_with_its_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let refused = || Token::read(&path).expect_err("no token").to_string();
        assert!(refused().contains("layerlab edge-server"), "{}", refused());
        Token::read_or_make(&path).expect("room");
        let text = fs::read_to_string(&path).expect("ours");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("ours");
        assert!(refused().contains("its mode is 644"), "{}", refused());
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("ours");
        for wrong in [
            "",
            "ab\n",
            &text[1..],
            &format!("{text}00"),
            &text.replace(&text[..1], "g"),
        ] {
            fs::write(&path, wrong).expect("room");
            assert!(
                refused().contains("64 hexadecimal digits"),
                "{wrong}: {}",
                refused()
            );
        }
    }
}
