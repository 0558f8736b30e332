//! Follows a run: puts its journal into the store, counts where its time goes, and asks for it to be parked.

use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_protocol::{Entry, Event, RunId};

use crate::bench::{Assignment, Desk, News};
use crate::record::{RecordChange, Spent};
use crate::store::{Store, StoreError};
use layerlab_campaign::{CampaignFollower, CampaignPart, Follower, JournalTrouble, KnownJournal};

/// So many entries are put into the store at once.
const BATCH: usize = 128;

/// Entries wait so long at most, while others come.
const DELAY: Duration = Duration::from_millis(250);

/// The follower of a run, part by part.
pub(super) struct Keeper<'a> {
    store: &'a Store,
    assignment: &'a Assignment,
    desk: &'a Desk,
    /// The part's journal.
    run: RunId,
    batch: Vec<Entry>,
    /// When the first of the batch came.
    since: Instant,
    done: u64,
    all: Option<u64>,
    clock: PartClock,
    /// How long of the part the agent was at work, as far as that was told.
    told_busy: Duration,
    /// Where the time went in the parts before.
    spent: Spent,
    /// Whether an answer of the part has come since it was begun or continued.
    has_answered: bool,
    trouble: Option<StoreError>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(store: &'a Store, assignment: &'a Assignment, desk: &'a Desk) -> Keeper<'a> {
        Keeper {
            store,
            assignment,
            desk,
            run: super::name(assignment, CampaignPart::Times),
            batch: Vec::new(),
            since: Instant::now(),
            done: 0,
            all: None,
            clock: PartClock::new(),
            told_busy: Duration::ZERO,
            spent: Spent::default(),
            has_answered: false,
            trouble: None,
        }
    }

    /// Where the time of all parts went since the follower began.
    pub(super) fn spent(&self) -> Spent {
        self.spent
    }

    async fn keep(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let entries = std::mem::take(&mut self.batch);
        let run = self.run.clone();
        let kept = self
            .store
            .keep(vec![RecordChange::Entries { run, entries }])
            .await;
        if let Err(error) = kept {
            tracing::error!(%error, "the journal of {} cannot be kept", self.run);
            self.trouble.get_or_insert(error);
            return;
        }
        let busy = self.clock.busy();
        let progress = News::Progress {
            progress: (self.done, self.all),
            busy: busy.saturating_sub(self.told_busy),
        };
        self.told_busy = self.told_busy.max(busy);
        self.desk.tell(progress).await;
    }
}

fn is_result(event: &Event) -> bool {
    is_answer(event) || matches!(event, Event::Sample { .. })
}

/// Answers come one by one, in no blocks.
fn is_answer(event: &Event) -> bool {
    matches!(event, Event::Judged { .. } | Event::FramesAnswered { .. })
}

impl Follower for Keeper<'_> {
    fn planned(&mut self, samples: Option<u64>) {
        self.all = samples;
    }

    async fn entry(&mut self, entry: &Entry) {
        self.clock.count(&entry.event);
        self.done += u64::from(is_result(&entry.event));
        if self.batch.is_empty() {
            self.since = Instant::now();
        }
        self.batch.push(entry.clone());
        let is_end = matches!(entry.event, Event::BlockEnded { .. }) || entry.event.is_final();
        if is_end || self.batch.len() >= BATCH || self.since.elapsed() >= DELAY {
            self.keep().await;
        }
        match &entry.event {
            Event::BlockEnded { rejection, .. } => {
                let rejection = rejection.clone();
                self.desk.tell(News::BlockEnded { rejection }).await;
            }
            event if is_answer(event) && !self.has_answered => {
                self.has_answered = true;
                self.desk.tell(News::BlockEnded { rejection: None }).await;
            }
            _ => {}
        }
    }

    async fn park_asked(&mut self) {
        self.assignment.asked_to_leave().await;
    }
}

impl CampaignFollower for Keeper<'_> {
    async fn begin(&mut self, part: CampaignPart) -> Result<KnownJournal, JournalTrouble> {
        self.run = super::name(self.assignment, part);
        let entries = self.store.entries(&self.run).await?;
        (self.clock, self.told_busy) = (PartClock::new(), Duration::ZERO);
        (self.done, self.all, self.has_answered) = (0, None, false);
        for entry in &entries {
            self.clock.orders(&entry.event);
            self.done += u64::from(is_result(&entry.event));
        }
        Ok(KnownJournal {
            id: self.run.clone(),
            started: super::started(self.assignment),
            entries,
        })
    }

    /// Puts what is left into the store. The run's result rests on it.
    async fn end(&mut self) -> Result<(), JournalTrouble> {
        self.keep().await;
        self.spent += self.clock.spent();
        match self.trouble.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// Where the time of a part goes. While an order is open the agent works: it runs the model, warms it up or waits the gaps that
/// are prescribed; unless it loads or cools down, of which its journal says how long that took.
struct PartClock {
    last: Instant,
    open: u32,
    working: Duration,
    loading: Duration,
    cool_down: Duration,
}

impl PartClock {
    fn new() -> PartClock {
        PartClock {
            last: Instant::now(),
            open: 0,
            working: Duration::ZERO,
            loading: Duration::ZERO,
            cool_down: Duration::ZERO,
        }
    }

    fn orders(&mut self, event: &Event) {
        match event {
            Event::Accepted { .. } => self.open += 1,
            event if event.is_final() => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }

    fn count(&mut self, event: &Event) {
        let now = Instant::now();
        let passed = now - self.last;
        if self.open > 0 {
            self.working += passed;
        }
        self.last = now;
        // Simulated devices load and rest in no time, whatever they say, and so does a journal that is caught up with.
        let of_passed = |said: Nanos| passed.min(Duration::from_nanos(said.as_nanos()));
        match event {
            Event::Loaded { load_ns, .. } => self.loading += of_passed(*load_ns),
            Event::CooledDown { rested_ns, .. } => self.cool_down += of_passed(*rested_ns),
            _ => {}
        }
        self.orders(event);
    }

    /// How long the agent was at work, neither loading nor resting.
    fn busy(&self) -> Duration {
        self.working.saturating_sub(self.loading + self.cool_down)
    }

    fn spent(&self) -> Spent {
        Spent {
            busy_ms: self.busy().as_millis() as u64,
            cool_down_ms: self.cool_down.as_millis() as u64,
            ..Spent::default()
        }
    }
}
