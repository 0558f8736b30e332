//! Orders and their journals: the one place where the agent's lasting state is changed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_protocol::{Entry, Event, Order, RunId, Work};

use crate::journal::{Journal, JournalError};

/// How long to wait before trying again to write to a full storage.
const STORAGE_RETRY: Duration = Duration::from_secs(1);

/// The queue of orders, shared by the connection that fills it and the loop that works it off.
///
/// It is rebuilt from the journals when the agent starts: an accepted order is worked off, whatever
/// happens in between.
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    journals: BTreeMap<RunId, Journal>,
    /// How often each run was forgotten: a task from before must not write into a run of the same name.
    forgotten: BTreeMap<RunId, u64>,
    /// Accepted orders without a final entry, first come first served.
    pending: Vec<(RunId, u32)>,
    stopping: bool,
}

/// An order to work on, with what was already done of it before the agent was last killed.
#[derive(Debug)]
pub struct Task {
    /// The order.
    pub order: Order,
    /// What the journal says about it already.
    pub history: Vec<Event>,
    /// The sentinel of the run's first accepted block on the order's processor.
    pub baseline: Option<Nanos>,
    /// How often its run had been forgotten when the task was given out.
    forgotten: u64,
}

/// Why an order was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Another order has the same number.
    #[error("run {run} already has another order {order}; number each order of a run once")]
    Conflict {
        /// The run.
        run: RunId,
        /// The order's number.
        order: u32,
    },
    /// It could not be stored.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The order is not wanted any more: its run was forgotten, or the agent is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

impl Queue {
    /// The queue whose journals are in `folder`, with every unfinished order pending.
    pub fn open(folder: &Path) -> Result<Queue, JournalError> {
        let failed = |source| JournalError::Storage {
            operation: "list",
            path: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut state = State::default();
        for file in std::fs::read_dir(folder).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let Some(run) = name
                .strip_suffix(".jsonl")
                .and_then(|run| RunId::new(run).ok())
            else {
                continue;
            };
            state.journals.insert(run, Journal::open(&path)?);
        }
        state.pending = state
            .journals
            .iter()
            .flat_map(|(run, journal)| unfinished(journal).map(|number| (run.clone(), number)))
            .collect();
        Ok(Queue {
            folder: folder.to_owned(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Puts `order` into its run's journal and into the queue. The same order again changes nothing.
    pub fn submit(&self, order: Order) -> Result<(), SubmitError> {
        let mut state = self.lock();
        let (run, number) = (order.run.clone(), order.number);
        if !state.journals.contains_key(&run) {
            let journal = Journal::open(&self.folder.join(format!("{run}.jsonl")))?;
            state.journals.insert(run.clone(), journal);
        }
        let Some(journal) = state.journals.get_mut(&run) else {
            return Ok(());
        };
        match accepted(journal, number) {
            Some(known) if *known == order => return Ok(()),
            Some(_) => return Err(SubmitError::Conflict { run, order: number }),
            None => journal.append(number, Event::Accepted { order })?,
        }
        state.pending.push((run, number));
        self.changed.notify_all();
        Ok(())
    }

    /// The next order to work on; waits for one. `None` when the agent is to stop.
    pub fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some((run, number)) = state.pending.first() {
                let journal = state.journals.get(run)?;
                let order = accepted(journal, *number)?.clone();
                return Some(Task {
                    history: history(journal, *number),
                    baseline: baseline(journal, &order),
                    forgotten: state.times_forgotten(run),
                    order,
                });
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Appends `event` to the journal of the task's run; waits while the storage is full.
    pub fn record(&self, task: &Task, event: Event) -> Result<(), Abandoned> {
        let order = &task.order;
        let mut state = self.lock();
        loop {
            if state.stopping || state.times_forgotten(&order.run) != task.forgotten {
                return Err(Abandoned);
            }
            let journal = state.journals.get_mut(&order.run).ok_or(Abandoned)?;
            match journal.append(order.number, event.clone()) {
                Ok(()) => break,
                Err(error) => tracing::warn!(%error, "waiting for storage"),
            }
            state = self
                .changed
                .wait_timeout(state, STORAGE_RETRY)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        if event.is_final() {
            state
                .pending
                .retain(|(run, number)| (run, *number) != (&order.run, order.number));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// The entries of `run` after number `after`, at most `most`; waits up to `patience` for the
    /// first. Empty when none came or the run is unknown.
    pub fn entries_after(
        &self,
        run: &RunId,
        after: u64,
        most: usize,
        patience: Duration,
    ) -> Vec<Entry> {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(journal) = state.journals.get(run) {
                let from = usize::try_from(after)
                    .unwrap_or(usize::MAX)
                    .min(journal.entries().len());
                let new = &journal.entries()[from..];
                if !new.is_empty() {
                    return new.iter().take(most).cloned().collect();
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.stopping {
                return Vec::new();
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
    }

    /// Whether anybody still wants the task done.
    pub fn wants(&self, task: &Task) -> bool {
        let state = self.lock();
        !state.stopping && state.times_forgotten(&task.order.run) == task.forgotten
    }

    /// Deletes the run's journal and drops its orders; one in progress is abandoned.
    pub fn forget(&self, run: &RunId) -> Result<(), JournalError> {
        let mut state = self.lock();
        state.pending.retain(|(pending, _)| pending != run);
        let Some(journal) = state.journals.remove(run) else {
            return Ok(());
        };
        *state.forgotten.entry(run.clone()).or_default() += 1;
        self.changed.notify_all();
        journal.delete()
    }

    /// Ends every wait: the agent is to stop.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Whether the agent is to stop.
    pub fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    // A panic while the lock was held leaves at worst a journal entry that memory lacks, which the
    // sequence check finds on reopening; going on is better than losing the run.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn times_forgotten(&self, run: &RunId) -> u64 {
        self.forgotten.get(run).copied().unwrap_or(0)
    }
}

fn accepted(journal: &Journal, number: u32) -> Option<&Order> {
    journal
        .entries()
        .iter()
        .find_map(|entry| match &entry.event {
            Event::Accepted { order } if order.number == number => Some(order),
            _ => None,
        })
}

fn unfinished(journal: &Journal) -> impl Iterator<Item = u32> + '_ {
    let finals: HashSet<u32> = journal
        .entries()
        .iter()
        .filter(|e| e.event.is_final())
        .map(|e| e.order)
        .collect();
    journal
        .entries()
        .iter()
        .filter_map(move |entry| match &entry.event {
            Event::Accepted { order } if !finals.contains(&order.number) => Some(order.number),
            _ => None,
        })
}

fn history(journal: &Journal, number: u32) -> Vec<Event> {
    let of_order = journal
        .entries()
        .iter()
        .filter(|entry| entry.order == number);
    of_order.map(|entry| entry.event.clone()).collect()
}

/// The sentinel at the start of the first accepted block on the processor of `order`. A placement's sentinel is the
/// placement itself, which is compared with no other order's.
fn baseline(journal: &Journal, order: &Order) -> Option<Nanos> {
    let is_placement = |order: &Order| matches!(order.work, Work::TimePlacement { .. });
    let comparable = |other: &Order| match is_placement(order) || is_placement(other) {
        true => other.number == order.number,
        false => other.processor == order.processor,
    };
    let comparable = |number| accepted(journal, number).is_some_and(comparable);
    let mut started = None;
    for entry in journal.entries() {
        match entry.event {
            Event::BlockStarted { sentinel_ns, .. } => started = Some(sentinel_ns),
            Event::BlockEnded {
                rejection: None, ..
            } if comparable(entry.order) => {
                return started;
            }
            _ => {}
        }
    }
    None
}
