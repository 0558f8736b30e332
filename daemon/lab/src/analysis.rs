//! Appends what the lab publishes to the tables for analysis (docs/analysis.md), in its own time. Nothing of the lab depends on
//! it: what cannot be appended is told, and made up for later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use layerlab_analysis::{ExportError, export, exported_profiles};
use layerlab_profiles::document::ProfileDigest;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use crate::dispatcher::Message;
use crate::publications::Publications;
use crate::query::indexed_profiles;
use crate::record::{RunNumber, RunState};

/// How soon what was not appended is tried again, unless something is published before.
const AGAIN: Duration = Duration::from_secs(3600);

/// The tables to which the lab appends.
#[derive(Clone, Debug)]
pub struct AnalysisTables {
    /// The folder of the lab's store.
    pub store: PathBuf,
    /// The folder of the tables.
    pub folder: PathBuf,
}

impl AnalysisTables {
    /// Appends what the lab has published and what it publishes, for ever. `last_event` is the number of the store's last event,
    /// and `messages` leads to the dispatcher, which notes what could not be appended.
    pub async fn append(self, last_event: watch::Receiver<i64>, messages: mpsc::Sender<Message>) {
        let mut publications = Publications::of(self.store.clone(), last_event);
        let so_far = indexed_profiles(&publications.so_far().await, None, None).into_iter();
        let mut missing: BTreeMap<RunNumber, PathBuf> = so_far
            .map(|profile| (profile.run, profile.folder))
            .collect();
        let mut told = BTreeSet::new();
        loop {
            self.append_missing(&mut missing, &mut told, &messages)
                .await;
            let at_most = (!missing.is_empty()).then_some(AGAIN);
            let Some(runs) = publications.next(at_most).await else {
                return;
            };
            let done = runs.into_iter().filter(|run| run.state == RunState::Done);
            missing.extend(done.filter_map(|run| Some((run.number, run.profile?))));
        }
    }

    /// Appends what is missing, the oldest first, and tells once for each profile why it could not be.
    async fn append_missing(
        &self,
        missing: &mut BTreeMap<RunNumber, PathBuf>,
        told: &mut BTreeSet<RunNumber>,
        messages: &mpsc::Sender<Message>,
    ) {
        for (run, folder) in missing.clone() {
            let out = self.folder.clone();
            let Ok(appended) = spawn_blocking(move || append_one(&folder, &out)).await else {
                continue;
            };
            let Err(error) = appended else {
                missing.remove(&run);
                continue;
            };
            if told.insert(run) {
                let trouble = self.trouble(run, &error);
                // A dispatcher that is gone does not hear it.
                let _ = messages.send(Message::Trouble(trouble)).await;
            }
            // The others could not be written either.
            if !error.is_of_profile() {
                break;
            }
        }
    }

    fn trouble(&self, run: RunNumber, error: &ExportError) -> String {
        let (folder, pause) = (self.folder.display(), AGAIN.as_secs() / 60);
        format!(
            "the profile of run {run} is not in the tables for analysis: {error}; this is tried again with the next publication, \
             every {pause} minutes and by `layerlab export --format parquet --published --out {folder}`"
        )
    }
}

/// Appends the profile in `folder`, unless it is in the tables in `out` or has been removed.
fn append_one(folder: &Path, out: &Path) -> Result<(), ExportError> {
    if !folder.is_dir() {
        return Ok(());
    }
    let digest = ProfileDigest::of_folder(folder)?;
    let failed = |source: io::Error| ExportError::Folder {
        path: out.to_owned(),
        source,
    };
    if exported_profiles(out)
        .map_err(failed)?
        .contains(digest.as_str())
    {
        return Ok(());
    }
    export(folder, out, host_name().as_deref())?;
    Ok(())
}

/// What this machine is called, if it tells.
pub fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
