//! A profile that the lab has published, found by the number of its run, and its files.

use std::fmt::Display;
use std::io;
use std::ops::Deref;
use std::path::Path;

use axum::http::StatusCode;
use layerlab_lab::query::{IndexedProfile, indexed_profiles};
use layerlab_lab::record::RunNumber;
use layerlab_lab::store::Reader;
use layerlab_profiles::document::Profile;

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
