//! A profile that the lab has published, found by the number of its run, and its files.

use std::fmt::Display;
use std::io::{self, Cursor, Write};
use std::ops::Deref;
use std::path::Path;

use axum::http::StatusCode;
use layerlab_lab::query::{IndexedProfile, indexed_profiles};
use layerlab_lab::record::RunNumber;
use layerlab_lab::store::Reader;
use layerlab_profiles::document::{Profile, STEADY_FOLDER};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use crate::problem::{Problem, ProblemKind};

/// A published profile.
pub(crate) struct PublishedProfile(pub(crate) IndexedProfile);

impl Deref for PublishedProfile {
    type Target = IndexedProfile;

    fn deref(&self) -> &IndexedProfile {
        &self.0
    }
}

impl PublishedProfile {
    /// The profile of a run.
    pub(crate) async fn of_run(reader: &Reader, run: RunNumber) -> Result<Self, Problem> {
        let kept = reader.all().await?;
        let mut profiles = indexed_profiles(&kept, None, None).into_iter();
        profiles
            .find(|profile| profile.run == run)
            .map(PublishedProfile)
            .ok_or_else(|| Problem::not_found(format!("run {run} has published no profile")))
    }

    /// Its tables.
    pub(crate) fn read(&self) -> Result<Profile, Problem> {
        Profile::read(&self.folder).map_err(|error| self.gone(&error))
    }

    /// The names of its files, in order.
    pub(crate) fn files(&self) -> Result<Vec<String>, Problem> {
        files(&self.folder).map_err(|error| self.gone(&error))
    }

    /// The content of a file, if it has one of this name. Only what the folder lists is opened: a name that leads elsewhere is
    /// none of these.
    pub(crate) fn file(&self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let mut files = self.files()?.into_iter();
        match files.find(|file| file == name) {
            Some(file) => std::fs::read(self.folder.join(file))
                .map(Some)
                .map_err(|error| self.gone(&error)),
            None => Ok(None),
        }
    }

    /// All its files in a ZIP archive, with those of the steady state in a folder of their own. The same files give the same
    /// archive.
    pub(crate) fn archive(&self) -> Result<Vec<u8>, Problem> {
        let packed = pack(&self.folder);
        packed.map_err(|error| self.gone(&error))
    }

    fn gone(&self, error: &dyn Display) -> Problem {
        let run = self.run;
        tracing::warn!(run, %error, "a published profile cannot be read");
        let detail = format!("the folder of the profile of run {run} is gone, or cannot be read");
        Problem::new(StatusCode::GONE, ProblemKind::Input, detail)
    }
}

/// The names of the regular files in a folder, in order.
fn files(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

fn pack(folder: &Path) -> io::Result<Vec<u8>> {
    // The time of publication is not that of the files here, and profiles say when they were measured.
    let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut names = files(folder)?;
    let steady = folder.join(STEADY_FOLDER);
    if steady.is_dir() {
        let inner = files(&steady)?.into_iter();
        names.extend(inner.map(|name| format!("{STEADY_FOLDER}/{name}")));
    }
    for name in names {
        archive.start_file(name.as_str(), options)?;
        archive.write_all(&std::fs::read(folder.join(&name))?)?;
    }
    Ok(archive.finish()?.into_inner())
}
