//! Hearing of what other hosts of the lab change.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::apart::apart;
use super::bulletin::tell_last_event;
use super::cause::sentence;
use super::server::StoreServer;
use super::turn::{CHANNEL, told};

/// The pause before a server that is away is called again.
const RETRY: Duration = Duration::from_secs(5);

/// Who listens, and who is told.
pub(super) struct Ears {
    /// The number of this host's row, whose own changes are not heard.
    pub(super) host: i64,
    /// Counts what was heard.
    pub(super) heard: watch::Sender<u64>,
    /// The number of the last event in the store.
    pub(super) last_event: watch::Sender<i64>,
    /// Ends with the writer.
    pub(super) trouble: watch::Receiver<Option<String>>,
}

impl Ears {
    /// Listens until the store is closed.
    pub(super) async fn listen(self, server: StoreServer) {
        let mut trouble = self.trouble.clone();
        let writer_ends = async { while trouble.changed().await.is_ok() {} };
        tokio::select! {
            () = writer_ends => {}
            () = self.listen_on(server) => {}
        }
    }

    async fn listen_on(&self, server: StoreServer) {
        loop {
            let server = server.clone();
            let connected = apart(move || async move { server.listen(CHANNEL).await }).await;
            match connected {
                Err(_) => return,
                Ok(Ok(mut listener)) => {
                    // Something may have been missed.
                    self.heard.send_modify(|heard| *heard += 1);
                    loop {
                        match listener.try_recv().await {
                            Ok(Some(notification)) => self.hear(notification.payload()),
                            // The connection was lost, and is made again by whoever listens next.
                            Ok(None) => break,
                            Err(error) => {
                                let why = sentence(&error);
                                tracing::debug!(why, "other hosts cannot be heard");
                                break;
                            }
                        }
                    }
                }
                Ok(Err(error)) => {
                    let why = sentence(&error);
                    tracing::debug!(why, "other hosts cannot be heard");
                }
            }
            sleep(RETRY).await;
        }
    }

    fn hear(&self, payload: &str) {
        let Some(told) = told(payload).filter(|told| told.host != self.host) else {
            return;
        };
        tracing::trace!(?told, "another host has changed the lab");
        if told.is_to_decide {
            self.heard.send_modify(|heard| *heard += 1);
        }
        tell_last_event(&self.last_event, told.last_event);
    }
}
