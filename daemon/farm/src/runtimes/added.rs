//! A runtime that was added, as `runtime.json` in its folder describes it.

use std::fs;
use std::path::{Path, PathBuf};

use layerlab_profiles::sha256;
use serde::{Deserialize, Serialize};

use super::library::LibrarySystem;
use super::parts::Part;

/// The version of `runtime.json`.
pub(super) const VERSION: u32 = 1;

/// A library of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuntimeLibrary {
    /// The binary interface of its processor, such as `arm64-v8a`; [`HEXAGON`](super::HEXAGON) for Qualcomm's accelerator.
    pub abi: String,
    /// What it runs on, beside the processor.
    pub system: LibrarySystem,
    /// Its file's name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
}

impl RuntimeLibrary {
    /// What it is for; `None` for those that others need.
    pub fn part(&self) -> Option<Part> {
        Part::of(&self.name)
    }
}

/// A runtime that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedRuntime {
    pub(super) version_of_file: u32,
    /// What it is called; no two have the same name.
    pub name: String,
    /// Its version, as its maker numbers it, or `unknown`.
    pub version: String,
    /// The release that Qualcomm's libraries say they are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualcomm_release: Option<String>,
    /// The licence's name where it is said, and the paths of files with licences in what it came from.
    pub licences: Vec<String>,
    /// The name of the file or folder that it came from.
    pub from: String,
    /// Its libraries.
    pub libraries: Vec<RuntimeLibrary>,
    /// The folder that holds it.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

impl AddedRuntime {
    /// Where a library of it lies.
    pub fn path(&self, library: &RuntimeLibrary) -> PathBuf {
        self.folder.join(place(library))
    }

    /// Its libraries for a processor with the binary interface `abi` and the C library of `system`, with those for the
    /// accelerator beside it.
    pub fn libraries_for(&self, abi: &str, system: LibrarySystem) -> Vec<&RuntimeLibrary> {
        let all = self.libraries.iter();
        let fitting: Vec<_> = all
            .filter(|one| one.abi == abi && one.system == system)
            .collect();
        if fitting.is_empty() {
            return fitting;
        }
        let accelerators = self
            .libraries
            .iter()
            .filter(|one| one.system == LibrarySystem::Hexagon);
        let beside = accelerators.filter(|_| system == LibrarySystem::Android);
        fitting.into_iter().chain(beside).collect()
    }

    /// Name and version, for people.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// What is the same of what is the same.
    pub(super) fn content(&self) -> (&str, &[RuntimeLibrary]) {
        (&self.version, &self.libraries)
    }

    /// Whether all of its files are there with their sizes.
    pub(super) fn is_whole(&self) -> bool {
        let has = |library| {
            fs::metadata(self.path(library)).is_ok_and(|file| file.len() == library.bytes)
        };
        self.libraries.iter().all(has)
    }
}

/// A name for libraries that no others have.
pub(crate) fn digest(libraries: &[&RuntimeLibrary]) -> String {
    let lines: Vec<String> = libraries
        .iter()
        .map(|one| format!("{} {}", one.name, one.sha256))
        .collect();
    sha256(lines.join("\n").as_bytes())[..16].to_owned()
}

/// Where a library is in its runtime's folder.
pub(super) fn place(library: &RuntimeLibrary) -> PathBuf {
    let system = match library.system {
        LibrarySystem::Android => "android",
        LibrarySystem::Computer => "computer",
        LibrarySystem::Hexagon => "accelerator",
    };
    Path::new(&library.abi).join(system).join(&library.name)
}

/// A runtime with libraries of these names, for tests of what is decided about runtimes.
#[cfg(test)]
pub(crate) fn sample(name: &str, libraries: &[(&str, LibrarySystem, &str)]) -> AddedRuntime {
    let library = |(abi, system, name): &(&str, LibrarySystem, &str)| RuntimeLibrary {
        abi: (*abi).to_owned(),
        system: *system,
        name: (*name).to_owned(),
        bytes: 1,
        sha256: sha256(format!("{abi} {system} {name}").as_bytes()),
    };
    AddedRuntime {
        version_of_file: VERSION,
        name: name.to_owned(),
        version: "1".to_owned(),
        qualcomm_release: None,
        licences: Vec::new(),
        from: format!("{name}.aar"),
        libraries: libraries.iter().map(library).collect(),
        folder: PathBuf::from("/nowhere"),
    }
}
