//! The lab's store: one SQLite file that outlives the daemon, written by one task.

mod apart;
mod change;
mod error;
mod lock;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use layerlab_protocol::Entry;
use layerlab_protocol::RunId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::record::Kept;
use apart::apart;
use lock::Lock;
use writer::{Hand, QUEUE, Request};

pub use change::Change;
pub use error::StoreError;
pub use reader::Reader;

/// The store of the lab whose daemon this is.
#[derive(Clone, Debug)]
pub struct Store {
    requests: mpsc::Sender<Request>,
    trouble: watch::Receiver<Option<String>>,
    reader: Reader,
    _lock: Arc<Lock>,
}

impl Store {
    /// Opens, or makes, the store in `folder`, and takes its lock as long as the store, its clones or its writer live.
    pub async fn open(folder: &Path) -> Result<(Store, Kept), StoreError> {
        let (hand, lock, reader, kept) = apart(opened(folder.to_owned())).await??;
        let (requests, received) = mpsc::channel(QUEUE);
        let (publisher, trouble) = watch::channel(None);
        tokio::spawn(writer::write(received, hand, publisher));
        let store = Store {
            requests,
            trouble,
            reader,
            _lock: lock,
        };
        Ok((store, kept))
    }

    /// Durable when it returns. Changes of one call become visible together, and calls are worked off in the order of
    /// their arrival. Waits while the disk is full. What was sent is written even if the caller does not wait.
    ///
    /// Fails if the writer is gone, or if the changes contradict what was kept: then none of them is.
    pub async fn keep(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        let request = Request { changes, answer };
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

    /// The journal of a run as far as it was kept, in order.
    pub async fn entries(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        self.reader.entries(run).await
    }

    /// Returns when everything is written and the lock is given back, which takes that all clones are dropped.
    pub async fn close(self) {
        let mut trouble = self.trouble.clone();
        drop(self);
        // The writer's end of the channel is the last thing that it lets go.
        while trouble.changed().await.is_ok() {}
    }
}

async fn opened(folder: PathBuf) -> Result<(Hand, Arc<Lock>, Reader, Kept), StoreError> {
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Folder {
        path: folder.clone(),
        source,
    })?;
    let lock = Arc::new(Lock::take(&folder)?);
    let path = schema::file(&folder);
    let mut connection = schema::connect(&path, true)
        .await
        .map_err(|error| StoreError::of_database(&path, &error))?;
    schema::prepare(&path, &mut connection).await?;
    let reader = Reader::at(path.clone()).await?;
    let kept = reader.load().await?;
    let hand = Hand::new(path, connection, Arc::clone(&lock));
    Ok((hand, lock, reader, kept))
}
