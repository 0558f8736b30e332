//! What is measured and cannot be written where it should be: it waits on this host, not on its device.

use std::path::{Path, PathBuf};

use layerlab_profiles::document::DocumentError;
use layerlab_profiles::folder::FolderError;
use layerlab_profiles::gate::ProfileSubject;
use tokio::task::spawn_blocking;

use super::measured::Measured;
use super::{Farm, lock};
use crate::baseline::Baselines;
use crate::library::SharingError;
use crate::mirror::is_within;
use crate::record::{Run, RunNumber, Verdict};
use crate::regression::verdict;
use crate::shared_profiles::SharedProfiles;
use crate::state::{PublicationOutcome, StayOutcome};
use layerlab_campaign::publish::{PublishError, SigningKey};

/// What was measured, and where it is to be published.
pub(super) struct Unpublished {
    pub(super) target: PathBuf,
    pub(super) signing_key: Option<SigningKey>,
    pub(super) measured: Measured,
    /// What the lab calls its device.
    pub(super) device: String,
    /// The hash of the lab's copy of its model, if it is of one.
    pub(super) model_sha256: Option<String>,
    /// Where other hosts find it, if there is an object store.
    pub(super) shared: Option<SharedProfiles>,
    /// The run that has measured it.
    pub(super) run: Run,
    /// What is doubtful about it, once it is written and only other hosts do not find it yet.
    pub(super) written: Option<Vec<String>>,
}

impl Unpublished {
    fn publish(&self) -> PublicationOutcome {
        if let Some(findings) = self.written.clone().filter(|_| self.target.is_dir()) {
            return self.published(findings);
        }
        let key = self.signing_key.clone();
        match self.measured.publish(&self.target, key) {
            Ok(findings) => self.published(findings),
            Err(error) => match self.obstacle(&error) {
                Some(reason) => PublicationOutcome::Unpublished { reason },
                None => PublicationOutcome::Failed {
                    reason: error.to_string(),
                },
            },
        }
    }

    fn published(&self, findings: Vec<String>) -> PublicationOutcome {
        PublicationOutcome::Published {
            folder: self.target.clone(),
            findings,
            verdict: None,
        }
    }

    /// Has other hosts find it.
    async fn share(&self) -> Result<(), SharingError> {
        match &self.shared {
            Some(shared) => shared.put(&self.run, &self.target).await,
            None => Ok(()),
        }
    }

    /// What keeps it from being written, and what helps; none if it never will be.
    fn obstacle(&self, error: &PublishError) -> Option<String> {
        let source = match error {
            PublishError::Folder { source, .. } | PublishError::File { source, .. } => source,
            PublishError::Document {
                source: DocumentError::Write { reason, .. },
            }
            | PublishError::OtherDocument {
                source: FolderError::File(DocumentError::Write { reason, .. }),
            } => reason,
            _ => return None,
        };
        // Not its staging folder, which is another each time.
        let folder = self.target.parent().unwrap_or(&self.target);
        Some(format!(
            "cannot write to {}: {source}; make room, or let the daemon's user write there",
            folder.display()
        ))
    }
}

impl Farm {
    /// Publishes what a run has measured, or holds it back until it can be written.
    pub(super) async fn publish_or_hold(
        &self,
        run: RunNumber,
        unpublished: Unpublished,
    ) -> Result<StayOutcome, StayOutcome> {
        lock(&self.0.unpublished).insert(run, unpublished);
        match self.publish_again(run).await {
            PublicationOutcome::Published {
                folder,
                findings,
                verdict,
            } => Ok(StayOutcome::Published {
                folder,
                findings,
                verdict,
            }),
            PublicationOutcome::Unpublished { reason } => Err(StayOutcome::Unpublished { reason }),
            PublicationOutcome::Failed { reason } => Err(StayOutcome::Failed { reason }),
            // Nobody wants it any more.
            PublicationOutcome::NotAtHand => Err(StayOutcome::Parked),
        }
    }

    /// Publishes what is held back of a run, if that can be written now.
    pub(super) async fn publish_again(&self, run: RunNumber) -> PublicationOutcome {
        let Some(unpublished) = lock(&self.0.unpublished).remove(&run) else {
            return PublicationOutcome::NotAtHand;
        };
        // Tables of samples are long, and written to the end.
        let tried = spawn_blocking(move || (unpublished.publish(), unpublished)).await;
        let Ok((outcome, mut unpublished)) = tried else {
            return PublicationOutcome::NotAtHand;
        };
        if let PublicationOutcome::Published { findings, .. } = &outcome
            && let Err(error) = unpublished.share().await
        {
            let reason = format!("it cannot be put into the object store: {error}");
            unpublished.written = Some(findings.clone());
            lock(&self.0.unpublished).insert(run, unpublished);
            return PublicationOutcome::Unpublished { reason };
        }
        match outcome {
            PublicationOutcome::Unpublished { .. } => {
                lock(&self.0.unpublished).insert(run, unpublished);
                outcome
            }
            PublicationOutcome::Published {
                folder, findings, ..
            } => PublicationOutcome::Published {
                folder,
                findings,
                verdict: self.verdict(run, unpublished).await,
            },
            PublicationOutcome::Failed { .. } | PublicationOutcome::NotAtHand => outcome,
        }
    }

    /// Whether a profile that was just published is worse than the last good one of the same thing, or than its baseline.
    /// Nothing else is judged.
    async fn verdict(&self, run: RunNumber, published: Unpublished) -> Option<Verdict> {
        let Unpublished {
            target,
            measured,
            device,
            model_sha256,
            shared,
            ..
        } = published;
        let (Measured::Profile(profile), Some(model_sha256)) = (measured, model_sha256) else {
            return None;
        };
        let earlier = self.0.store.published(&device, &model_sha256, run).await;
        let earlier = earlier.unwrap_or_else(|error| {
            tracing::warn!(%error, "the profiles before this one are not known");
            Vec::new()
        });
        let judging = self.0.config.regression.judging();
        if let Some(shared) = shared {
            let profiles = self.0.config.profiles(&self.0.folders);
            bring_references(&shared, &earlier, &profiles, judging.good).await;
        }
        let baselines = Baselines::in_state(&self.0.folders.state);
        let judged = spawn_blocking(move || {
            let subject = ProfileSubject::of(&profile.header);
            let baseline = baselines
                .of(&subject, Some(device.as_str()))
                .unwrap_or_else(|error| {
                    tracing::warn!(%error, "baselines are not known");
                    None
                });
            verdict(&profile, &target, &earlier, baseline.as_ref(), judging)
        });
        // Whatever breaks it off is no reason to doubt the profile.
        judged.await.ok().flatten()
    }
}

/// Brings what a new profile is compared with and another host has published: the earlier ones of its device and its model, the
/// newest first, until so many are good, as far as they belong below `profiles`.
async fn bring_references(shared: &SharedProfiles, earlier: &[Run], profiles: &Path, good: usize) {
    let mut found = 0;
    for run in earlier {
        let Some(folder) = run.profile.as_deref() else {
            continue;
        };
        if !folder.exists()
            && is_within(folder, profiles)
            && let Err(error) = shared.bring(run, folder).await
        {
            tracing::warn!(run = run.number, %error, "its profile is not compared with");
        }
        found += usize::from(folder.exists() && run.worse().is_none());
        if found >= good {
            return;
        }
    }
}
