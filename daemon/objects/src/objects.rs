//! Keeps and fetches files by their hashes, and writes and reads the notes that name them.

use std::sync::Arc;

use bytes::Bytes;
use layerlab_profiles::sha256;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::time::timeout;

use crate::deadline::carrying;
use crate::{ObjectsError, ObjectsPlace, S3Variables, server};

/// With what it takes to try again.
const WITH_RETRIES: u32 = 2;

/// What says that a lab's files are here; also by which it is known that the server writes only what is not there yet.
const MARK: &str = "layerlab.json";

/// A lab's files in a bucket or a folder.
#[derive(Clone, Debug)]
pub struct Objects {
    place: ObjectsPlace,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Objects {
    /// The files at `place`; those in a bucket are reached as `variables` say. Asks no server.
    ///
    /// # Errors
    /// When the variables lead nowhere, or the folder cannot be made.
    pub fn open(place: &ObjectsPlace, variables: &S3Variables) -> Result<Objects, ObjectsError> {
        let (store, prefix): (Arc<dyn ObjectStore>, _) = match place {
            ObjectsPlace::Bucket { bucket, prefix } => (
                Arc::new(server::bucket(bucket, variables)?),
                prefix.as_str(),
            ),
            ObjectsPlace::Folder(folder) => {
                let failed = |reason: String| ObjectsError::Folder {
                    place: folder.display().to_string(),
                    reason,
                };
                let made = std::fs::create_dir_all(folder);
                made.map_err(|error| failed(error.to_string()))?;
                let store = LocalFileSystem::new_with_prefix(folder);
                let store = store.map_err(|error| failed(crate::error::deepest(&error)))?;
                (Arc::new(store.with_fsync(true)), "")
            }
        };
        Ok(Objects {
            place: place.clone(),
            store,
            // A place has such names alone.
            prefix: Path::from(prefix),
        })
    }

    /// Where the files are.
    pub fn place(&self) -> &ObjectsPlace {
        &self.place
    }

    /// Sees whether files can be kept here, and what is there is not replaced.
    ///
    /// # Errors
    /// When not, and why.
    pub async fn prove(&self) -> Result<(), ObjectsError> {
        const CONTENT: &[u8] = b"{\"format\":1}\n";
        let is_new = self.write_new(MARK, CONTENT.to_vec()).await?;
        // What is there must not be written again.
        match is_new && self.write_new(MARK, CONTENT.to_vec()).await? {
            true => Err(ObjectsError::NotConditional {
                place: self.place.to_string(),
            }),
            false => Ok(()),
        }
    }

    /// Keeps `bytes`, whose hash is `hash`, unless they are there.
    ///
    /// # Errors
    /// When that cannot be done now, or not at all.
    pub async fn keep(&self, hash: &str, bytes: Vec<u8>) -> Result<(), ObjectsError> {
        let path = self.file(hash);
        let length = bytes.len() as u64;
        let keeping = async {
            match self.store.head(&path).await {
                // One of another length was altered, and is mended.
                Ok(there) if there.size == length => return Ok(()),
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed(hash, &error)),
            }
            let put = self.store.put(&path, Bytes::from(bytes).into()).await;
            put.map(drop).map_err(|error| self.failed(hash, &error))
        };
        self.in_time(length, keeping).await
    }

    /// The bytes whose hash is `hash`.
    ///
    /// # Errors
    /// When they are not there, are others, or do not come in time.
    pub async fn fetch(&self, hash: &str) -> Result<Vec<u8>, ObjectsError> {
        let bytes = self.read(&self.file(hash), hash).await?;
        match sha256(&bytes) == hash {
            true => Ok(bytes),
            false => Err(ObjectsError::Altered {
                place: self.place.to_string(),
                name: hash.to_owned(),
            }),
        }
    }

    /// Writes a note of this name, unless there is one. Whether there was none.
    ///
    /// # Errors
    /// When that cannot be done now, or not at all.
    pub async fn write_new(&self, name: &str, content: Vec<u8>) -> Result<bool, ObjectsError> {
        let (path, length) = (self.note(name), content.len() as u64);
        let writing = async {
            let options = PutOptions::from(PutMode::Create);
            let payload = Bytes::from(content).into();
            match self.store.put_opts(&path, payload, options).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(error) => Err(self.failed(name, &error)),
            }
        };
        self.in_time(length, writing).await
    }

    /// The note of this name.
    ///
    /// # Errors
    /// When it is not there, or does not come in time.
    pub async fn note_of(&self, name: &str) -> Result<Vec<u8>, ObjectsError> {
        self.read(&self.note(name), name).await
    }

    async fn read(&self, path: &Path, name: &str) -> Result<Vec<u8>, ObjectsError> {
        let asking = async {
            let found = self.store.get(path).await;
            found.map_err(|error| self.failed(name, &error))
        };
        let found = self.in_time(0, asking).await?;
        let length = found.meta.size;
        let reading = async {
            let bytes = found.bytes().await;
            bytes.map_err(|error| self.failed(name, &error))
        };
        Ok(self.in_time(length, reading).await?.into())
    }

    async fn in_time<T>(
        &self,
        bytes: u64,
        doing: impl Future<Output = Result<T, ObjectsError>>,
    ) -> Result<T, ObjectsError> {
        let deadline = carrying(bytes) * WITH_RETRIES;
        match timeout(deadline, doing).await {
            Ok(done) => done,
            Err(_) => Err(ObjectsError::late(&self.place, deadline)),
        }
    }

    fn failed(&self, name: &str, error: &object_store::Error) -> ObjectsError {
        ObjectsError::of(&self.place, name, error)
    }

    /// Where the file with this hash is. Folders with many thousand files are slow to list.
    fn file(&self, hash: &str) -> Path {
        let first = hash.get(..2).unwrap_or(hash);
        (self.prefix.clone().join("sha256")).join(first).join(hash)
    }

    fn note(&self, name: &str) -> Path {
        let parts = name.split('/');
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }
}
