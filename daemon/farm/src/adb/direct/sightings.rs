//! Phones that show themselves, on USB or by name on the network, as a child sees them that looks for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::Means;
use super::frames::{Answer, Failure, Frame, LOOK, Sighting};
use super::process::PhoneProcess;

/// How long phones on the network may take to answer who is there.
const ANSWER: Duration = Duration::from_millis(1500);

/// The wait before a child that ended is started anew.
const AGAIN: Duration = Duration::from_secs(5);

/// What a child sees that is started when somebody first wants to know.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    seen: Arc<Mutex<Vec<Sighting>>>,
    watching: OnceLock<(Instant, Watching)>,
}

/// Ends with what it is for.
#[derive(Debug)]
struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Sightings {
    /// Looks for phones from now on.
    pub(super) fn start(&self, means: &Arc<Means>) {
        self.watching.get_or_init(|| {
            let (means, seen) = (Arc::clone(means), Arc::clone(&self.seen));
            let task = tokio::spawn(async move {
                loop {
                    let Err(failure) = watch(&means, &seen).await;
                    tracing::warn!(reason = failure.reason, "cannot look for phones");
                    lock(&seen).clear();
                    sleep(AGAIN).await;
                }
            });
            (Instant::now(), Watching(task))
        });
    }

    /// Waits until whoever is there has had time to say so.
    pub(super) async fn settled(&self) {
        if let Some((since, _)) = self.watching.get() {
            sleep_until(*since + ANSWER).await;
        }
    }

    /// All that are seen now.
    pub(super) fn now(&self) -> Vec<Sighting> {
        lock(&self.seen).clone()
    }
}

async fn watch(
    means: &Means,
    seen: &Mutex<Vec<Sighting>>,
) -> Result<std::convert::Infallible, Failure> {
    let mut child = PhoneProcess::spawn(means.program(), LOOK)?;
    loop {
        if let Frame::Answer(Answer::Seen(now)) = child.receive().await? {
            *lock(seen) = now;
        }
    }
}

fn lock(seen: &Mutex<Vec<Sighting>>) -> MutexGuard<'_, Vec<Sighting>> {
    // It is replaced as a whole.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
