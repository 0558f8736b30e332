//! Orders and their journals: the one place where the agent's lasting state is changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_profiles::soak::{self, FEWEST_STEADY_MINUTES, Slice};
use layerlab_protocol::{Entry, Event, Order, RunId, Work};

use crate::hygiene::disturbed;
use crate::journal::{Journal, JournalError};

/// What the name of a run's journal ends with.
const JOURNAL: &str = ".jsonl";

/// What the name of the empty file ends with that says that a run is parked.
const PARKED: &str = ".parked";

/// How often to look whether anybody still wants to know that a run is parked.
const PARK_PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait before trying again to write to a full storage.
const STORAGE_RETRY: Duration = Duration::from_secs(1);

/// The queue of orders, shared by the connection that fills it and the loop that works it off.
///
/// It is rebuilt from the journals when the agent starts: an accepted order is worked off, whatever
/// happens in between.
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    journals: BTreeMap<RunId, Journal>,
    /// How often each run was forgotten: a task from before must not write into a run of the same name.
    forgotten: BTreeMap<RunId, u64>,
    /// Accepted orders without a final entry, first come first served.
    pending: Vec<(RunId, u32)>,
    /// Runs of which nothing is done until an order of theirs is submitted.
    parked: BTreeSet<RunId>,
    /// The run that is being worked on.
    current: Option<RunId>,
    /// Whether a block of it is in progress.
    in_block: bool,
    stopping: bool,
}

/// An order to work on, with what was already done of it before the agent was last killed.
#[derive(Debug)]
pub struct Task {
    /// The order, as it was submitted.
    pub order: Order,
    /// What the journal says about it already.
    pub history: Vec<Event>,
    /// The sentinels at both ends of the run's accepted blocks of the order's model on its processor.
    pub baseline: Vec<Nanos>,
    /// How many blocks of the run were measured again because of what else ran on the device.
    pub disturbed: u32,
    /// How often its run had been forgotten when the task was given out.
    forgotten: u64,
}

/// Why an order was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Another order has the same number.
    #[error("run {run} already has another order {order}; number each order of a run once")]
    Conflict {
        /// The run in which the number is taken.
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
        let mut state = QueueState::default();
        for file in std::fs::read_dir(folder).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let run = |suffix| {
                name.strip_suffix(suffix)
                    .and_then(|run| RunId::new(run).ok())
            };
            if let Some(run) = run(JOURNAL) {
                state.journals.insert(run, Journal::open(&path)?);
            } else if let Some(run) = run(PARKED) {
                state.parked.insert(run);
            }
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
            let journal = Journal::open(&self.file(&run, JOURNAL))?;
            state.journals.insert(run.clone(), journal);
        }
        if state.parked.remove(&run) {
            self.unmark(&run)?;
            self.changed.notify_all();
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
        state.current = None;
        state.in_block = false;
        self.changed.notify_all();
        loop {
            if state.stopping {
                return None;
            }
            if let Some((run, number)) = state.first_wanted() {
                let journal = state.journals.get(run)?;
                let order = accepted(journal, *number)?.clone();
                let task = Task {
                    history: history(journal, *number),
                    baseline: baseline(journal, &order),
                    disturbed: disturbed(journal.entries().iter().map(|entry| &entry.event)),
                    forgotten: state.times_forgotten(run),
                    order,
                };
                // A block that was in progress when the agent was killed goes on.
                state.in_block = is_in_block(&task.history);
                state.current = Some(task.order.run.clone());
                return Some(task);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Appends `event` to the journal of the task's run; waits while the storage is full. A run that is to be
    /// parked is abandoned between its blocks.
    pub fn record(&self, task: &Task, event: Event) -> Result<(), Abandoned> {
        let order = &task.order;
        let mut state = self.lock();
        loop {
            if state.stopping || state.times_forgotten(&order.run) != task.forgotten {
                return Err(Abandoned);
            }
            if state.parked.contains(&order.run) && matches!(event, Event::BlockStarted { .. }) {
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
        match event {
            Event::BlockStarted { .. } => state.in_block = true,
            Event::BlockEnded { .. } => state.in_block = false,
            _ => {}
        }
        if event.is_final() {
            state
                .pending
                .retain(|(run, number)| (run, *number) != (&order.run, order.number));
        }
        self.changed.notify_all();
        if !event.is_final() && state.is_to_leave(&order.run) {
            return Err(Abandoned);
        }
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
        let run = &task.order.run;
        !state.stopping && state.times_forgotten(run) == task.forgotten && !state.is_to_leave(run)
    }

    /// Sees that nothing is done of `run` until an order of it is submitted, and waits until the block in
    /// progress is over, as long as it `is_wanted`. How many entries its journal has then; `None` if it was not
    /// wanted so long.
    pub fn park(
        &self,
        run: &RunId,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<u64>, JournalError> {
        let mut state = self.lock();
        if state.journals.contains_key(run) && state.parked.insert(run.clone()) {
            self.mark(run)?;
        }
        self.changed.notify_all();
        while state.current.as_ref() == Some(run) {
            if state.stopping || !is_wanted() {
                return Ok(None);
            }
            state = self
                .changed
                .wait_timeout(state, PARK_PATIENCE)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        let journal = state.journals.get(run);
        Ok(Some(
            journal.map_or(0, |journal| journal.entries().len() as u64),
        ))
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
        if state.parked.remove(run) {
            self.unmark(run)?;
        }
        journal.delete()
    }

    fn file(&self, run: &RunId, suffix: &str) -> PathBuf {
        self.folder.join(format!("{run}{suffix}"))
    }

    fn mark(&self, run: &RunId) -> Result<(), JournalError> {
        let path = self.file(run, PARKED);
        std::fs::write(&path, "").map_err(|source| JournalError::Storage {
            operation: "park",
            path,
            source,
        })
    }

    fn unmark(&self, run: &RunId) -> Result<(), JournalError> {
        let path = self.file(run, PARKED);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(JournalError::Storage {
                    operation: "go on with",
                    path,
                    source,
                })
            }
            _ => Ok(()),
        }
    }

    /// Ends every wait: the agent is to stop.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Whether an order is being worked on, or will be next.
    pub fn is_busy(&self) -> bool {
        let state = self.lock();
        state.current.is_some() || state.first_wanted().is_some()
    }

    /// Whether the agent is to stop.
    pub fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    // A panic while the lock was held leaves at worst a journal entry that memory lacks, which the
    // sequence check finds on reopening; going on is better than losing the run.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// The order to work on next.
    fn first_wanted(&self) -> Option<&(RunId, u32)> {
        self.pending
            .iter()
            .find(|(run, _)| !self.parked.contains(run))
    }

    /// Whether `run` is to be parked, and no block of it is in progress.
    fn is_to_leave(&self, run: &RunId) -> bool {
        self.parked.contains(run) && !self.in_block
    }

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

fn is_in_block(history: &[Event]) -> bool {
    let last = history
        .iter()
        .rev()
        .find(|event| matches!(event, Event::BlockStarted { .. } | Event::BlockEnded { .. }));
    matches!(last, Some(Event::BlockStarted { .. }))
}

fn history(journal: &Journal, number: u32) -> Vec<Event> {
    let of_order = journal
        .entries()
        .iter()
        .filter(|entry| entry.order == number);
    of_order.map(|entry| entry.event.clone()).collect()
}

/// The sentinels at both ends of the accepted blocks of the model of `order` on its processor. A placement's sentinel is the
/// placement itself, which is compared with no other order's.
fn baseline(journal: &Journal, order: &Order) -> Vec<Nanos> {
    let is_placement = |order: &Order| matches!(order.work, Work::TimePlacement { .. });
    let comparable = |other: &Order| match is_placement(order) || is_placement(other) {
        true => other.number == order.number,
        false => other.processor == order.processor && other.model_sha256 == order.model_sha256,
    };
    let comparable = |number| accepted(journal, number).is_some_and(comparable);
    let (mut started, mut sentinels) = (None, soaked(journal, comparable));
    for entry in journal.entries() {
        match entry.event {
            Event::BlockStarted { sentinel_ns, .. } => started = Some(sentinel_ns),
            Event::BlockEnded {
                rejection: None,
                sentinel_ns,
                ..
            } if comparable(entry.order) => {
                sentinels.extend(started);
                sentinels.push(sentinel_ns);
            }
            _ => {}
        }
    }
    sentinels
}

/// What the sentinel took, slice by slice of the last six minutes, once the processor of comparable orders had been kept busy until it was steady;
/// nothing where it was not.
fn soaked(journal: &Journal, comparable: impl Fn(u32) -> bool) -> Vec<Nanos> {
    let mut slices = Vec::new();
    for entry in journal.entries() {
        match entry.event {
            Event::SoakBegun if comparable(entry.order) => slices.clear(),
            Event::SoakSlice {
                rested: false,
                started_ns,
                median_ns,
                ..
            } if comparable(entry.order) => slices.push(Slice {
                started: started_ns,
                median: median_ns,
            }),
            _ => {}
        }
    }
    let minutes = soak::minutes(&slices);
    let last = minutes.len().checked_sub(FEWEST_STEADY_MINUTES);
    let last = last.filter(|_| soak::steady(&minutes).is_some());
    last.map_or_else(Vec::new, |last| {
        let first = minutes[last];
        let since = slices.iter().filter(|slice| slice.started >= first.started);
        since.map(|slice| slice.median).collect()
    })
}
