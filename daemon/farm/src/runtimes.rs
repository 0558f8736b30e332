//! Runtimes for phones: what users added is kept in layerlab's data folder, a folder for each with the libraries that
//! phones need and `runtime.json`, which says what they are. Which of them a phone is given, `phone_runtimes` decides.

mod added;
mod description;
mod error;
mod library;
mod parts;
mod selection;
mod source;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::added::{VERSION, place};
use self::selection::{Selected, Selection};
use self::source::Source;
use crate::folders::write_whole;

pub use self::added::{AddedRuntime, RuntimeLibrary};
pub use self::error::RuntimeStoreError;
pub use self::library::{HEXAGON, LibrarySystem};
pub use self::parts::Part;

pub(crate) use self::added::digest;
#[cfg(test)]
pub(crate) use self::added::sample;

/// The file that says what a runtime is.
const MANIFEST: &str = "runtime.json";

/// How folders begin that are being filled.
const INCOMING: &str = ".incoming-";

/// Nobody takes so long to add a runtime.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What adding a runtime did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The runtime, as it is now.
    pub runtime: AddedRuntime,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// The runtimes that were added.
#[derive(Clone, Debug)]
pub struct RuntimeStore {
    folder: PathBuf,
}

impl RuntimeStore {
    /// The runtimes kept in layerlab's data folder.
    pub fn in_folder(data: &Path) -> RuntimeStore {
        RuntimeStore {
            folder: data.join("runtimes"),
        }
    }

    /// All runtimes, by name.
    ///
    /// # Errors
    /// When the folder or a `runtime.json` in it cannot be read.
    pub fn list(&self) -> Result<Vec<AddedRuntime>, RuntimeStoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| failed(&self.folder, source))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| failed(&self.folder, source))?;
            if !entry.file_name().to_string_lossy().starts_with('.') {
                found.push(read(&entry.path())?);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Adds what phones need of the archive or folder `file`, under `name` or the name that it gives itself. To add the
    /// same again changes nothing, unless files of it were lost.
    ///
    /// # Errors
    /// When it is no runtime, is not whole, or is at odds with one that is there.
    pub fn add(&self, file: &Path, name: Option<&str>) -> Result<Addition, RuntimeStoreError> {
        fs::create_dir_all(&self.folder).map_err(|source| failed(&self.folder, source))?;
        self.sweep();
        // Beside its place, so that it gets there in one rename.
        let incoming = tempfile::Builder::new()
            .prefix(INCOMING)
            .tempdir_in(&self.folder);
        let incoming = incoming.map_err(|source| failed(&self.folder, source))?;
        let (scratch, folder) = (
            incoming.path().join("unpacked"),
            incoming.path().join("runtime"),
        );
        for made in [&scratch, &folder] {
            fs::create_dir(made).map_err(|source| failed(made, source))?;
        }
        let mut source = Source::open(file, &scratch)?;
        let description = description::describe(&mut source)?;
        let name = name.map_or_else(|| Ok(description.name.clone()), checked)?;
        let Selection { libraries, release } = selection::select(&mut source, &description)?;
        let of = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let runtime = AddedRuntime {
            version_of_file: VERSION,
            name,
            version: description.version,
            qualcomm_release: release,
            licences: description.licences,
            from: of
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            libraries: libraries.iter().map(RuntimeLibrary::from).collect(),
            folder: self.folder.clone(),
        };
        let runtime = AddedRuntime {
            folder: self.folder.join(&runtime.name),
            ..runtime
        };
        if let Some(there) = self.fits(&runtime)? {
            if there.is_whole() {
                return Ok(Addition {
                    runtime: there,
                    is_new: false,
                });
            }
            self.remove(&there.name)?;
        }
        for (selected, library) in libraries.iter().zip(&runtime.libraries) {
            let target = folder.join(place(library));
            put(selected, &target).map_err(|source| failed(&target, source))?;
        }
        let text = serde_json::to_string_pretty(&runtime).unwrap_or_default();
        let manifest = folder.join(MANIFEST);
        write_whole(&manifest, text.as_bytes()).map_err(|source| failed(&manifest, source))?;
        fs::rename(&folder, &runtime.folder).map_err(|source| failed(&runtime.folder, source))?;
        Ok(Addition {
            runtime,
            is_new: true,
        })
    }

    /// Removes what a layerlab that was killed has left of its work.
    fn sweep(&self) {
        let is_old = |entry: &fs::DirEntry| {
            let age = entry.metadata().and_then(|data| data.modified()).ok();
            age.and_then(|then| then.elapsed().ok())
                .is_some_and(|age| age > ABANDONED)
        };
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(INCOMING) && is_old(&entry) {
                // What cannot be removed now is no reason to fail.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// The same runtime if it is there already; refuses one that is at odds with those that are.
    fn fits(&self, new: &AddedRuntime) -> Result<Option<AddedRuntime>, RuntimeStoreError> {
        let all = self.list()?;
        let same = all.iter().find(|other| other.name == new.name);
        if let Some(same) = same {
            if same.content() == new.content() {
                return Ok(Some(same.clone()));
            }
            return Err(RuntimeStoreError::NameTaken {
                name: new.name.clone(),
                version: same.version.clone(),
            });
        }
        for other in &all {
            let both = new.libraries.iter().find(|library| {
                let is_it = |one: &&RuntimeLibrary| {
                    (one.part(), &one.abi, one.system)
                        == (library.part(), &library.abi, library.system)
                };
                library.part().is_some() && other.libraries.iter().find(is_it).is_some()
            });
            if let Some(library) = both {
                return Err(RuntimeStoreError::Provided {
                    library: library.name.clone(),
                    abi: library.abi.clone(),
                    by: other.name.clone(),
                });
            }
        }
        Ok(None)
    }

    /// Removes the runtime called `name`.
    ///
    /// # Errors
    /// When there is none, or its folder cannot be removed.
    pub fn remove(&self, name: &str) -> Result<AddedRuntime, RuntimeStoreError> {
        let unknown = || RuntimeStoreError::Unknown {
            name: name.to_owned(),
        };
        let runtime = self.list()?.into_iter().find(|one| one.name == name);
        let runtime = runtime.ok_or_else(unknown)?;
        // In one rename, so that half of a runtime is never seen.
        let gone = tempfile::Builder::new()
            .prefix(INCOMING)
            .tempdir_in(&self.folder);
        let gone = gone.map_err(|source| failed(&self.folder, source))?;
        let away = gone.path().join("runtime");
        fs::rename(&runtime.folder, &away).map_err(|source| failed(&runtime.folder, source))?;
        gone.close()
            .map_err(|source| failed(&self.folder, source))?;
        Ok(runtime)
    }
}

impl From<&Selected> for RuntimeLibrary {
    fn from(selected: &Selected) -> RuntimeLibrary {
        RuntimeLibrary {
            abi: selected.abi.clone(),
            system: selected.system,
            name: selected.name.clone(),
            bytes: selected.bytes,
            sha256: selected.sha256.clone(),
        }
    }
}

fn failed(path: &Path, source: io::Error) -> RuntimeStoreError {
    RuntimeStoreError::Store {
        path: path.to_owned(),
        source,
    }
}

fn put(selected: &Selected, target: &Path) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(&selected.file, target).map(drop)
}

/// A name that the user gave.
fn checked(name: &str) -> Result<String, RuntimeStoreError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let is_name = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name.chars().all(is_plain);
    if !is_name {
        return Err(RuntimeStoreError::BadName {
            name: name.to_owned(),
        });
    }
    Ok(name.to_owned())
}

/// The runtime that is kept in `folder`.
fn read(folder: &Path) -> Result<AddedRuntime, RuntimeStoreError> {
    let manifest = folder.join(MANIFEST);
    let failed = |source| failed(&manifest, source);
    let text = fs::read(&manifest).map_err(failed)?;
    let runtime: AddedRuntime =
        serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    if runtime.version_of_file != VERSION {
        let newer = format!(
            "version {} of it is of another layerlab",
            runtime.version_of_file
        );
        return Err(failed(io::Error::other(newer)));
    }
    Ok(AddedRuntime {
        folder: folder.to_owned(),
        ..runtime
    })
}
