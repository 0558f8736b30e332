//! Who may ask: tokens, of which the lab keeps the hashes, in a file of its own beside its store. Commands write it without
//! the daemon, and the daemon reads it for each request, so that a token that is revoked is refused at once.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use layerlab_farm::folders::{make_private, write_whole};
use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

/// What a token allows; each role allows what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks at everything.
    Viewer,
    /// Gives the lab jobs, reserves devices, and leaves them alone.
    Operator,
    /// Sees who has tokens, and revokes them.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        })
    }
}

/// A token as the lab keeps it: not the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Who has it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends, if it does by itself.
    pub expires: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked: Option<Timestamp>,
}

impl Token {
    /// Whether it allows anything at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| now < expires)
    }
}

/// A token that was just made; only whoever made it ever sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken(String);

impl NewToken {
    /// What is sent with each request.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewToken(..)")
    }
}

/// Why a token is not made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot keep tokens in {}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody could not be told from another.
    #[error(
        "there is a token `{0}` already; revoke it by `layerlab token revoke`, or choose another name"
    )]
    Taken(String),
    /// Lists and the event log could not show it.
    #[error("`{0}` is no name for a token; write 1 to 64 letters, digits, `-`, `_`, `.` or `@`")]
    Name(String),
    /// Nobody has it.
    #[error("there is no valid token `{0}`; `layerlab token list` says which there are")]
    Unknown(String),
    /// It would never be of use.
    #[error("the token would have ended already; give a later --expires")]
    Over,
}

/// The file with the tokens of a lab.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    tokens: Vec<Token>,
}

const VERSION: u32 = 1;

/// What tokens begin with, so that one that went astray is recognised.
const PREFIX: &str = "layerlab_";

impl TokenFile {
    /// Of the lab with the folder `state`.
    pub fn in_state(state: &Path) -> TokenFile {
        TokenFile {
            path: state.join("lab/tokens.json"),
        }
    }

    /// All tokens there ever were, those of which the name was used again apart.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(|source| self.failed(source))?,
        };
        let document: Document =
            serde_json::from_slice(&text).map_err(|error| self.failed(error.into()))?;
        if document.version != VERSION {
            let version = document.version;
            let message = format!("it is of version {version}, and this program knows {VERSION}");
            return Err(self.failed(io::Error::other(message)));
        }
        Ok(document.tokens)
    }

    /// Makes a token.
    pub fn create(
        &self,
        name: &str,
        role: Role,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<NewToken, TokenError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            return Err(TokenError::Name(name.to_owned()));
        }
        if expires.is_some_and(|expires| expires <= now) {
            return Err(TokenError::Over);
        }
        let mut bytes = [0_u8; 32];
        rand::rng().fill(&mut bytes);
        let secret = format!("{PREFIX}{}", hexadecimal(&bytes));
        let token = Token {
            name: name.to_owned(),
            role,
            sha256: hexadecimal(&Sha256::digest(&secret)),
            created: now,
            expires,
            revoked: None,
        };
        self.change(|tokens| {
            let same = |other: &Token| other.name == token.name;
            if tokens.iter().any(|one| same(one) && one.is_valid(now)) {
                return Err(TokenError::Taken(token.name));
            }
            tokens.retain(|one| !same(one));
            tokens.push(token);
            Ok(())
        })?;
        Ok(NewToken(secret))
    }

    /// Revokes the token of this name.
    pub fn revoke(&self, name: &str, now: Timestamp) -> Result<(), TokenError> {
        self.change(|tokens| {
            let meant = |token: &&mut Token| token.name == name && token.is_valid(now);
            match tokens.iter_mut().find(meant) {
                Some(token) => token.revoked = Some(now),
                None => return Err(TokenError::Unknown(name.to_owned())),
            }
            Ok(())
        })
    }

    /// The valid token that `secret` is. It takes as long whichever token it is nearly.
    pub fn find(&self, secret: &str, now: Timestamp) -> Result<Option<Token>, TokenError> {
        let sha256 = hexadecimal(&Sha256::digest(secret));
        let mut found = None;
        for token in self.list()? {
            if bool::from(token.sha256.as_bytes().ct_eq(sha256.as_bytes())) {
                found = Some(token);
            }
        }
        Ok(found.filter(|token| token.is_valid(now)))
    }

    /// Whether this token is still there, and allows anything at `now`.
    pub fn has(&self, token: &Token, now: Timestamp) -> Result<bool, TokenError> {
        let tokens = self.list()?.into_iter();
        let mut same = tokens.filter(|one| one.sha256 == token.sha256);
        Ok(same.any(|one| one.is_valid(now)))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let failed = |source| self.failed(source);
        if let Some(folder) = self.path.parent() {
            make_private(folder).map_err(failed)?;
        }
        let lock = File::create(self.path.with_extension("lock")).map_err(failed)?;
        // Held for two file operations: whoever has it gives it back at once.
        lock.lock().map_err(failed)?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let document = Document {
            version: VERSION,
            tokens,
        };
        let text = serde_json::to_string_pretty(&document).map_err(|error| failed(error.into()))?;
        write_whole(&self.path, text.as_bytes()).map_err(failed)
    }

    fn failed(&self, source: io::Error) -> TokenError {
        TokenError::File {
            path: self.path.clone(),
            source,
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
