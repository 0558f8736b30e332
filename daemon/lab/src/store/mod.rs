//! The lab's store: what outlives the daemon, in an SQLite file or on a PostgreSQL server, written by one task.

mod apart;
mod archive;
mod body;
mod bulletin;
mod cause;
mod entries;
mod error;
mod hand;
mod in_time;
mod lease;
mod listen;
mod lock;
mod lost;
mod make;
mod note;
mod obstacle;
mod place;
mod reader;
mod request;
mod rows;
mod schema;
mod server;
mod sqlite;
#[cfg(test)]
mod tests;
mod turn;
mod writer;

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

use jiff::Timestamp;
use layerlab_protocol::Entry;
use layerlab_protocol::RunId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::job::JobSpec;
use crate::record::{JobId, JobWithRuns, Kept, RecordChange, Run, RunNumber};
use apart::apart;
use bulletin::WriterNews;
use hand::StoreHand;
use listen::Ears;
use lock::Lock;
use lost::LostLease;
use request::KeepRequest;
use turn::TurnRequest;
use writer::{QUEUE, WriterRequest};

use layerlab_farm::folders::make_private;

pub use error::StoreError;
pub use place::StorePlace;
pub use reader::{Reader, StoreCounts};
pub use server::{StoreServer, StoreUrlError};
pub use turn::{OthersChanges, Turn};

/// The store of the lab whose daemon this is.
#[derive(Clone, Debug)]
pub struct Store {
    requests: mpsc::Sender<WriterRequest>,
    trouble: watch::Receiver<Option<String>>,
    last_event: watch::Receiver<i64>,
    lost: watch::Receiver<Option<LostLease>>,
    /// Counts what was heard of other hosts.
    heard: watch::Receiver<u64>,
    place: StorePlace,
    reader: Reader,
    _lock: Arc<Lock>,
}

impl Store {
    /// Opens, or makes, the store at `place`, and takes its lock as long as the store, its clones or its writer live. What
    /// it holds comes with it, without the jobs that are over.
    pub async fn open(place: &StorePlace) -> Result<(Store, Kept), StoreError> {
        let lock = take_folder(place)?;
        let hand = apart({
            let (place, lock) = (place.clone(), Arc::clone(&lock));
            move || StoreHand::open(place, lock)
        });
        let hand = hand.await??;
        place.note()?;
        let reader = Reader::at(place.clone()).await?.with_patience();
        let kept = Kept {
            host: place.is_on_server().then(|| place.host()),
            ..reader.open_jobs().await?
        };
        let (requests, received) = mpsc::channel(QUEUE);
        let (trouble_seen, trouble) = watch::channel(None);
        let (event_kept, last_event) = watch::channel(kept.last_event);
        let (loss, lost) = watch::channel(None);
        let (hearing, heard) = watch::channel(0);
        if let (Some(server), Some(host)) = (place.server(), hand.host()) {
            let ears = Ears {
                host,
                heard: hearing,
                last_event: event_kept.clone(),
                trouble: trouble.clone(),
            };
            tokio::spawn(ears.listen(server.clone()));
        }
        let news = WriterNews {
            trouble: trouble_seen,
            last_event: event_kept,
            lost: loss,
        };
        tokio::spawn(writer::write(received, hand, news));
        let store = Store {
            requests,
            trouble,
            last_event,
            lost,
            heard,
            place: place.clone(),
            reader,
            _lock: lock,
        };
        Ok((store, kept))
    }

    /// Returns when this daemon has lost the right to write, and never where only one can.
    pub fn lost(&self) -> impl Future<Output = StoreError> + Send + use<> {
        let mut lost = self.lost.clone();
        let place = self.place.clone();
        async move {
            let how = lost.wait_for(Option::is_some).await;
            let how = how.ok().and_then(|how| how.clone());
            match how {
                Some(how) => StoreError::of_lease(&place, how),
                // The writer has ended in another way.
                None => pending().await,
            }
        }
    }

    /// Whether other hosts may change the lab, so that whoever changes it waits for the turn.
    pub fn is_shared(&self) -> bool {
        self.place.is_on_server()
    }

    /// Changes when another host has changed the lab so that this one may have something to do.
    pub fn heard(&self) -> watch::Receiver<u64> {
        self.heard.clone()
    }

    /// Waits until the lab is this host's to change, and so for a server that is away.
    pub async fn turn(&self) -> Result<Turn, StoreError> {
        let (others, keep) = match self.is_shared() {
            false => Default::default(),
            true => {
                let (answer, answered) = oneshot::channel();
                let request = WriterRequest::Turn(TurnRequest { answer });
                self.requests
                    .send(request)
                    .await
                    .map_err(|_| StoreError::Gone)?;
                let (others, keep) = answered.await.map_err(|_| StoreError::Gone)??;
                (others, Some(keep))
            }
        };
        Ok(Turn {
            others,
            keep,
            store: self.clone(),
        })
    }

    /// Durable when it returns. Changes of one call become visible together, and calls are worked off in the order of
    /// their arrival. Waits while the disk is full. What was sent is written even if the caller does not wait.
    ///
    /// Fails if the writer is gone, or if the changes contradict what was kept: then none of them is.
    pub async fn keep(&self, changes: Vec<RecordChange>) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        let request = WriterRequest::Keep(KeepRequest { changes, answer });
        self.requests
            .send(request)
            .await
            .map_err(|_| StoreError::Gone)?;
        answered.await.map_err(|_| StoreError::Gone)?
    }

    /// Why nothing can be written now, such as a full disk, or why a journal cannot go on.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.clone()
    }

    /// The number of the last event that is in the store, 0 before the first.
    pub fn last_event(&self) -> watch::Receiver<i64> {
        self.last_event.clone()
    }

    /// The journal of a run as far as it was kept, in order.
    pub async fn entries(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        self.reader.entries(run).await
    }

    /// The job of this number with its runs, if there is one, after all that was sent to be kept.
    pub async fn job(&self, id: JobId) -> Result<Option<JobWithRuns>, StoreError> {
        self.keep(Vec::new()).await?;
        self.reader.job(id).await
    }

    /// The last job that was submitted with this content, by itself and not by one that recurs, and is done.
    pub async fn done_with_content(
        &self,
        content_sha256: &str,
    ) -> Result<Option<JobWithRuns>, StoreError> {
        self.keep(Vec::new()).await?;
        self.reader.done_with_content(content_sha256).await
    }

    /// Runs that were over before `before` and whose journals are still there, at most `most` and not those in `except`.
    pub async fn old_journals(
        &self,
        before: Timestamp,
        except: BTreeSet<RunNumber>,
        most: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.keep(Vec::new()).await?;
        self.reader.old_journals(before, except, most).await
    }

    /// How many bytes the journal of each run takes, by its name.
    pub async fn journal_sizes(&self) -> Result<Vec<(RunId, u64)>, StoreError> {
        self.reader.journal_sizes().await
    }

    /// How long runs took, in milliseconds, that published what `spec` asks for on `device` of the model of place `model` in
    /// `spec`, measured in the same way.
    pub async fn took(
        &self,
        device: &str,
        spec: &JobSpec,
        model: usize,
    ) -> Result<Vec<u64>, StoreError> {
        // Nothing is waited for, as in `published`.
        self.reader.took(device, spec, model).await
    }

    /// The runs that published a profile on `device` of the model whose copy has this hash, `except` apart, the newest first.
    pub async fn published(
        &self,
        device: &str,
        model_sha256: &str,
        except: RunNumber,
    ) -> Result<Vec<Run>, StoreError> {
        // Nothing is waited for: a run begins on a device when what the one before it published is in the store.
        self.reader.published(device, model_sha256, except).await
    }

    /// Returns when everything is written and the lock is given back, which takes that all clones are dropped.
    pub async fn close(self) {
        let mut trouble = self.trouble.clone();
        drop(self);
        // The writer's end of the channel is the last thing that it lets go.
        while trouble.changed().await.is_ok() {}
    }
}

/// Takes the lock of the lab's folder, which is made if it is not there.
fn take_folder(place: &StorePlace) -> Result<Arc<Lock>, StoreError> {
    let folder = place.folder();
    let failed = |source| StoreError::Folder {
        path: folder.to_owned(),
        source,
    };
    make_private(folder).map_err(failed)?;
    let lock = Lock::take(folder)?;
    place.make().map_err(failed)?;
    Ok(Arc::new(lock))
}
