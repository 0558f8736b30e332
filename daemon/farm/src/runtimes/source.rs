//! What runtimes come as: an archive, of which no entry may leave its folder, or a folder.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::error::RuntimeStoreError;

/// More files than this are no runtime: a wheel of ONNX Runtime has some 400.
const MOST_ENTRIES: usize = 20_000;

/// More bytes than this, unpacked, are no runtime: Qualcomm's libraries for computers are 250 MB.
const MOST_BYTES: u64 = 4 << 30;

/// A longer text says nothing of a runtime's name and files.
const LONGEST_TEXT: u64 = 8 << 20;

/// Folders in folders, no deeper than this.
const DEEPEST: usize = 8;

/// A file in an archive or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its path there, with `/` between folders.
    pub(super) path: String,
    pub(super) bytes: u64,
}

impl Entry {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that it is in, without the `/` at its end.
    pub(super) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// An archive or a folder that a runtime may be in.
pub(super) struct Source {
    /// What the user gave.
    pub(super) file: PathBuf,
    /// Its files, in the order of their paths.
    pub(super) entries: Vec<Entry>,
    kind: Kind,
}

enum Kind {
    Folder,
    Archive {
        archive: ZipArchive<BufReader<File>>,
        /// The place of each entry in the archive.
        places: Vec<usize>,
        /// Where entries are unpacked, each under its number.
        scratch: PathBuf,
    },
}

impl Source {
    /// Opens what is at `file`, and looks at all that it holds. What must be unpacked goes to the folder `scratch`.
    pub(super) fn open(file: &Path, scratch: &Path) -> Result<Source, RuntimeStoreError> {
        Source::open_within(file, scratch, MOST_BYTES)
    }

    fn open_within(file: &Path, scratch: &Path, most: u64) -> Result<Source, RuntimeStoreError> {
        let unreadable = |source| RuntimeStoreError::Unreadable {
            file: file.to_owned(),
            source,
        };
        let (found, kind) = if fs::metadata(file).map_err(unreadable)?.is_dir() {
            (files_below(file).map_err(unreadable)?, Kind::Folder)
        } else {
            let extension = file.extension().unwrap_or_default();
            if extension != "aar" && extension != "whl" {
                return Err(RuntimeStoreError::NotARuntime {
                    file: file.to_owned(),
                });
            }
            opened(file, scratch)?
        };
        let too_large = |found: String, most: String| RuntimeStoreError::TooLarge {
            file: file.to_owned(),
            found,
            most,
        };
        if found.len() > MOST_ENTRIES {
            return Err(too_large(
                format!("{} files", found.len()),
                MOST_ENTRIES.to_string(),
            ));
        }
        let total = found
            .iter()
            .fold(0_u64, |total, entry| total.saturating_add(entry.bytes));
        if total > most {
            return Err(too_large(format!("{total} bytes"), format!("{most} bytes")));
        }
        Ok(Source {
            file: file.to_owned(),
            entries: found,
            kind,
        })
    }

    /// Whether it was made to hold a runtime and nothing else.
    pub(super) fn is_archive(&self) -> bool {
        matches!(self.kind, Kind::Archive { .. })
    }

    /// The file of the entry at `place`, unpacked if it must be.
    pub(super) fn on_disk(&mut self, place: usize) -> Result<PathBuf, RuntimeStoreError> {
        let entry = &self.entries[place];
        let (archive, number, scratch) = match &mut self.kind {
            Kind::Folder => return Ok(self.file.join(&entry.path)),
            Kind::Archive {
                archive,
                places,
                scratch,
            } => (archive, places[place], scratch),
        };
        let target = scratch.join(number.to_string());
        if target.is_file() {
            return Ok(target);
        }
        let damaged = |cause: String| RuntimeStoreError::Damaged {
            file: self.file.clone(),
            cause: format!("{}: {cause}", entry.path),
        };
        let store = |source| RuntimeStoreError::Store {
            path: target.clone(),
            source,
        };
        let packed = archive
            .by_index(number)
            .map_err(|error| damaged(error.to_string()))?;
        // Its own account of its size was added up; it may hold no more than that.
        let mut packed = packed.take(entry.bytes.saturating_add(1));
        let mut unpacked = File::create(&target).map_err(store)?;
        let mut portion = vec![0; 256 * 1024];
        let mut bytes = 0;
        loop {
            let read = packed
                .read(&mut portion)
                .map_err(|error| damaged(error.to_string()))?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            unpacked.write_all(&portion[..read]).map_err(store)?;
        }
        if bytes != entry.bytes {
            return Err(damaged(format!(
                "{bytes} bytes or more instead of {}",
                entry.bytes
            )));
        }
        Ok(target)
    }

    /// The text of the entry at `place`.
    pub(super) fn text(&mut self, place: usize) -> Result<String, RuntimeStoreError> {
        let entry = self.entries[place].clone();
        if entry.bytes > LONGEST_TEXT {
            return Err(RuntimeStoreError::Damaged {
                file: self.file.clone(),
                cause: format!("{} has {} bytes", entry.path, entry.bytes),
            });
        }
        let path = self.on_disk(place)?;
        let bytes = fs::read(&path)
            .map_err(|source| RuntimeStoreError::Unreadable { file: path, source })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The entries of an archive, all of which are proved to be harmless.
fn opened(file: &Path, scratch: &Path) -> Result<(Vec<Entry>, Kind), RuntimeStoreError> {
    let damaged = |cause: String| RuntimeStoreError::Damaged {
        file: file.to_owned(),
        cause,
    };
    let reader = File::open(file).map_err(|source| RuntimeStoreError::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let archive = ZipArchive::new(BufReader::new(reader));
    let mut archive = archive.map_err(|error| damaged(error.to_string()))?;
    let mut found: Vec<(Entry, usize)> = Vec::new();
    for place in 0..archive.len() {
        let entry = archive
            .by_index_raw(place)
            .map_err(|error| damaged(error.to_string()))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let refused = |why| RuntimeStoreError::Unsafe {
            file: file.to_owned(),
            entry: name.clone(),
            why,
        };
        if leaves_its_folder(&name) {
            return Err(refused("a path out of its own folder"));
        }
        if entry.is_symlink() {
            return Err(refused("a link"));
        }
        if entry.encrypted() {
            return Err(refused("an encrypted file"));
        }
        if !entry.is_dir() {
            let bytes = entry.size();
            found.push((Entry { path: name, bytes }, place));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
    let twice = found
        .windows(2)
        .find(|pair| pair[0].0.path == pair[1].0.path);
    if let Some(pair) = twice {
        return Err(RuntimeStoreError::Unsafe {
            file: file.to_owned(),
            entry: pair[0].0.path.clone(),
            why: "the same path twice",
        });
    }
    let (entries, places) = found.into_iter().unzip();
    let kind = Kind::Archive {
        archive,
        places,
        scratch: scratch.to_owned(),
    };
    Ok((entries, kind))
}

fn leaves_its_folder(path: &str) -> bool {
    path.starts_with('/') || path.contains(['\\', '\0']) || path.split('/').any(|part| part == "..")
}

/// The regular files below `folder`; links are passed over, since what they name is there as well or is not part of it.
fn files_below(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), 0)];
    while let Some((inner, depth)) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if inner.is_empty() {
                name
            } else {
                format!("{inner}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                let bytes = entry.metadata()?.len();
                found.push(Entry { path, bytes });
            }
        }
        if found.len() > MOST_ENTRIES {
            break;
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    /// An archive in a folder of its own, with these files of ten bytes.
    fn archive(paths: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("room");
        let file = folder.path().join("one.aar");
        let mut writer = ZipWriter::new(File::create(&file).expect("room"));
        for path in paths {
            writer
                .start_file(*path, SimpleFileOptions::default())
                .expect("an entry");
            writer.write_all(b"0123456789").expect("room");
        }
        writer.finish().expect("an archive");
        (folder, file)
    }

    fn refusal(file: &Path, most: u64) -> String {
        let scratch = tempfile::tempdir().expect("room");
        let opened = Source::open_within(file, scratch.path(), most);
        opened.err().expect("it is refused").to_string()
    }

    #[test]
    fn an_entry_that_leaves_the_folder_is_refused() {
        for path in ["../a.so", "/a.so", "jni/../../a.so", "a\\..\\..\\b.so"] {
            let (_folder, file) = archive(&["jni/x86_64/a.so", path]);
            let said = refusal(&file, MOST_BYTES);
            assert!(
                said.contains("a path out of its own folder"),
                "{path}: {said}"
            );
        }
    }

    #[test]
    fn a_link_is_refused() {
        let folder = tempfile::tempdir().expect("room");
        let file = folder.path().join("one.whl");
        let mut writer = ZipWriter::new(File::create(&file).expect("room"));
        let options = SimpleFileOptions::default();
        writer
            .add_symlink("a.so", "/etc/passwd", options)
            .expect("an entry");
        writer.finish().expect("an archive");
        let said = refusal(&file, MOST_BYTES);
        assert!(said.contains("holds a.so, a link"), "{said}");
    }

    #[test]
    fn an_archive_that_holds_too_much_is_refused_before_it_is_unpacked() {
        let (_folder, file) = archive(&["a.so", "b.so"]);
        let said = refusal(&file, 19);
        assert!(
            said.contains("holds 20 bytes, and at most 19 bytes"),
            "{said}"
        );
        let scratch = tempfile::tempdir().expect("room");
        assert!(Source::open_within(&file, scratch.path(), 20).is_ok());
    }

    #[test]
    fn an_entry_that_is_larger_than_it_says_is_not_unpacked() {
        let (_folder, file) = archive(&["a.so"]);
        let scratch = tempfile::tempdir().expect("room");
        let mut source = Source::open(&file, scratch.path()).expect("an archive");
        source.entries[0].bytes = 9;
        let said = source.on_disk(0).expect_err("it is larger").to_string();
        assert!(
            said.contains("damaged (a.so: 10 bytes or more instead of 9)"),
            "{said}"
        );
    }

    #[test]
    fn links_in_a_folder_are_passed_over() {
        let folder = tempfile::tempdir().expect("room");
        fs::create_dir(folder.path().join("lib")).expect("room");
        fs::write(folder.path().join("lib/a.so.1"), "x").expect("room");
        std::os::unix::fs::symlink("a.so.1", folder.path().join("lib/a.so")).expect("room");
        std::os::unix::fs::symlink("/", folder.path().join("root")).expect("room");
        let source = Source::open(folder.path(), folder.path()).expect("a folder");
        let paths: Vec<&str> = source
            .entries
            .iter()
            .map(|entry| entry.path.as_str())
            .collect();
        assert_eq!(paths, ["lib/a.so.1"]);
    }
}
