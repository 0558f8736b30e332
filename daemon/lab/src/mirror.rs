//! Brings what other hosts of the lab have published from the object store into this host's folder of profiles, where all that
//! reads profiles finds it. Nothing of the lab depends on it: what cannot be brought is told, and tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use layerlab_objects::ObjectsError;
use tokio::sync::{mpsc, watch};

use crate::dispatcher::Message;
use crate::library::SharingError;
use crate::publications::Publications;
use crate::query::indexed_profiles;
use crate::record::{Kept, Run, RunNumber, RunState};
use crate::shared_profiles::SharedProfiles;

/// How soon what was not brought is tried again, unless something is published before.
const AGAIN: Duration = Duration::from_secs(60);

/// What brings publications to a host.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// The folder of the lab's store.
    pub store: PathBuf,
    /// Where they are brought from.
    pub shared: SharedProfiles,
    /// This host's folder of profiles. What is published elsewhere is not brought.
    pub profiles: PathBuf,
}

impl Mirror {
    /// Brings what was published and what will be, for ever. `last_event` is the number of the store's last event, and `messages`
    /// leads to the dispatcher, which notes what could not be brought.
    pub async fn follow(self, last_event: watch::Receiver<i64>, messages: mpsc::Sender<Message>) {
        let mut publications = Publications::of(self.store.clone(), last_event);
        let mut missing = wanted(publications.so_far().await, &self.profiles);
        let mut told = BTreeSet::new();
        loop {
            // What is there, or was, is not missing: when somebody removes it, it is not brought again.
            self.bring(&mut missing, &mut told, &messages).await;
            let at_most = (!missing.is_empty()).then_some(AGAIN);
            let Some(runs) = publications.next(at_most).await else {
                return;
            };
            missing.extend(placed(runs, &self.profiles));
        }
    }

    /// Brings what is missing, the oldest first. Why something could not be brought is told once.
    async fn bring(
        &self,
        missing: &mut BTreeMap<RunNumber, Placed>,
        told: &mut BTreeSet<RunNumber>,
        messages: &mpsc::Sender<Message>,
    ) {
        for (number, Placed { run, folder }) in std::mem::take(missing) {
            let brought = match folder.exists() {
                true => Ok(()),
                false => self.shared.bring(&run, &folder).await,
            };
            match brought {
                Ok(()) => {}
                Err(_) if folder.exists() => {}
                // It was published before there was an object store.
                Err(SharingError::Objects(ObjectsError::Missing { .. })) => {
                    tracing::info!(run = number, "what it published is not in the object store");
                }
                Err(error) => {
                    missing.insert(number, Placed { run, folder });
                    if told.insert(number) {
                        let trouble = format!(
                            "what run {number} has published is not on this host: {error}; this is tried again every minute"
                        );
                        // A dispatcher that is gone does not hear it.
                        let _ = messages.send(Message::Trouble(trouble)).await;
                    }
                }
            }
        }
    }
}

/// What a run has published, and its place on this host.
#[derive(Debug)]
struct Placed {
    run: Run,
    folder: PathBuf,
}

/// What is to be on this host below `profiles` of what was published before: the newest and the last good profile of each model on
/// each device, which nothing removes.
fn wanted(mut kept: Kept, profiles: &Path) -> BTreeMap<RunNumber, Placed> {
    let (mut newest, mut good) = (BTreeSet::new(), BTreeSet::new());
    let mut stay = BTreeSet::new();
    // The newest of each model on each device comes first.
    for profile in indexed_profiles(&kept, None, None) {
        let of = (profile.model, profile.device);
        let is_good = kept.runs[&profile.run].worse().is_none();
        if newest.insert(of.clone()) | (is_good && good.insert(of)) {
            stay.insert(profile.run);
        }
    }
    kept.runs.retain(|number, _| stay.contains(number));
    placed(kept.runs.into_values(), profiles).collect()
}

/// What the runs have published below `profiles`.
fn placed(
    runs: impl IntoIterator<Item = Run>,
    profiles: &Path,
) -> impl Iterator<Item = (RunNumber, Placed)> {
    let done = runs.into_iter().filter(|run| run.state == RunState::Done);
    done.filter_map(move |run| {
        let folder = (run
            .profile
            .as_ref()
            .or(run.video.as_ref())
            .or(run.link.as_ref()))?
        .clone();
        is_within(&folder, profiles).then_some((run.number, Placed { run, folder }))
    })
}

/// Whether a folder is below another one, whatever hosts write.
pub(crate) fn is_within(folder: &Path, profiles: &Path) -> bool {
    let rest = folder.strip_prefix(profiles);
    rest.is_ok_and(|rest| {
        let mut parts = rest.components();
        rest.components().count() > 0 && parts.all(|part| matches!(part, Component::Normal(_)))
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::job::{JobSpec, ModelSpec};
    use crate::record::{Job, JobState};

    #[test]
    fn what_stays_is_wanted_and_what_is_new_is_placed_where_this_host_has_its_profiles() {
        let run = |number, device: &str, folder: &str| Run {
            number,
            job: 1,
            state: RunState::Done,
            phone: Some(device.to_owned()),
            ended: Some(Timestamp::from_second(10 * number).expect("a time")),
            profile: Some(folder.into()),
            ..Run::default()
        };
        let spec = JobSpec {
            models: vec![ModelSpec::default()],
            ..JobSpec::default()
        };
        let job = Job {
            id: 1,
            spec,
            content_sha256: String::new(),
            submitted: Timestamp::UNIX_EPOCH,
            occurrence_of: None,
            state: JobState::Open,
        };
        let runs = [
            // There is a newer one.
            run(1, "a", "/lab/a/1"),
            run(2, "a", "/lab/a/2"),
            run(3, "b", "/lab/b/3"),
            run(4, "b", "/lab/b/4"),
            run(5, "c", "/elsewhere/c/5"),
            run(6, "d", "/lab/../etc/6"),
            Run {
                state: RunState::Failed,
                ..run(7, "e", "/lab/e/7")
            },
        ];
        let kept = Kept {
            jobs: [(1, job)].into(),
            runs: runs.clone().map(|run| (run.number, run)).into(),
            ..Kept::default()
        };
        let profiles = Path::new("/lab");
        let stay = wanted(kept, profiles);
        let numbers: Vec<RunNumber> = stay.keys().copied().collect();
        assert_eq!(numbers, [2, 4]);
        assert_eq!(stay[&2].folder, Path::new("/lab/a/2"));
        let new: Vec<RunNumber> = placed(runs, profiles).map(|(number, _)| number).collect();
        assert_eq!(new, [1, 2, 3, 4]);
    }
}
