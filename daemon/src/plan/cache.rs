//! What plans have learnt of a profile, kept from one command to the next.
//!
//! An entry is a file named by what it was made from. It begins with the program that wrote it and a checksum: one that
//! another program wrote, or that is damaged, is made anew. Whatever is here can be made again and may be deleted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use layerlab_farm::folders::{Folders, write_whole};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Where entries are kept, if they are.
pub(super) struct PlanCache(Option<PathBuf>);

/// What an entry is made from: its digest names it.
#[derive(Clone)]
pub(super) struct CacheKey(Sha256);

impl CacheKey {
    /// The tables of the profile in `folder`: all of its CSV files and its header, which is what planning reads.
    pub(super) fn of_profile(folder: &Path) -> anyhow::Result<CacheKey> {
        let is_read = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("csv" | "json"))
        };
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let path = entry
                .with_context(|| format!("cannot read {}", folder.display()))?
                .path();
            files.extend(is_read(&path).then_some(path));
        }
        files.sort();
        let mut key = CacheKey(Sha256::new());
        for file in files {
            let name = file.file_name().unwrap_or_default();
            key = key.with(name.as_encoded_bytes());
            let content =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            key = key.with(&content);
        }
        Ok(key)
    }

    /// The same, and something else.
    pub(super) fn with(mut self, more: &[u8]) -> CacheKey {
        self.0.update((more.len() as u64).to_le_bytes());
        self.0.update(more);
        self
    }

    fn name(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

impl PlanCache {
    /// The user's own; `layerlab/plans` in the folder for caches.
    pub(super) fn of_this_user() -> PlanCache {
        PlanCache(Some(Folders::of_this_user().cache.join("plans")))
    }

    /// One that keeps nothing.
    pub(super) fn none() -> PlanCache {
        PlanCache(None)
    }

    /// The entry of this kind, or what `make` makes, which is kept.
    pub(super) fn recall_or<T: Serialize + DeserializeOwned, E>(
        &self,
        kind: &str,
        key: &CacheKey,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(folder) = &self.0 else {
            return make();
        };
        let file = folder.join(format!("{kind}-{}.cbor", key.name()));
        if let Some(content) = read(&file) {
            tracing::debug!(file = %file.display(), "what was learnt before is used");
            return Ok(content);
        }
        let made = make()?;
        if let Err(error) = write(&file, &made) {
            tracing::warn!("what was learnt is not kept for the next plan: {error:#}");
        }
        Ok(made)
    }
}

/// The content of an entry; nothing if there is none, or it is not to be relied on.
fn read<T: DeserializeOwned>(file: &Path) -> Option<T> {
    let bytes = fs::read(file).ok()?;
    let content = bytes.strip_prefix(program().as_slice());
    let sound = content
        .and_then(|rest| rest.split_at_checked(32))
        .filter(|(checksum, content)| Sha256::digest(content).as_slice() == *checksum);
    let content = sound.and_then(|(_, content)| ciborium::from_reader(content).ok());
    if content.is_none() {
        tracing::info!(file = %file.display(), "an entry of the cache is damaged or of another version; it is made anew");
    }
    content
}

fn write(file: &Path, content: &impl Serialize) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    ciborium::into_writer(content, &mut bytes)?;
    let entry = [&program()[..], &Sha256::digest(&bytes)[..], &bytes].concat();
    write_whole(file, &entry).with_context(|| format!("cannot write {}", file.display()))
}

/// Which program this is: another build may learn otherwise.
fn program() -> Vec<u8> {
    let built = std::env::current_exe().and_then(fs::metadata).map(|file| {
        let changed = file.modified().ok();
        let since = changed.and_then(|changed| changed.duration_since(std::time::UNIX_EPOCH).ok());
        (file.len(), since.map(|since| since.as_nanos()))
    });
    let text = format!("{} {:?}", env!("CARGO_PKG_VERSION"), built.ok());
    Sha256::digest(text).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A cache in a folder of its own, and the key of a profile of one table.
    fn kept(folder: &Path, table: &str) -> (PlanCache, CacheKey) {
        let profile = folder.join("profile");
        fs::create_dir_all(&profile).expect("a folder");
        fs::write(profile.join("times.csv"), table).expect("a table");
        let key = CacheKey::of_profile(&profile).expect("readable");
        (PlanCache(Some(folder.join("cache"))), key)
    }

    /// What the cache gives, and whether it was made.
    fn ask((cache, key): &(PlanCache, CacheKey)) -> (f64, bool) {
        let mut is_made = false;
        let made = cache.recall_or("loss", key, || {
            is_made = true;
            Ok::<f64, Infallible>(0.1 + 0.2)
        });
        let Ok(value) = made;
        (value, is_made)
    }

    #[test]
    fn what_was_made_is_kept_to_the_last_digit_until_the_tables_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = kept(folder.path(), "1");
        assert_eq!(ask(&first), (0.1 + 0.2, true));
        assert_eq!(ask(&first), (0.1 + 0.2, false));
        assert_eq!(ask(&kept(folder.path(), "2")), (0.1 + 0.2, true));
        let (cache, key) = first;
        assert!(ask(&(cache, key.with(b"99 %"))).1, "another confidence");
        assert!(ask(&(PlanCache::none(), kept(folder.path(), "1").1)).1);
    }

    #[test]
    fn damaged_entries_are_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = kept(folder.path(), "1");
        ask(&cache);
        let entries = fs::read_dir(folder.path().join("cache")).expect("a folder");
        let [entry] = &entries
            .map(|entry| entry.expect("an entry").path())
            .collect::<Vec<_>>()[..]
        else {
            panic!("one entry");
        };
        let whole = fs::read(entry).expect("an entry");
        let damaged = |place: usize| {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            bytes
        };
        let last = whole.len() - 1;
        for bytes in [
            damaged(0),
            damaged(40),
            damaged(last),
            whole[..last].to_vec(),
            Vec::new(),
        ] {
            fs::write(entry, bytes).expect("written");
            assert_eq!(ask(&cache), (0.1 + 0.2, true));
            assert_eq!(
                fs::read(entry).expect("an entry"),
                whole,
                "it is whole again"
            );
        }
    }
}
