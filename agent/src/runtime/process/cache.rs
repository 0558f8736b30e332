//! Compiled models on disk, so that a segment is compiled once for a processor: named by the SHA-256 of all that decides
//! what the compiler gives.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use layerlab_protocol::{Library, PlacedNode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the folder may hold. A phone has room for that; a night's segments of one model take less.
const CAPACITY_BYTES: u64 = 2 << 30;

/// The compiled models of one processor. Copies share the folder.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct CompileCache {
    folder: PathBuf,
    /// The SHA-256 over what the processor's runtime is: libraries, options, numerics.
    runtime: Vec<u8>,
    /// Numbers the files that are not kept yet.
    new: Arc<AtomicU64>,
}

/// What is known of a compiled model, in a file beside it. It is written last, so that there is no entry without it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryFile {
    /// The name that it was compiled for. A file that got another one was compiled for another processor or model, which
    /// the libraries do not always notice.
    name: String,
    /// SHA-256 of the compiled model, in hexadecimal.
    sha256: String,
    /// Where the nodes were placed when it was compiled.
    nodes: Vec<PlacedNode>,
}

/// A compiled model that is there.
pub(super) struct CompiledModel {
    /// Its file.
    pub(super) file: PathBuf,
    /// Where its nodes were placed when it was compiled.
    pub(super) nodes: Vec<PlacedNode>,
}

impl CompileCache {
    /// The cache in `folder`, which is made if it is missing, for a processor that is described by `libraries` and
    /// `runtime`.
    pub(in crate::runtime) fn open(
        folder: &Path,
        libraries: &[Library],
        runtime: &impl Serialize,
    ) -> io::Result<CompileCache> {
        fs::create_dir_all(folder)?;
        let mut hasher = Sha256::new();
        for library in libraries {
            hasher.update(&library.sha256);
        }
        hasher.update(serde_json::to_vec(runtime)?);
        Ok(CompileCache {
            folder: folder.to_owned(),
            runtime: hasher.finalize().to_vec(),
            new: Arc::default(),
        })
    }

    /// The name of `model` once it is compiled.
    pub(super) fn key(&self, model: &[u8]) -> String {
        let mut hasher = Sha256::new();
        hasher.update(&self.runtime);
        hasher.update(model);
        hexadecimal(&hasher.finalize())
    }

    /// The compiled model of that name. One that is damaged is removed.
    pub(super) fn find(&self, key: &str) -> Option<CompiledModel> {
        let text = fs::read(self.entry_file(key)).ok()?;
        let file = self.compiled_file(key);
        let entry: Option<EntryFile> = serde_json::from_slice(&text).ok();
        let content = fs::read(&file).ok();
        match (entry, content) {
            (Some(entry), Some(content))
                if entry.name == key && entry.sha256 == sha256(&content) =>
            {
                // What was used last is removed last.
                let used =
                    fs::File::open(&file).and_then(|file| file.set_modified(SystemTime::now()));
                used.unwrap_or_else(
                    |error| tracing::debug!(%error, "a compiled model keeps its time"),
                );
                Some(CompiledModel {
                    file,
                    nodes: entry.nodes,
                })
            }
            _ => {
                tracing::warn!(
                    key,
                    "a compiled model is damaged or another one, and is compiled again"
                );
                self.remove(key);
                None
            }
        }
    }

    /// A file for a model that is about to be compiled.
    pub(super) fn new_file(&self) -> PathBuf {
        let number = self.new.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        self.folder.join(format!("new-{process}-{number}.onnx"))
    }

    /// Gives a model that was compiled into `new` its name. A cache that cannot be written costs time alone, so that
    /// this is no error.
    pub(super) fn keep(&self, key: &str, new: &Path, nodes: &[PlacedNode]) {
        if let Err(error) = self.try_keep(key, new, nodes) {
            tracing::warn!(%error, "a compiled model cannot be kept");
            let _ = fs::remove_file(new);
        }
    }

    /// Removes a compiled model, if it is there.
    pub(super) fn remove(&self, key: &str) {
        let _ = fs::remove_file(self.entry_file(key));
        let _ = fs::remove_file(self.compiled_file(key));
    }

    fn try_keep(&self, key: &str, new: &Path, nodes: &[PlacedNode]) -> io::Result<()> {
        let entry = EntryFile {
            name: key.to_owned(),
            sha256: sha256(&fs::read(new)?),
            nodes: nodes.to_vec(),
        };
        fs::rename(new, self.compiled_file(key))?;
        let new = new.with_extension("json");
        fs::write(&new, serde_json::to_vec(&entry)?)?;
        fs::rename(&new, self.entry_file(key))?;
        self.make_room()
    }

    /// Removes what was used longest ago until the rest is within the capacity.
    fn make_room(&self) -> io::Result<()> {
        let mut models: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry
                .path()
                .extension()
                .is_some_and(|ending| ending == "onnx")
            {
                let data = entry.metadata()?;
                models.push((data.modified()?, data.len(), entry.path()));
            }
        }
        models.sort();
        let mut bytes: u64 = models.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, file) in models {
            if bytes <= CAPACITY_BYTES {
                break;
            }
            let _ = fs::remove_file(file.with_extension("json"));
            fs::remove_file(&file)?;
            bytes -= length;
        }
        Ok(())
    }

    fn compiled_file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.onnx"))
    }

    fn entry_file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

fn sha256(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// Bytes as profiles write them.
pub(in crate::runtime) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
