//! What the lab publishes, in the object store: files by their hashes, and a note that names them, which is written last and once.
//! Whoever finds the note finds all files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use layerlab_campaign::publish::{PublishError, Staging};
use layerlab_objects::{Objects, ObjectsError};
use layerlab_profiles::sha256;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::library::SharingError;
use crate::record::Run;

/// What the lab publishes, in the object store.
#[derive(Clone, Debug)]
pub struct SharedProfiles {
    objects: Objects,
    /// The name of the lab's store, by which its notes are told from those of other labs.
    lab: String,
}

/// The form of notes.
const FORMAT: u32 = 1;

/// What a run has published.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PublicationNote {
    format: u32,
    /// In the order of their names.
    files: Vec<NotedFile>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotedFile {
    /// In the published folder, with `/` between the folder in it and its own.
    name: String,
    sha256: String,
    bytes: u64,
}

impl SharedProfiles {
    /// Those of the lab whose store has this name.
    pub fn new(objects: Objects, lab: String) -> SharedProfiles {
        SharedProfiles { objects, lab }
    }

    /// What the note of a run's publication is called. Each attempt has one of its own, and is made by one host. A lab that was
    /// restored from a backup may number another run alike, which did not begin in the same nanosecond.
    fn note(&self, run: &Run) -> String {
        let (number, attempt) = (run.number, run.attempt);
        let began = run.started.map_or(0, |started| started.as_nanosecond());
        format!(
            "runs/{}/run-{number}-attempt-{attempt}-{began}.json",
            self.lab
        )
    }

    /// Puts what a run has published in `folder` into the object store. If the run has been there before, because the daemon was
    /// killed before it could say so, that is put into the folder in its place.
    ///
    /// # Errors
    /// When the object store does not take it.
    pub async fn put(&self, run: &Run, folder: &Path) -> Result<(), SharingError> {
        let failed = folder_error(folder);
        let within = folder.to_owned();
        let names = aside(move || names(&within)).await.map_err(&failed)?;
        let mut files = Vec::new();
        for name in names {
            let path = folder.join(&name);
            let bytes = aside(move || fs::read(path)).await.map_err(&failed)?;
            let (hash, length) = (sha256(&bytes), bytes.len() as u64);
            self.objects.keep(&hash, bytes).await?;
            files.push(NotedFile {
                name,
                sha256: hash,
                bytes: length,
            });
        }
        let note = PublicationNote {
            format: FORMAT,
            files,
        };
        let text = serde_json::to_vec_pretty(&note).map_err(|error| failed(error.into()))?;
        if self.objects.write_new(&self.note(run), text).await? {
            return Ok(());
        }
        let there = self.read_note(run).await?;
        match there == note {
            true => Ok(()),
            false => self.bring_files(there, folder, true).await,
        }
    }

    /// Brings what a run has published into `folder`, whole or not at all.
    ///
    /// # Errors
    /// When the object store does not give it, or the folder is there or cannot be written.
    pub async fn bring(&self, run: &Run, folder: &Path) -> Result<(), SharingError> {
        let note = self.read_note(run).await?;
        self.bring_files(note, folder, false).await
    }

    async fn read_note(&self, run: &Run) -> Result<PublicationNote, SharingError> {
        let name = self.note(run);
        let text = self.objects.note_of(&name).await?;
        let note: Option<PublicationNote> = serde_json::from_slice(&text).ok();
        // Nothing of it leads out of the folder that it becomes.
        let is_sound = |note: &PublicationNote| {
            note.format == FORMAT && note.files.iter().all(|file| is_plain(&file.name))
        };
        let place = self.objects.place().to_string();
        note.filter(is_sound)
            .ok_or(ObjectsError::Altered { place, name }.into())
    }

    async fn bring_files(
        &self,
        note: PublicationNote,
        folder: &Path,
        replace: bool,
    ) -> Result<(), SharingError> {
        let failed = folder_error(folder);
        let staging = Staging::prepare(folder, replace).map_err(|error| failed(cause(error)))?;
        for file in note.files {
            let bytes = self.objects.fetch(&file.sha256).await?;
            let path = staging.folder().join(&file.name);
            aside(move || write(&path, &bytes)).await.map_err(&failed)?;
        }
        let published = aside(move || staging.publish_as_it_is().map_err(cause));
        published.await.map_err(&failed)
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The names of the files in a published folder and in the folders in it, in order.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type()?.is_dir() {
            true => {
                let within = self::names(&entry.path())?.into_iter();
                names.extend(within.map(|inner| format!("{name}/{inner}")));
            }
            false => names.push(name),
        }
    }
    names.sort();
    Ok(names)
}

fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn folder_error(folder: &Path) -> impl Fn(io::Error) -> SharingError + use<> {
    let folder: PathBuf = folder.to_owned();
    move |source| SharingError::Folder {
        folder: folder.clone(),
        source,
    }
}

fn cause(error: PublishError) -> io::Error {
    match error {
        PublishError::Folder { source, .. } | PublishError::File { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Does what waits for a disk aside from what must not wait.
async fn aside<T: Send + 'static>(
    doing: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = spawn_blocking(doing).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
