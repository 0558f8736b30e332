//! Which of the libraries in an archive or a folder a phone needs, and whether any of them is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::description::Description;
use super::error::RuntimeStoreError;
use super::library::{self, HEXAGON, LibraryFacts, LibrarySystem};
use super::parts::Part;
use super::source::Source;
use crate::adb::Content;

/// What of libraries is brought along by whoever needs it; all else that is needed is the system's.
const BROUGHT: [&str; 3] = ["libonnxruntime", "libQnn", "libc++_shared"];

/// A library that a phone needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    /// Its file, unpacked.
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) abi: String,
    pub(super) system: LibrarySystem,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// The libraries, and the release of Qualcomm's among them.
pub(super) struct Selection {
    pub(super) libraries: Vec<Selected>,
    pub(super) release: Option<String>,
}

/// Chooses the libraries of runtimes that layerlab knows and those that they need, for every binary interface.
pub(super) fn select(
    source: &mut Source,
    description: &Description,
) -> Result<Selection, RuntimeStoreError> {
    let lost = description.recorded.keys().find(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        Part::of(name).is_some() && !source.entries.iter().any(|entry| entry.path == **path)
    });
    if let Some(lost) = lost {
        return Err(RuntimeStoreError::Damaged {
            file: source.file.clone(),
            cause: format!("{lost} is missing"),
        });
    }
    let mut found = Found::looked_through(source)?;
    let kept = found.kept(source)?;
    if kept.is_empty() {
        return Err(RuntimeStoreError::NothingKnown {
            file: source.file.clone(),
        });
    }
    let mut libraries: BTreeMap<(String, LibrarySystem, String), Selected> = BTreeMap::new();
    let mut release: Option<String> = None;
    for place in kept {
        let selected = found.selected(source, place)?;
        let path = &source.entries[place].path;
        if description
            .recorded
            .get(path)
            .is_some_and(|sha256| *sha256 != selected.sha256)
        {
            return Err(RuntimeStoreError::Damaged {
                file: source.file.clone(),
                cause: format!("{path} is not what the wheel's list of files says"),
            });
        }
        if Part::of(&selected.name).is_some_and(Part::is_of_qualcomm) {
            let of_library = library::release(&selected.file);
            let of_library = of_library.map_err(|error| RuntimeStoreError::Unreadable {
                file: selected.file.clone(),
                source: error,
            })?;
            match (&release, of_library) {
                (Some(first), Some(second)) if *first != second => {
                    return Err(RuntimeStoreError::MixedReleases {
                        file: source.file.clone(),
                        first: first.clone(),
                        second,
                    });
                }
                (None, of_library) => release = of_library,
                _ => {}
            }
        }
        let key = (selected.abi.clone(), selected.system, selected.name.clone());
        match libraries.get(&key) {
            Some(other) if other.sha256 != selected.sha256 => {
                return Err(RuntimeStoreError::Ambiguous {
                    file: source.file.clone(),
                    library: key.2,
                    abi: key.0,
                });
            }
            Some(_) => {}
            None => drop(libraries.insert(key, selected)),
        }
    }
    let libraries: Vec<Selected> = libraries.into_values().collect();
    whole(source, &libraries)?;
    Ok(Selection { libraries, release })
}

/// The libraries that were looked at, by their places.
struct Found {
    facts: BTreeMap<usize, LibraryFacts>,
    /// The places of all files with the name of a library.
    by_name: BTreeMap<String, Vec<usize>>,
}

impl Found {
    /// Looks at all libraries of an archive. A folder may hold much else: there, at those that layerlab knows by name.
    fn looked_through(source: &mut Source) -> Result<Found, RuntimeStoreError> {
        let mut found = Found {
            facts: BTreeMap::new(),
            by_name: BTreeMap::new(),
        };
        for (place, entry) in source.entries.iter().enumerate() {
            if is_library(entry.name()) {
                found
                    .by_name
                    .entry(entry.name().to_owned())
                    .or_default()
                    .push(place);
            }
        }
        let places: Vec<usize> = found.by_name.values().flatten().copied().collect();
        for place in places {
            let is_known = Part::of(source.entries[place].name()).is_some();
            if source.is_archive() || is_known {
                found.look_at(source, place)?;
            }
        }
        Ok(found)
    }

    /// Looks at one library; `None` if it is none that a phone could load, nor would have to.
    fn look_at(
        &mut self,
        source: &mut Source,
        place: usize,
    ) -> Result<Option<&LibraryFacts>, RuntimeStoreError> {
        if !self.facts.contains_key(&place) {
            let file = source.on_disk(place)?;
            let entry = &source.entries[place];
            let misplaced = |found: String| RuntimeStoreError::Misplaced {
                file: source.file.clone(),
                library: entry.path.clone(),
                found,
            };
            match library::facts(&file) {
                None if Part::of(entry.name()).is_some() => {
                    return Err(misplaced("no library for a processor of phones".to_owned()));
                }
                None => return Ok(None),
                Some(facts) => {
                    let folder = entry.folder();
                    let of_folder = folder.strip_prefix("jni/").filter(|_| facts.abi != HEXAGON);
                    if of_folder.is_some_and(|abi| abi != facts.abi) {
                        return Err(misplaced(format!("a library for {}", facts.abi)));
                    }
                    self.facts.insert(place, facts);
                }
            }
        }
        Ok(self.facts.get(&place))
    }

    /// The libraries that layerlab knows, and what they need of the others, which need others in turn.
    fn kept(&mut self, source: &mut Source) -> Result<BTreeSet<usize>, RuntimeStoreError> {
        // What is of no use to a phone also shows what was lost: a library that was there to be used by it.
        for place in self.facts.keys().copied().collect::<Vec<_>>() {
            self.needed_by(source, place)?;
        }
        let is_known = |place: &usize| Part::of(source.entries[*place].name()).is_some();
        let mut open: Vec<usize> = self.facts.keys().copied().filter(is_known).collect();
        let mut kept: BTreeSet<usize> = open.iter().copied().collect();
        while let Some(place) = open.pop() {
            for other in self.needed_by(source, place)? {
                if kept.insert(other) {
                    open.push(other);
                }
            }
        }
        Ok(kept)
    }

    /// The libraries here that the one at `place` needs. Those that are the system's are not here.
    fn needed_by(
        &mut self,
        source: &mut Source,
        place: usize,
    ) -> Result<Vec<usize>, RuntimeStoreError> {
        let Some(facts) = self.facts.get(&place).cloned() else {
            return Ok(Vec::new());
        };
        let part = Part::of(source.entries[place].name());
        let is_qualcomms = part.is_some_and(Part::is_of_qualcomm);
        let mut found = Vec::new();
        for needed in &facts.needed {
            match self.neighbour(source, place, &facts, needed)? {
                Some(other) => found.push(other),
                // Qualcomm's provider and ONNX Runtime come in two archives.
                None if Part::of(needed) == Some(Part::OnnxRuntime) && is_qualcomms => {}
                None if is_brought(needed) => {
                    return Err(RuntimeStoreError::Incomplete {
                        file: source.file.clone(),
                        library: source.entries[place].path.clone(),
                        missing: needed.clone(),
                    });
                }
                None => {}
            }
        }
        Ok(found)
    }

    /// The library `name` for the same processor, best in the folder of the one that needs it.
    fn neighbour(
        &mut self,
        source: &mut Source,
        of: usize,
        facts: &LibraryFacts,
        name: &str,
    ) -> Result<Option<usize>, RuntimeStoreError> {
        let mut places = self.by_name.get(name).cloned().unwrap_or_default();
        let folder = source.entries[of].folder().to_owned();
        places.sort_by_key(|place| source.entries[*place].folder() != folder);
        for place in places {
            let other = self.look_at(source, place)?;
            if other.is_some_and(|other| other.abi == facts.abi) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The library at `place`, with its hash.
    fn selected(&self, source: &mut Source, place: usize) -> Result<Selected, RuntimeStoreError> {
        let file = source.on_disk(place)?;
        let facts = &self.facts[&place];
        let content = Content::file(&file).map_err(|error| RuntimeStoreError::Unreadable {
            file: file.clone(),
            source: error,
        })?;
        Ok(Selected {
            system: self.system(source, facts)?,
            name: source.entries[place].name().to_owned(),
            abi: facts.abi.clone(),
            bytes: content.size(),
            sha256: content.sha256().to_owned(),
            file,
        })
    }

    /// Whose C library a library is for. One that names none is for the one of its neighbours.
    fn system(
        &self,
        source: &Source,
        facts: &LibraryFacts,
    ) -> Result<LibrarySystem, RuntimeStoreError> {
        let same = self.facts.values().filter(|other| other.abi == facts.abi);
        let system = facts
            .system
            .or_else(|| same.filter_map(|other| other.system).next());
        system.ok_or_else(|| RuntimeStoreError::Misplaced {
            file: source.file.clone(),
            library: format!("its library for {}", facts.abi),
            found: "neither for Android nor for a computer".to_owned(),
        })
    }
}

fn is_library(name: &str) -> bool {
    name.starts_with("lib") && (name.ends_with(".so") || name.contains(".so."))
}

/// Whether a library of that name is never the system's: a runtime's own, or one that was made part of a wheel, which has
/// eight digits of its hash in its name.
fn is_brought(name: &str) -> bool {
    let is_hash = |part: &str| part.len() == 8 && part.chars().all(|c| c.is_ascii_hexdigit());
    let stem = name.split(".so").next().unwrap_or_default();
    let is_renamed = stem.rsplit_once('-').is_some_and(|(_, hash)| is_hash(hash));
    is_renamed || BROUGHT.iter().any(|begin| name.starts_with(begin))
}

/// Proves that what comes in pairs is there in pairs: half of it would fail on a phone, which tells nobody why.
fn whole(source: &Source, libraries: &[Selected]) -> Result<(), RuntimeStoreError> {
    let parts = libraries
        .iter()
        .filter_map(|library| Some((library, Part::of(&library.name)?)));
    let has = |wanted: Part, abi: Option<&str>| {
        let mut same = libraries
            .iter()
            .filter(|library| abi.is_none_or(|abi| abi == library.abi));
        same.any(|library| Part::of(&library.name) == Some(wanted))
    };
    for (library, part) in parts {
        let abi = library.abi.as_str();
        let is_phones = library.system == LibrarySystem::Android;
        let missing = match part {
            Part::Backend if !has(Part::System, Some(abi)) => "libQnnSystem.so".to_owned(),
            Part::Backend
                if is_phones
                    && !libraries
                        .iter()
                        .any(|one| matches!(Part::of(&one.name), Some(Part::Stub(_)))) =>
            {
                "a libQnnHtpV…Stub.so".to_owned()
            }
            Part::System if !has(Part::Backend, Some(abi)) => "libQnnHtp.so".to_owned(),
            Part::Stub(version) if !has(Part::Skel(version), None) => {
                format!("libQnnHtpV{version}Skel.so")
            }
            Part::Skel(version) if !has(Part::Stub(version), None) => {
                format!("libQnnHtpV{version}Stub.so")
            }
            _ => continue,
        };
        return Err(RuntimeStoreError::Incomplete {
            file: source.file.clone(),
            library: library.name.clone(),
            missing,
        });
    }
    Ok(())
}
