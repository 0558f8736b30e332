//! Publication: a profile that passes its checks becomes visible in one rename, whole or not at all.

mod file;
mod signature;

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use layerlab_profiles::check::{Finding, Severity, check};
use layerlab_profiles::document::{DocumentError, PROFILE_JSON, Profile, STEADY_FOLDER};
use layerlab_profiles::folder::{FolderError, FolderFinding};
use layerlab_profiles::link::{LinkDocument, check_link};
use layerlab_profiles::tensors::{TensorsDocument, check_tensors};
use layerlab_profiles::video::{VideoDocument, check_video};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::plot;

pub use file::StagedFile;
pub use signature::{KeyError, SIGNATURE, SignatureError, SigningKey, VerifyingKey, new_key};

/// The picture beside a profile's tables.
pub const PLOT: &str = "plot.svg";

/// A place for a profile that is not yet visible, beside where it will be.
///
/// Made before measuring, so that a folder that cannot be written costs no night. Dropping it removes
/// whatever is in it.
pub struct Staging {
    folder: TempDir,
    target: PathBuf,
    replace: bool,
    key: Option<SigningKey>,
}

/// Why a profile was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There is something already.
    #[error("{} exists already; choose another --out, or --replace it", path.display())]
    Exists {
        /// The folder that was to be published.
        path: PathBuf,
    },
    /// The folder for the profile cannot be written.
    #[error("cannot write to {}: {source}; choose another --out", path.display())]
    Folder {
        /// The folder that cannot be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The files cannot be written.
    #[error("{source}; nothing was published: make room, or choose another --out")]
    Document {
        /// Which file, and why.
        source: DocumentError,
    },
    /// A single file cannot be written.
    #[error("cannot write `{}`: {source}; nothing was published: make room, or choose another --out", path.display())]
    File {
        /// The file that cannot be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The profile contradicts itself.
    #[error(
        "the profile contradicts itself and was not published: {}{}",
        list(findings),
        where_it_is(kept.as_deref())
    )]
    Unfit {
        /// The errors that were found.
        findings: Vec<Finding>,
        /// Where it was [kept](keep_refused).
        kept: Option<PathBuf>,
    },
    /// The files of a document other than a profile cannot be written.
    #[error("{source}; nothing was published: make room, or choose another --out")]
    OtherDocument {
        /// Which file, and why.
        source: FolderError,
    },
    /// A document other than a profile contradicts itself.
    #[error("the {what} contradicts itself and was not published: {findings}")]
    UnfitDocument {
        /// What it is.
        what: &'static str,
        /// The errors that were found.
        findings: String,
    },
}

impl Staging {
    /// Prepares to publish at `target`. Unless `replace` is set, nothing may be there.
    pub fn prepare(target: &Path, replace: bool) -> Result<Staging, PublishError> {
        let name = prepare_parent(target, replace)?;
        let folder = tempfile::Builder::new()
            .prefix(&format!(".{name}.unpublished-"))
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(parent(target))
            .map_err(|source| PublishError::Folder {
                path: parent(target).to_owned(),
                source,
            })?;
        Ok(Staging {
            folder,
            target: target.to_owned(),
            replace,
            key: None,
        })
    }

    /// Signs what is published by `key`, if there is one.
    #[must_use]
    pub fn signed_by(self, key: Option<SigningKey>) -> Staging {
        Staging { key, ..self }
    }

    /// Checks `profile`, writes it and makes it visible. Returns what is doubtful about it.
    pub fn publish(self, profile: &Profile) -> Result<Vec<Finding>, PublishError> {
        let findings = check(profile);
        if findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
        {
            let kept = None;
            return Err(PublishError::Unfit { findings, kept });
        }
        self.write(profile)?;
        self.rename()?;
        Ok(findings)
    }

    fn write(&self, profile: &Profile) -> Result<(), PublishError> {
        let folder = self.folder.path();
        profile
            .write(folder)
            .map_err(|source| PublishError::Document { source })?;
        self.write_signature()?;
        self.write_plot(folder, profile)?;
        if let Some(steady) = &profile.steady {
            self.write_plot(&folder.join(STEADY_FOLDER), steady)?;
        }
        Ok(())
    }

    /// Checks `link`, writes it and makes it visible. Returns what is doubtful about it. It has no picture and is not
    /// signed.
    ///
    /// # Errors
    /// When it contradicts itself, cannot be written, or something is there by now.
    pub fn publish_link(self, link: &LinkDocument) -> Result<Vec<FolderFinding>, PublishError> {
        let findings = fit("link", check_link(link))?;
        let written = link.write(self.folder.path());
        written.map_err(|source| PublishError::OtherDocument { source })?;
        self.rename()?;
        Ok(findings)
    }

    /// Where what is to be published is put first.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes visible what is in [`Staging::folder`], which somebody else has published and the caller has proved.
    ///
    /// # Errors
    /// When something is there by now, or the folder cannot be written.
    pub fn publish_as_it_is(self) -> Result<(), PublishError> {
        self.rename()
    }

    /// Checks what was measured of frames, writes it and makes it visible. Returns what is doubtful about it.
    ///
    /// # Errors
    /// When it contradicts itself, cannot be written, or something is there by now.
    pub fn publish_video(self, video: &VideoDocument) -> Result<Vec<FolderFinding>, PublishError> {
        let findings = fit("measurement", check_video(video))?;
        let written = video.write(self.folder.path());
        written.map_err(|source| PublishError::OtherDocument { source })?;
        self.rename()?;
        Ok(findings)
    }

    /// Checks what became of tensors, writes it and makes it visible. Returns what is doubtful about it.
    ///
    /// # Errors
    /// When it contradicts itself, cannot be written, or something is there by now.
    pub fn publish_tensors(
        self,
        tensors: &TensorsDocument,
    ) -> Result<Vec<FolderFinding>, PublishError> {
        let findings = fit("measurement", check_tensors(tensors))?;
        let written = tensors.write(self.folder.path());
        written.map_err(|source| PublishError::OtherDocument { source })?;
        self.rename()?;
        Ok(findings)
    }

    /// Writes these files and makes them visible together.
    ///
    /// # Errors
    /// When they cannot be written, or something is there by now.
    pub fn publish_files(self, files: &[(&str, Vec<u8>)]) -> Result<(), PublishError> {
        for (name, bytes) in files {
            let path = self.folder.path().join(name);
            let written = File::create(&path).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            written.map_err(|source| PublishError::File { path, source })?;
        }
        sync(self.folder.path())?;
        self.rename()
    }

    fn write_signature(&self) -> Result<(), PublishError> {
        let Some(key) = &self.key else {
            return Ok(());
        };
        let folder = self.folder.path();
        let path = folder.join(SIGNATURE);
        fs::read(folder.join(PROFILE_JSON))
            .and_then(|profile_json| fs::write(&path, key.sign(&profile_json)))
            .map_err(|source| PublishError::Folder { path, source })
    }

    fn write_plot(&self, folder: &Path, profile: &Profile) -> Result<(), PublishError> {
        let path = folder.join(PLOT);
        plot::svg(profile)
            .map_err(io::Error::other)
            .and_then(|svg| fs::write(&path, svg))
            .map_err(|source| PublishError::Folder { path, source })
    }

    /// One rename: a reader sees what was there before or the new profile, nothing in between.
    fn rename(&self) -> Result<(), PublishError> {
        let (from, to) = (self.folder.path(), self.target.as_path());
        let exchange = self.replace && to.symlink_metadata().is_ok();
        let how = if exchange {
            RenameFlags::EXCHANGE
        } else {
            RenameFlags::NOREPLACE
        };
        match renameat_with(CWD, from, CWD, to, how) {
            // What was exchanged lies in the staging folder now and goes with it.
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(PublishError::Exists {
                    path: to.to_owned(),
                });
            }
            Err(error) => {
                return Err(PublishError::Folder {
                    path: to.to_owned(),
                    source: error.into(),
                });
            }
        }
        sync(parent(to))
    }
}

/// Keeps a profile that contradicts itself beside where it was to be published, so that its samples can be looked at and what is
/// wrong with them be found. It replaces what was kept there before. Its name begins with a dot, as the names of folders do that
/// nobody is to take for published profiles, and it is not signed.
///
/// # Errors
/// When it cannot be written.
pub fn keep_refused(target: &Path, profile: &Profile) -> Result<PathBuf, PublishError> {
    let name = prepare_parent(target, true)?;
    let refused = parent(target).join(format!(".{name}.refused"));
    let staging = Staging::prepare(&refused, true)?;
    staging.write(profile)?;
    staging.rename()?;
    Ok(refused)
}

/// Whether profiles can be published in `folder`, which is made if it is not there.
pub fn probe(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    tempfile::Builder::new()
        .prefix(".probe-")
        .tempfile_in(folder)
        .map(|_| ())
}

/// `name` as a single folder, wherever it came from.
pub fn folder_name(name: &str) -> String {
    let safe = |c: char| {
        if c.is_alphanumeric() || "-_. ".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(safe).collect();
    let name = name.trim_start_matches('.').trim();
    if name.is_empty() {
        "model".to_owned()
    } else {
        name.to_owned()
    }
}

/// Makes the folder that `target` is to lie in; the last part of its path. Unless `replace` is set, nothing may be
/// there.
fn prepare_parent(target: &Path, replace: bool) -> Result<String, PublishError> {
    if !replace && target.symlink_metadata().is_ok() {
        return Err(PublishError::Exists {
            path: target.to_owned(),
        });
    }
    let parent = parent(target);
    let failed = |source| PublishError::Folder {
        path: parent.to_owned(),
        source,
    };
    let name = target
        .file_name()
        .ok_or_else(|| failed(io::Error::other("this is no name for what is published")))?;
    fs::create_dir_all(parent).map_err(failed)?;
    Ok(name.to_string_lossy().into_owned())
}

/// Sees that a rename in `folder` outlives a power cut.
fn sync(folder: &Path) -> Result<(), PublishError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| PublishError::Folder {
            path: folder.to_owned(),
            source,
        })
}

fn parent(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The findings of a document that may be published: none of them is an error.
fn fit(
    what: &'static str,
    findings: Vec<FolderFinding>,
) -> Result<Vec<FolderFinding>, PublishError> {
    let errors = findings.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    match errors.is_empty() {
        true => Ok(findings),
        false => Err(PublishError::UnfitDocument {
            what,
            findings: errors.join("; "),
        }),
    }
}

fn where_it_is(kept: Option<&Path>) -> String {
    kept.map_or_else(String::new, |kept| {
        format!("; its samples are kept in {}", kept.display())
    })
}

fn list(findings: &[Finding]) -> String {
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Nanos;

    use super::*;

    fn published(which: &str) -> Profile {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
        Profile::read(&folder.join(which)).expect("a profile")
    }

    #[test]
    fn what_contradicts_itself_is_kept_beside_and_not_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("model");
        let mut wrong = published("oneplus7/vocnet-mini");
        let sample = wrong.samples.last_mut().expect("a sample");
        sample.duration = Nanos::from_nanos(sample.duration.as_nanos() * 1000);
        let staging = Staging::prepare(&target, false).expect("room");
        let refused = staging.publish(&wrong).expect_err("it contradicts itself");
        assert!(matches!(refused, PublishError::Unfit { .. }), "{refused}");
        assert!(!target.exists());
        for earlier in [published("oneplus7/yolo-mini"), wrong.clone()] {
            keep_refused(&target, &earlier).expect("room");
        }
        let files = fs::read_dir(folder.path()).expect("a folder");
        let names: Vec<_> = files.map(|it| it.expect("a file").file_name()).collect();
        assert_eq!(names, [".model.refused"], "nothing else, and the last one");
        let kept = Profile::read(&folder.path().join(".model.refused")).expect("a profile");
        assert_eq!(kept.samples, wrong.samples);
    }
}
