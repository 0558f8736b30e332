//! Brings what other hosts of the lab have published from the object store into this host's folder of profiles, where all that
//! reads profiles finds it. Nothing of the lab depends on it: what cannot be brought is told, and tried again.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use layerlab_objects::ObjectsError;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::dispatcher::Message;
use crate::library::SharingError;
use crate::published_after::published_after;
use crate::query::indexed_profiles;
use crate::record::{Kept, Run, RunNumber, RunState};
use crate::shared_profiles::SharedProfiles;
use crate::store::Reader;

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
    pub async fn follow(
        self,
        mut last_event: watch::Receiver<i64>,
        messages: mpsc::Sender<Message>,
    ) {
        let began = Timestamp::now();
        // What is there, or was: when somebody removes it, it is not brought again.
        let mut done = BTreeSet::new();
        let mut told = BTreeSet::new();
        loop {
            let seen = *last_event.borrow_and_update();
            let looked = async { Reader::open(&self.store).await?.all().await };
            let is_all_here = match looked.await {
                Ok(kept) => {
                    self.bring_missing(&kept, began, &mut done, &mut told, &messages)
                        .await
                }
                Err(error) => {
                    tracing::warn!(%error, "what other hosts have published is not known");
                    false
                }
            };
            let published = published_after(&self.store, seen, &mut last_event);
            let next = match is_all_here {
                true => Ok(published.await),
                false => timeout(AGAIN, published).await,
            };
            match next {
                Ok(Ok(true)) | Err(_) => {}
                Ok(Ok(false)) => return,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "what is published is not known");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Brings what is not here and is to be, the oldest first. Whether all of it is here now; why not is told once.
    async fn bring_missing(
        &self,
        kept: &Kept,
        began: Timestamp,
        done: &mut BTreeSet<RunNumber>,
        told: &mut BTreeSet<RunNumber>,
        messages: &mpsc::Sender<Message>,
    ) -> bool {
        let mut is_all_here = true;
        for (run, folder) in wanted(kept, began, &self.profiles) {
            if done.contains(&run.number) {
                continue;
            }
            let brought = match folder.exists() {
                true => Ok(()),
                false => self.shared.bring(run, folder).await,
            };
            match brought {
                Ok(()) => drop(done.insert(run.number)),
                Err(_) if folder.exists() => drop(done.insert(run.number)),
                // It was published before there was an object store.
                Err(SharingError::Objects(ObjectsError::Missing { .. })) => {
                    tracing::info!(
                        run = run.number,
                        "what it published is not in the object store"
                    );
                    done.insert(run.number);
                }
                Err(error) => {
                    is_all_here = false;
                    if told.insert(run.number) {
                        let trouble = format!(
                            "what run {} has published is not on this host: {error}; this is tried again every minute",
                            run.number
                        );
                        // A dispatcher that is gone does not hear it.
                        let _ = messages.send(Message::Trouble(trouble)).await;
                    }
                }
            }
        }
        is_all_here
    }
}

/// What is to be on this host below `profiles`, with its place there: the newest and the last good profile of each model on each
/// device, which nothing removes, and whatever was published since `began`.
fn wanted<'a>(kept: &'a Kept, began: Timestamp, profiles: &Path) -> Vec<(&'a Run, &'a Path)> {
    let (mut newest, mut good) = (BTreeSet::new(), BTreeSet::new());
    let mut stay = BTreeSet::new();
    // The newest of each model on each device comes first.
    for profile in indexed_profiles(kept, None, None) {
        let of = (profile.model, profile.device);
        let is_good = kept.runs[&profile.run].worse().is_none();
        if newest.insert(of.clone()) | (is_good && good.insert(of)) {
            stay.insert(profile.run);
        }
    }
    let is_wanted =
        |run: &Run| stay.contains(&run.number) || run.ended.is_some_and(|ended| ended >= began);
    let done = kept.runs.values().filter(|run| run.state == RunState::Done);
    let wanted = done.filter(|run| is_wanted(run));
    let placed = wanted.filter_map(|run| {
        let folders = [&run.profile, &run.video, &run.link].into_iter().flatten();
        Some((run, folders.map(PathBuf::as_path).next()?))
    });
    placed
        .filter(|(_, folder)| is_within(folder, profiles))
        .collect()
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
    use super::*;
    use crate::job::{JobSpec, ModelSpec};
    use crate::record::{Job, JobState};

    #[test]
    fn what_stays_and_what_is_new_is_wanted_where_this_host_has_its_profiles() {
        let second = |second| Timestamp::from_second(second).expect("a time");
        let run = |number, device: &str, ended, folder: &str| Run {
            number,
            job: 1,
            state: RunState::Done,
            phone: Some(device.to_owned()),
            ended: Some(second(ended)),
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
            run(1, "a", 10, "/lab/a/1"),
            run(2, "a", 20, "/lab/a/2"),
            // It is new.
            run(3, "b", 100, "/lab/b/3"),
            run(4, "b", 110, "/lab/b/4"),
            run(5, "c", 120, "/elsewhere/c/5"),
            run(6, "d", 130, "/lab/../etc/6"),
            Run {
                state: RunState::Failed,
                ..run(7, "e", 140, "/lab/e/7")
            },
        ];
        let kept = Kept {
            jobs: [(1, job)].into(),
            runs: runs.into_iter().map(|run| (run.number, run)).collect(),
            ..Kept::default()
        };
        let wanted = wanted(&kept, second(100), Path::new("/lab"));
        let numbers: Vec<RunNumber> = wanted.iter().map(|(run, _)| run.number).collect();
        assert_eq!(numbers, [2, 3, 4]);
        assert_eq!(wanted[0].1, Path::new("/lab/a/2"));
    }
}
