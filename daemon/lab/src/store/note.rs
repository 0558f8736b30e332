//! Where the daemon had its store, noted in the lab's folder for commands.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::error::StoreError;
use super::place::StorePlace;

/// There if the store is on a server: on which.
const NOTE: &str = "store.json";

impl StorePlace {
    /// Where the last daemon of the lab in `folder` had its store, whatever configuration it was started with.
    pub fn of_lab(folder: &Path) -> Result<StorePlace, StoreError> {
        let path = folder.join(NOTE);
        let place = StorePlace::in_folder(folder);
        let noted = match fs::read(&path) {
            Ok(note) => serde_json::from_slice(&note).map_err(Into::into),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(place),
            Err(error) => Err(error),
        };
        match noted {
            Ok(server) => Ok(place.on(server)),
            Err(source) => Err(StoreError::Folder { path, source }),
        }
    }

    /// Notes that it is here.
    pub(super) fn note(&self) -> Result<(), StoreError> {
        let path = self.folder().join(NOTE);
        let written = match self.server() {
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Some(server) => write(&path, self.folder(), &serde_json::json!(server).to_string()),
        };
        written.map_err(|source| StoreError::Folder { path, source })
    }
}

/// Writes a file as a whole, which nobody else can read.
fn write(path: &Path, folder: &Path, text: &str) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
