//! The lab's own copies of models and evaluation sets, each named by its SHA-256: what users do to their files after
//! they submitted a job is no concern of it. They are in a folder, or in an object store with the folder as its cache.

mod in_use;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use layerlab_model::ModelError;
use layerlab_objects::{Objects, ObjectsError};
use layerlab_profiles::accuracy::SetError;
use layerlab_profiles::sha256;
use tokio::task::spawn_blocking;

use super::job::{ModelSpec, TwinSpec};
use in_use::Uses;
use layerlab_campaign::{ModelFile, QuantisedTwin, SetFile};
use layerlab_farm::folders::write_whole;

pub use in_use::InUse;

/// The folder of copies, and the object store that has all of them, if there is one.
#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
    shared: Option<Shared>,
    uses: Uses,
}

/// Where copies are that the folder only keeps at hand.
#[derive(Clone, Debug)]
struct Shared {
    objects: Objects,
    /// The folder takes so many bytes at most, unless what is in use takes more.
    limit: u64,
}

/// Why copies are not in the object store, or not at hand.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// The object store does not take or give them.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The folder does not.
    #[error("cannot use {}: {source}; make room, or let the daemon's user write there", folder.display())]
    Folder {
        /// The folder of copies.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be read, or is not what was put there.
    #[error("the lab's copy of {what} cannot be used: {source}; submit the job again")]
    Read {
        /// What was copied, in words: a model or an evaluation set.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is no model any more.
    #[error(
        "the lab's copy of {what} was kept by another version of layerlab: {source}; submit the job again"
    )]
    Model {
        /// The model that was copied, in words.
        what: String,
        /// Why this version cannot read the copy.
        source: ModelError,
    },
    /// It is no evaluation set any more.
    #[error(
        "the lab's copy of {what} was kept by another version of layerlab: {source}; submit the job again"
    )]
    Set {
        /// The evaluation set that was copied, in words.
        what: String,
        /// Why this version cannot read the copy.
        source: SetError,
    },
}

impl Library {
    /// The library in the folder `state`.
    pub fn in_state(state: &Path) -> Library {
        Library::in_folder(&state.join("lab/files"))
    }

    /// The library in `folder`, which several hosts may share.
    pub fn in_folder(folder: &Path) -> Library {
        Library {
            folder: folder.to_owned(),
            shared: None,
            uses: Uses::default(),
        }
    }

    /// The same with its copies in `objects`: the folder keeps those at hand that were used last, of at most `limit` bytes
    /// together.
    #[must_use]
    pub fn before(self, objects: Objects, limit: u64) -> Library {
        Library {
            shared: Some(Shared { objects, limit }),
            ..self
        }
    }

    /// Where the copies are that all hosts find, if not in the folder.
    pub fn objects(&self) -> Option<&Objects> {
        self.shared.as_ref().map(|shared| &shared.objects)
    }

    /// Where the copies are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The copies, with their hashes.
    pub fn copies(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let copy = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            Ok((name.to_string_lossy().into_owned(), path))
        };
        entries.map(copy).collect()
    }

    /// Keeps `bytes`, whose hash is `sha256`, whole or not at all.
    pub fn put(&self, bytes: &[u8], sha256: &str) -> io::Result<()> {
        let path = self.path(sha256)?;
        // A copy of another length was altered, and is mended.
        match std::fs::metadata(&path) {
            // It is as good as new, and not one to be removed for its age.
            Ok(there) if there.len() == bytes.len() as u64 => self.touch(sha256),
            _ => write_whole(&path, bytes),
        }
    }

    /// Sees that what was just put under these hashes is in the object store, too, if there is one: what names it may be told to
    /// other hosts then.
    ///
    /// # Errors
    /// When the object store does not take it.
    pub async fn share(&self, hashes: &[String]) -> Result<(), SharingError> {
        let Some(shared) = &self.shared else {
            return Ok(());
        };
        for hash in hashes {
            let bytes = self.aside(hash, Library::get).await?;
            shared.objects.keep(hash, bytes).await?;
        }
        self.make_room(shared.limit).await;
        Ok(())
    }

    /// Sees that what was put under these hashes is at hand, where it is in an object store; elsewhere nothing can be fetched.
    ///
    /// # Errors
    /// When the object store does not give it.
    pub async fn fetch(&self, hashes: &[String]) -> Result<(), SharingError> {
        let Some(shared) = &self.shared else {
            return Ok(());
        };
        // Each stays until all of them are there.
        let _in_use = self.using(hashes);
        for hash in hashes {
            let looked = self.aside(hash, |library, hash| match library.get(hash) {
                Ok(_) => library.touch(hash),
                Err(error) => Err(error),
            });
            if looked.await.is_ok() {
                continue;
            }
            let bytes = shared.objects.fetch(hash).await?;
            self.aside(hash, move |library, hash| library.put(&bytes, hash))
                .await?;
        }
        self.make_room(shared.limit).await;
        Ok(())
    }

    /// Keeps the copies of these hashes at hand until what is returned is dropped.
    pub fn using(&self, hashes: &[String]) -> InUse {
        self.uses.of(hashes)
    }

    /// Removes what was used least lately until the folder takes no more than `limit` bytes. What is in use stays.
    async fn make_room(&self, limit: u64) {
        let removing = self.aside("", move |library, _| library.remove_beyond(limit));
        // Nothing depends on it, and the next one tries again.
        if let Err(error) = removing.await {
            tracing::warn!(%error, "the cache of the object store takes more than it may");
        }
    }

    fn remove_beyond(&self, limit: u64) -> io::Result<()> {
        let mut all = Vec::new();
        for (name, path) in self.copies()? {
            // What is being written is not among them, nor what somebody else has put there.
            if self.path(&name).is_ok()
                && let Ok(there) = std::fs::metadata(&path)
            {
                let used = there.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                all.push((used, there.len(), name, path));
            }
        }
        all.sort();
        let mut taken: u64 = all.iter().map(|(_, bytes, ..)| bytes).sum();
        for (_, bytes, name, path) in all {
            if taken <= limit {
                break;
            }
            if self.uses.has(&name) {
                continue;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => taken -= bytes,
            }
        }
        Ok(())
    }

    /// It was used now, and goes after what was not.
    fn touch(&self, sha256: &str) -> io::Result<()> {
        let file = File::options().append(true).open(self.path(sha256)?)?;
        file.set_modified(SystemTime::now())
    }

    /// Does what takes a while with a copy, aside from what must not wait.
    async fn aside<T: Send + 'static>(
        &self,
        hash: &str,
        doing: impl FnOnce(&Library, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, SharingError> {
        let (library, hash) = (self.clone(), hash.to_owned());
        let done = spawn_blocking(move || doing(&library, &hash)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|source| SharingError::Folder {
            folder: self.folder.clone(),
            source,
        })
    }

    /// Whether anything is kept under `sha256`; what it is shows when it is read.
    pub fn has(&self, sha256: &str) -> bool {
        self.path(sha256).is_ok_and(|path| path.is_file())
    }

    /// What was kept under `sha256`, if it still has that hash.
    pub fn get(&self, sha256: &str) -> io::Result<Vec<u8>> {
        let path = self.path(sha256)?;
        let bytes = std::fs::read(&path)?;
        if self::sha256(&bytes) == sha256 {
            return Ok(bytes);
        }
        // The next to submit it puts a sound one there.
        let _ = std::fs::remove_file(&path);
        let message = format!("{} was altered", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// The model that a job asks for, as it was when the job was submitted.
    pub fn model(&self, spec: &ModelSpec) -> Result<ModelFile, LibraryError> {
        let what = || format!("the model `{}`", spec.path.display());
        let onnx = (self.get(&spec.sha256)).map_err(|source| LibraryError::Read {
            what: what(),
            source,
        })?;
        let (source_sha256, external) = (spec.source_sha256.clone(), spec.external_weights.clone());
        let restored = ModelFile::restore(onnx, source_sha256, external);
        let mut model = restored.map_err(|source| LibraryError::Model {
            what: what(),
            source,
        })?;
        model.quantised = spec
            .quantised
            .as_ref()
            .map(|twin| self.twin(twin))
            .transpose()?;
        Ok(model)
    }

    /// The quantised twin that a job asks for, as it was when the job was submitted.
    fn twin(&self, spec: &TwinSpec) -> Result<QuantisedTwin, LibraryError> {
        let onnx = self
            .get(&spec.sha256)
            .map_err(|source| LibraryError::Read {
                what: format!("the quantised model `{}`", spec.path.display()),
                source,
            })?;
        Ok(QuantisedTwin {
            onnx,
            sha256: spec.sha256.clone(),
            source: spec.source.clone(),
        })
    }

    /// The evaluation set whose file has the hash `sha256`.
    pub fn set(&self, sha256: &str) -> Result<SetFile, LibraryError> {
        let what = || format!("the evaluation set {}", sha256.get(..12).unwrap_or(sha256));
        let bytes = self.get(sha256).map_err(|source| LibraryError::Read {
            what: what(),
            source,
        })?;
        SetFile::from_bytes(bytes).map_err(|source| LibraryError::Set {
            what: what(),
            source,
        })
    }

    /// Hashes come from elsewhere, and must not lead out of the folder.
    fn path(&self, sha256: &str) -> io::Result<PathBuf> {
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if sha256.len() == 64 && sha256.bytes().all(hexadecimal) {
            return Ok(self.folder.join(sha256));
        }
        let message = format!("`{sha256}` is no SHA-256");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

#[cfg(test)]
mod tests;
