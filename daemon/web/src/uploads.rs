//! Files that jobs from the web bring. Each lies under its SHA-256, which is proved before it counts, so that what somebody
//! else calls a file never becomes a path. What is not whole yet goes on where it broke off.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use layerlab_farm::folders::make_private;
use layerlab_profiles::Hash;
use tempfile::TempDir;

use crate::problem::{Problem, ProblemKind};

/// What nobody has touched for so long goes.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// All uploads together take at most so many times what one may.
const MOST_TOGETHER: u64 = 4;

/// How much of a file is in memory at once.
const PORTION: usize = 1 << 20;

/// The folder of uploads.
#[derive(Clone, Debug)]
pub struct Uploads {
    folder: PathBuf,
    /// The longest file, in bytes.
    limit: u64,
}

/// What names a file: its SHA-256, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(String);

impl ContentHash {
    pub(crate) fn parse(text: &str) -> Result<ContentHash, Problem> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == 64 && text.bytes().all(is_digit) {
            true => Ok(ContentHash(text.to_owned())),
            false => Err(Problem::unusable(
                "this is no SHA-256; write 64 hexadecimal digits in small letters",
            )),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// How much of a file is there.
pub(crate) struct Uploaded {
    pub(crate) bytes: u64,
    pub(crate) is_whole: bool,
}

/// A file that is being received; nobody else can send it meanwhile.
pub(crate) struct Receiving {
    /// Where it is written, at its end.
    pub(crate) file: File,
    /// How much of it is there.
    pub(crate) bytes: u64,
    part: PathBuf,
    whole: PathBuf,
    hash: ContentHash,
}

impl Uploads {
    /// Of the lab with the folder `state`, each of at most `limit` bytes.
    pub fn in_state(state: &Path, limit: u64) -> Uploads {
        Uploads {
            folder: state.join("lab/uploads"),
            limit,
        }
    }

    /// Whether any file may come.
    pub(crate) fn are_taken(&self) -> bool {
        self.limit > 0
    }

    fn whole(&self, hash: &ContentHash) -> PathBuf {
        self.folder.join(hash.as_str())
    }

    fn part(&self, hash: &ContentHash) -> PathBuf {
        self.folder.join(format!("{}.part", hash.as_str()))
    }

    /// How much of a file is there; nothing if none of it came.
    pub(crate) fn find(&self, hash: &ContentHash) -> Option<Uploaded> {
        let length = |path: &Path| fs::metadata(path).ok().map(|there| there.len());
        let uploaded = |bytes, is_whole| Uploaded { bytes, is_whole };
        let whole = length(&self.whole(hash)).map(|bytes| uploaded(bytes, true));
        whole.or_else(|| length(&self.part(hash)).map(|bytes| uploaded(bytes, false)))
    }

    /// Refuses what is longer than a file may be.
    pub(crate) fn check_length(&self, bytes: u64) -> Result<(), Problem> {
        if bytes <= self.limit {
            return Ok(());
        }
        let detail = format!(
            "a file may have {} MiB at most; raise `web.upload-mebibytes` in the lab's configuration, or put it into the \
             folder that `web.models` names",
            self.limit >> 20
        );
        Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ProblemKind::Input,
            detail,
        ))
    }

    /// Begins to receive a file from `offset` on, of which `announced` bytes are to come, if it is said how many.
    pub(crate) fn receive(
        &self,
        hash: ContentHash,
        offset: u64,
        announced: Option<u64>,
    ) -> Result<Receiving, Problem> {
        make_private(&self.folder).map_err(|error| no_room(&error))?;
        self.make_room(
            &hash,
            offset.saturating_add(announced.unwrap_or(self.limit)),
        )?;
        let (part, whole) = (self.part(&hash), self.whole(&hash));
        let opened = File::options().append(true).create(true).open(&part);
        let file = opened.map_err(|error| no_room(&error))?;
        if file.try_lock().is_err() {
            let detail = "somebody else sends this file just now; ask again when that is done";
            return Err(Problem::new(
                StatusCode::CONFLICT,
                ProblemKind::Input,
                detail,
            ));
        }
        let bytes = file.metadata().map_err(|error| no_room(&error))?.len();
        if bytes != offset {
            let detail =
                format!("{bytes} bytes of it are there; send what follows with `?offset={bytes}`");
            return Err(Problem::new(
                StatusCode::CONFLICT,
                ProblemKind::Input,
                detail,
            ));
        }
        Ok(Receiving {
            file,
            bytes,
            part,
            whole,
            hash,
        })
    }

    /// Removes what nobody has touched for long, and sees that `bytes` of the file `hash` find a place beside the others.
    fn make_room(&self, hash: &ContentHash, bytes: u64) -> Result<(), Problem> {
        let mut taken = 0_u64;
        for entry in fs::read_dir(&self.folder).map_err(|error| no_room(&error))? {
            let Ok((path, there)) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))
            else {
                continue;
            };
            let age = there
                .modified()
                .ok()
                .and_then(|at| SystemTime::now().duration_since(at).ok());
            let is_old = age.is_some_and(|age| age > KEPT);
            match (is_old, there.is_dir()) {
                (true, true) => drop(fs::remove_dir_all(&path)),
                (true, false) => drop(fs::remove_file(&path)),
                (false, true) => {}
                (false, false) if path == self.part(hash) => {}
                (false, false) => taken = taken.saturating_add(there.len()),
            }
        }
        if taken.saturating_add(bytes) <= self.limit.saturating_mul(MOST_TOGETHER) {
            return Ok(());
        }
        let detail = "the lab keeps as many uploads as it may; submit the jobs that they are for, and ask again tomorrow";
        let status = StatusCode::INSUFFICIENT_STORAGE;
        Err(Problem::new(status, ProblemKind::Output, detail))
    }

    /// A folder in which uploaded files lie by the names that a job gives them.
    pub(crate) fn named(&self, files: &BTreeMap<String, String>) -> Result<TempDir, Problem> {
        make_private(&self.folder).map_err(|error| no_room(&error))?;
        let folder = tempfile::Builder::new()
            .prefix("job-")
            .tempdir_in(&self.folder);
        let folder = folder.map_err(|error| no_room(&error))?;
        for (name, hash) in files {
            let hash = ContentHash::parse(hash)?;
            let whole = self.whole(&hash);
            if !whole.is_file() {
                let detail = format!(
                    "`files`: `{name}` is not here; upload it to /api/v1/files/{}",
                    hash.as_str()
                );
                return Err(Problem::unusable(detail));
            }
            // The name has no folder in it, as the job was read.
            fs::hard_link(&whole, folder.path().join(name)).map_err(|error| no_room(&error))?;
        }
        Ok(folder)
    }
}

impl Receiving {
    /// Keeps nothing of what came.
    pub(crate) fn discard(self) {
        let _ = fs::remove_file(&self.part);
    }

    /// The file, if all that came is what its hash says; else nothing of it is kept.
    pub(crate) fn finish(mut self) -> Result<Uploaded, Problem> {
        let hashed = (self.file.sync_all()).and_then(|()| sha256_of(&mut File::open(&self.part)?));
        if hashed.map_err(|error| no_room(&error))? != self.hash.as_str() {
            let _ = fs::remove_file(&self.part);
            let detail = "what came has another SHA-256; send the file again, from its beginning";
            return Err(Problem::unusable(detail));
        }
        fs::rename(&self.part, &self.whole).map_err(|error| no_room(&error))?;
        self.bytes = self.file.metadata().map_or(self.bytes, |there| there.len());
        Ok(Uploaded {
            bytes: self.bytes,
            is_whole: true,
        })
    }
}

fn sha256_of(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Hash::default();
    let mut portion = vec![0; PORTION];
    loop {
        match file.read(&mut portion)? {
            0 => return Ok(hash.finish()),
            count => hash.update(&portion[..count]),
        }
    }
}

/// The host has no room for it, say.
pub(crate) fn no_room(error: &io::Error) -> Problem {
    tracing::warn!(%error, "an upload cannot be kept");
    let detail = format!("the lab cannot keep it: {error}");
    Problem::new(
        StatusCode::INSUFFICIENT_STORAGE,
        ProblemKind::Output,
        detail,
    )
}
