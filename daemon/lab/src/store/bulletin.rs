//! What the writer tells whoever wants to know.

use std::collections::BTreeMap;

use layerlab_protocol::RunId;
use tokio::sync::watch;

use super::cause::{remedy, sentence};
use super::error::StoreError;
use super::lost::LostLease;
use super::obstacle::Outcome;
use super::place::StorePlace;
use crate::record::RecordChange;

/// What the writer tells whoever wants to know.
pub(super) struct WriterNews {
    /// Why nothing can be written now, or why a journal cannot go on.
    pub(super) trouble: watch::Sender<Option<String>>,
    /// The number of the last event that was written.
    pub(super) last_event: watch::Sender<i64>,
    /// How this daemon lost the right to write, if it has.
    pub(super) lost: watch::Sender<Option<LostLease>>,
}

/// What is wrong, for everybody to see.
pub(super) struct Bulletin {
    /// Why nothing can be written now.
    writing: Option<String>,
    /// Journals of which entries were refused, until they go on as they should.
    journals: BTreeMap<RunId, String>,
    news: WriterNews,
}

impl Bulletin {
    /// Nothing is wrong.
    pub(super) fn of(news: WriterNews) -> Bulletin {
        Bulletin {
            writing: None,
            journals: BTreeMap::new(),
            news,
        }
    }

    pub(super) fn lost(&self, how: LostLease) {
        self.news.lost.send_replace(Some(how));
    }

    pub(super) fn cannot_write(&mut self, place: &StorePlace, error: &sqlx::Error) {
        let trouble = format!(
            "the lab cannot write {place}: {}; {}",
            sentence(error),
            remedy(error)
        );
        if self.writing.as_ref() != Some(&trouble) {
            tracing::error!("{trouble}");
        }
        self.writing = Some(trouble);
        self.publish();
    }

    pub(super) fn wrote(&mut self, calls: &[Vec<RecordChange>], outcomes: &[Outcome]) {
        if self.writing.take().is_some() {
            tracing::info!("the lab can write again");
        }
        for (changes, outcome) in calls.iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    for change in changes {
                        match change {
                            RecordChange::Entries { run, .. } | RecordChange::JournalGone(run) => {
                                self.journals.remove(run);
                            }
                            RecordChange::Event(event) => {
                                tell_last_event(&self.news.last_event, event.number);
                            }
                            _ => {}
                        }
                    }
                }
                Err(refusal) => {
                    let trouble = StoreError::Refused {
                        reason: refusal.reason.clone(),
                    };
                    tracing::error!("{trouble}");
                    if let Some(run) = &refusal.journal {
                        self.journals.insert(run.clone(), trouble.to_string());
                    }
                }
            }
        }
        self.publish();
    }

    /// Who is told of the last event in the store.
    pub(super) fn last_event(&self) -> watch::Sender<i64> {
        self.news.last_event.clone()
    }

    fn publish(&self) {
        let now = self.writing.as_ref().or(self.journals.values().next());
        self.news.trouble.send_if_modified(|before| {
            let differs = before.as_ref() != now;
            if differs {
                *before = now.cloned();
            }
            differs
        });
    }
}

/// Tells whoever waits for events that the last one in the store has this number, unless a later one is known.
pub(super) fn tell_last_event(last_event: &watch::Sender<i64>, number: i64) {
    last_event.send_if_modified(|last| {
        let is_newer = number > *last;
        *last = number.max(*last);
        is_newer
    });
}
