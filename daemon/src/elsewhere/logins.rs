//! The tokens that this user has for labs elsewhere, in a file that nobody else reads.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ElsewhereError, LabUrl};
use layerlab_farm::folders::write_whole;

/// What is kept of a lab.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// What each request is sent with.
    pub(crate) token: String,
    /// The file with the certificates of who vouches for it, if browsers know no such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
}

/// The file with all of them.
pub(crate) struct Logins {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    labs: BTreeMap<String, Login>,
}

impl Logins {
    /// In `layerlab` of `XDG_CONFIG_HOME`, else of `~/.config`.
    pub(crate) fn of_this_user() -> Logins {
        let set = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
        let folder = set("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = || set("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = folder.unwrap_or_else(|| home().join(".config"));
        Logins {
            path: folder.join("layerlab/logins.json"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn of(&self, url: &LabUrl) -> Result<Option<Login>, ElsewhereError> {
        Ok(self.read()?.labs.remove(url.as_str()))
    }

    pub(crate) fn keep(&self, url: &LabUrl, login: Login) -> Result<(), ElsewhereError> {
        let mut document = self.read()?;
        document.labs.insert(url.as_str().to_owned(), login);
        self.write(&document)
    }

    /// Whether there was one to forget.
    pub(crate) fn forget(&self, url: &LabUrl) -> Result<bool, ElsewhereError> {
        let mut document = self.read()?;
        match document.labs.remove(url.as_str()) {
            None => Ok(false),
            Some(_) => self.write(&document).map(|()| true),
        }
    }

    fn read(&self) -> Result<Document, ElsewhereError> {
        let path = || self.path.clone();
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Document::default());
            }
            text => text.map_err(|error| self.failed(error))?,
        };
        let metadata = std::fs::metadata(&self.path).map_err(|error| self.failed(error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(ElsewhereError::Readable { path: path() });
        }
        serde_json::from_slice(&text).map_err(|error| self.failed(error.into()))
    }

    fn write(&self, document: &Document) -> Result<(), ElsewhereError> {
        let text = serde_json::to_string_pretty(document);
        let text = text.map_err(|error| self.failed(error.into()))?;
        write_whole(&self.path, text.as_bytes()).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> ElsewhereError {
        ElsewhereError::Logins {
            path: self.path.clone(),
            source,
        }
    }
}
