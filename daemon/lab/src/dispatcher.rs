//! The one owner of what the lab knows. Everything else sends it messages: commands, devices that come and go, and what
//! happens on them. Nothing is answered, begun or forgotten before what it rests on is in the store.

mod answer;
mod device_task;
mod logged;
mod lookup;
mod quarantine;

use std::collections::HashMap;
use std::mem::take;
use std::pin::pin;
use std::time::Instant;

use futures_util::stream::{FuturesOrdered, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::bench::{Assignment, Bench, Desk, LeaveAsked, News};
use super::clock::Clock;
use super::decide::{decide, runs_to_stop};
use super::record::{Device, JobId, RunNumber, What};
use super::state::{LOOK, LabState, StayOutcome, Work};
use super::talk::{Answer, RefusalCode, Request};
use crate::store::{Store, StoreError, Turn};
use device_task::DeviceTask;
use layerlab_farm::quarantine::Quarantine;
use lookup::{Found, Lookups};
use quarantine::{FileOfLab, HostQuarantine};

/// Something that the dispatcher should know.
#[derive(Debug)]
pub enum Message {
    /// These devices can be reached now, and no others.
    Devices(Vec<Device>),
    /// The names of the processors of a device.
    Processors(String, Vec<String>),
    /// Something went wrong with the lab itself, and what is done about it, for a person.
    Trouble(String),
    /// Somebody asks something.
    Ask(Question),
    /// Finish or park what is in progress, and end.
    Stop,
}

/// A request, who asks, and where the answer goes.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub request: Request,
    /// Who asks over the web; nobody for commands, which are the daemon's own user's.
    pub by: Option<String>,
    /// Where the answer goes.
    pub to: oneshot::Sender<Answer>,
}

/// What is done once the store has what it rests on.
enum Then {
    Answer(oneshot::Sender<Answer>, Answer),
    Begin(String, Box<Assignment>),
    Leave(String, LeaveAsked),
    Kept(oneshot::Sender<bool>, bool),
    Archive(Vec<JobId>),
    /// The host's quarantine follows the lab's.
    Follow(FileOfLab),
}

/// What happened, which is taken in when it is this host's turn.
#[expect(
    clippy::large_enum_variant,
    reason = "there are few at once, and they do not live long"
)]
enum Happening {
    /// The daemon began.
    Begin,
    News(String, News),
    Message(Message),
    Found(Found),
    /// Another host has changed the lab.
    Heard,
    /// It is time to look.
    Time,
}

/// The one owner of what the lab knows: takes commands and news, stores changes and has things done.
pub struct Dispatcher<B: Bench> {
    state: LabState,
    store: Store,
    bench: B,
    clock: Clock,
    device_tasks: HashMap<String, DeviceTask>,
    tasks: JoinSet<()>,
    desk: mpsc::Sender<(String, News)>,
    news: mpsc::Receiver<(String, News)>,
    /// What is being looked for in the store, or tried.
    lookups: Lookups,
    quarantine: HostQuarantine,
    is_working: watch::Sender<bool>,
    is_stopping: bool,
}

impl<B: Bench> Dispatcher<B> {
    /// A dispatcher that goes on from `state`.
    pub fn new(state: LabState, store: Store, bench: B, clock: Clock) -> Dispatcher<B> {
        let (desk, news) = mpsc::channel(1024);
        Dispatcher {
            state,
            store,
            bench,
            clock,
            device_tasks: HashMap::new(),
            tasks: JoinSet::new(),
            desk,
            news,
            lookups: Lookups::default(),
            quarantine: HostQuarantine::default(),
            is_working: watch::channel(false).0,
            is_stopping: false,
        }
    }

    /// Keeps who is left alone in the host's quarantine, and leaves alone who is in it. Where several hosts share the lab, they
    /// agree on that in the first turn.
    #[must_use]
    pub fn with_quarantine(mut self, quarantine: Quarantine) -> Dispatcher<B> {
        self.quarantine = HostQuarantine::of(quarantine);
        self.quarantine.agree(&mut self.state);
        self
    }

    /// Tells whether any device has a run.
    pub fn is_working(&self) -> watch::Receiver<bool> {
        self.is_working.subscribe()
    }

    /// Works until it is told to stop, and everything has been left between two blocks.
    pub async fn run(mut self, mut messages: mpsc::Receiver<Message>) -> Result<(), StoreError> {
        let mut being_kept = FuturesOrdered::new();
        let mut lost = pin!(self.store.lost());
        let mut heard = self.store.heard();
        let is_shared = self.store.is_shared();
        let mut then = Vec::new();
        let mut wake = None;
        let mut happened = vec![Happening::Begin];
        loop {
            let mut turn = self.turn(&mut messages, &mut happened).await?;
            let now = self.clock.now();
            self.state.follow(take(&mut turn.others), now);
            if is_shared {
                self.quarantine.tell_lab(&mut self.state, now);
            }
            // Progress alone changes no decision.
            let mut is_to_decide = false;
            for happening in happened.drain(..) {
                is_to_decide |= self.take_in(happening, &mut then);
            }
            while let Ok((device, news)) = self.news.try_recv() {
                is_to_decide |= self.hear(&device, news, &mut then);
            }
            if is_to_decide {
                let began = Instant::now();
                wake = self.decide(&mut then);
                let took = began.elapsed();
                self.bench.decided(took);
                self.state.counts.decisions += 1;
                self.state.counts.deciding += took;
                let is_working = !self.is_idle();
                self.is_working
                    .send_if_modified(|was| std::mem::replace(was, is_working) != is_working);
            }
            let over = self.state.take_over();
            if !over.is_empty() {
                then.push(Then::Archive(over));
            }
            if self.state.has_quarantine_changes() {
                self.quarantine.agree(&mut self.state);
            }
            if let Some(file) = self.quarantine.behind(&self.state, now) {
                // Before anything begins that looks into it.
                then.insert(0, Then::Follow(file));
            }
            let changes = self.state.take_changes();
            if !changes.is_empty() || !then.is_empty() {
                let then = take(&mut then);
                being_kept.push_back(async move {
                    let events = logged::events(&changes);
                    turn.keep(changes).await?;
                    logged::log(&events);
                    Ok::<_, StoreError>(then)
                });
            } else {
                // Nothing came of it: it is the next host's at once.
                drop(turn);
            }
            let has_others = !self.state.other_hosts().is_empty();
            let look = has_others.then(|| now.checked_add(LOOK).unwrap_or(now));
            let until = wake.into_iter().chain(look).min();
            // Until something happens that changes the lab. Where others may change it, too, that waits for the next turn, and so
            // for the end of this one.
            while happened.is_empty() || (is_shared && !being_kept.is_empty()) {
                if self.is_stopping && being_kept.is_empty() && self.is_idle() {
                    break;
                }
                let may_take_in = !is_shared || being_kept.is_empty();
                tokio::select! {
                    Some(kept) = being_kept.next(), if !being_kept.is_empty() => {
                        for then in kept? {
                            self.act(then);
                        }
                    }
                    Some((device, news)) = self.news.recv(), if may_take_in => {
                        match is_shared && !self.changes_records(&device, &news) {
                            true => drop(self.hear(&device, news, &mut then)),
                            false => happened.push(Happening::News(device, news)),
                        }
                    }
                    message = messages.recv(), if !self.is_stopping => {
                        // Nobody can say anything any more: the same as being told to stop.
                        self.note(message.unwrap_or(Message::Stop), &mut happened);
                    }
                    error = &mut lost => return Err(error),
                    found = self.lookups.next() => match found {
                        // It changes nothing that is kept or decided on.
                        Found::Took(device, run, took) => self.took(&device, run, took),
                        found => happened.push(Happening::Found(found)),
                    },
                    Ok(()) = heard.changed() => happened.push(Happening::Heard),
                    () = self.clock.sleep_until(until), if happened.is_empty() => {
                        happened.push(Happening::Time);
                    }
                }
            }
            if happened.is_empty() {
                break;
            }
        }
        // Their devices are closed when nothing more can come.
        self.device_tasks.clear();
        while self.tasks.join_next().await.is_some() {}
        let mut turn = self.store.turn().await?;
        let now = self.clock.now();
        self.state.follow(take(&mut turn.others), now);
        let host = self.state.kept.host.clone();
        self.state
            .tell(now, None, None, None, What::DaemonStopped { host });
        turn.keep(self.state.take_changes()).await
    }

    /// Waits for the lab's turn, and tells meanwhile how the lab is.
    async fn turn(
        &mut self,
        messages: &mut mpsc::Receiver<Message>,
        happened: &mut Vec<Happening>,
    ) -> Result<Turn, StoreError> {
        let store = self.store.clone();
        let mut turn = pin!(store.turn());
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return turn,
                message = messages.recv(), if !self.is_stopping => {
                    self.note(message.unwrap_or(Message::Stop), happened);
                }
            }
        }
    }

    /// Keeps a message for the next turn, unless it asks for nothing but how the lab is.
    fn note(&mut self, message: Message, happened: &mut Vec<Happening>) {
        match message {
            Message::Ask(question) if question.request == Request::Status => {
                self.answer(question, &mut Vec::new());
            }
            // Nothing that is said afterwards is heard.
            Message::Stop => {
                self.is_stopping = true;
                happened.push(Happening::Time);
            }
            message => happened.push(Happening::Message(message)),
        }
    }

    /// Whether what is told of a device changes what is kept in the store.
    fn changes_records(&self, device: &str, news: &News) -> bool {
        let place = self.state.places.get(device);
        match news {
            News::Read(_) | News::Progress { .. } => false,
            News::BlockEnded { rejection: None } => place.is_none_or(|it| !it.has_ended_block),
            _ => true,
        }
    }

    /// Takes in what happened. Whether it may change what is to be done.
    fn take_in(&mut self, happening: Happening, then: &mut Vec<Then>) -> bool {
        match happening {
            Happening::Begin => {
                self.state.take_up();
                let now = self.clock.now();
                let host = self.state.kept.host.clone();
                self.state
                    .tell(now, None, None, None, What::DaemonStarted { host });
            }
            Happening::News(device, news) => return self.hear(&device, news, then),
            Happening::Message(message) => self.take(message, then),
            Happening::Found(found) => self.found(found, then),
            Happening::Heard | Happening::Time => {}
        }
        true
    }

    /// Tries to publish what only lacks that.
    fn publish(&mut self, now: jiff::Timestamp) {
        for run in self.state.due_publications(now) {
            let bench = self.bench.clone();
            self.lookups
                .publication(run, async move { bench.publish(run).await });
        }
        for run in self.state.take_unwanted_publications() {
            self.bench.discard(run);
        }
    }

    fn is_idle(&self) -> bool {
        (self.state.places.values()).all(|place| place.work == Work::Free)
    }

    /// Brings the lab up to date, and says what is to be done once that is kept. When to look again.
    fn decide(&mut self, then: &mut Vec<Then>) -> Option<jiff::Timestamp> {
        let now = self.clock.now();
        self.state.lapse(now);
        self.state.end_reservations(now);
        self.state.end_lab_quarantines(now);
        if self.is_stopping {
            for (run, device) in runs_to_stop(&self.state) {
                self.leave(run, device, "the daemon was told to stop", then);
            }
            return None;
        }
        self.state.recur(now);
        self.publish(now);
        if let Some(old) = self.state.old_journals(now) {
            self.lookups.old_journals(&self.store, old);
        }
        let removal = self.state.next_removal();
        let decisions = decide(&self.state, now);
        for (run, device, reason) in decisions.leave {
            self.leave(run, device, &reason, then);
        }
        for (run, device) in decisions.start {
            if self.is_lacking(run, now) {
                continue;
            }
            let Some((job, run, of)) = self.state.begin(run, &device, now) else {
                continue;
            };
            self.lookups.took(&self.store, &job, &run, &device);
            let (leave, asked) = watch::channel(LeaveAsked::No);
            let assignment = Assignment {
                job,
                run,
                device: of,
                lab: self.state.kept.lab.clone(),
                leave: asked,
            };
            self.device_task(&device).leave = leave;
            then.push(Then::Begin(device, Box::new(assignment)));
        }
        Some(decisions.wake.map_or(removal, |wake| wake.min(removal)))
    }

    /// Whether this host has not all that it needs for a run. It has it fetched, or another host may have it.
    fn is_lacking(&mut self, run: RunNumber, now: jiff::Timestamp) -> bool {
        let Some((job, _)) = self.state.run(run) else {
            return false;
        };
        let id = job.id;
        // Another run of the job was looked at just now.
        if self.state.lacks(id, now).is_some() {
            return true;
        }
        if self.bench.must_fetch(job) {
            let (bench, job) = (self.bench.clone(), job.clone());
            (self.lookups).files(id, async move { bench.fetch(&job).await });
            self.state.fetching(id);
            return true;
        }
        let lacks = match self.store.is_shared() {
            true => self.bench.lacks(job),
            false => None,
        };
        let is_lacking = lacks.is_some();
        if let Some(what) = lacks {
            self.state.lack(id, what, now);
        }
        is_lacking
    }

    fn leave(&mut self, run: RunNumber, device: String, reason: &str, then: &mut Vec<Then>) {
        let now = self.clock.now();
        self.state.leaving(run, &device, reason, now);
        let how = match self.state.claimed_by_another(run) {
            Some(_) => LeaveAsked::AtOnce,
            None => LeaveAsked::BetweenBlocks,
        };
        then.push(Then::Leave(device, how));
    }

    /// The task of a device, begun if there is none yet.
    fn device_task(&mut self, device: &str) -> &mut DeviceTask {
        self.device_tasks
            .entry(device.to_owned())
            .or_insert_with(|| {
                let desk = Desk {
                    device: device.to_owned(),
                    messages: self.desk.clone(),
                };
                DeviceTask::begin(self.bench.clone(), desk, &mut self.tasks)
            })
    }

    fn act(&mut self, then: Then) {
        // Whoever has gone away meanwhile is not told.
        match then {
            Then::Answer(to, answer) => drop(to.send(answer)),
            Then::Begin(device, assignment) => {
                let _ = self.device_task(&device).assignments.send(*assignment);
            }
            Then::Leave(device, how) => {
                self.device_task(&device).leave.send_replace(how);
            }
            Then::Kept(to, forget) => drop(to.send(forget)),
            Then::Archive(jobs) => self.state.archive(&jobs),
            Then::Follow(file) => self.quarantine.follow_lab(file),
        }
    }

    /// Takes news of a device in. Whether they may change what is to be done.
    fn hear(&mut self, device: &str, news: News, then: &mut Vec<Then>) -> bool {
        let now = self.clock.now();
        match news {
            News::NotReady(reason) => {
                // A run that waits for its device to become ready may be told to leave it.
                let may_leave = reason.is_some();
                self.state.not_ready(device, reason, now);
                may_leave
            }
            News::Read(readings) => {
                self.state.read(device, *readings, now);
                false
            }
            News::Processors(processors) => {
                self.state.processors(device, processors);
                false
            }
            News::Progress { progress, busy } => {
                self.state.progress(device, progress, busy, now);
                false
            }
            News::BlockEnded { rejection } => {
                self.state.block_ended(device, rejection.as_ref(), now)
            }
            News::Left {
                outcome,
                spent,
                kept,
            } => {
                let run = self
                    .state
                    .places
                    .get(device)
                    .and_then(|place| place.work.run());
                if matches!(outcome, StayOutcome::LeftAlone { .. }) {
                    self.quarantine.agree(&mut self.state);
                }
                self.state.left(device, outcome, spent, now);
                // What another host goes on with is that one's to forget.
                let forget = run.is_some_and(|run| self.state.is_over_here(run));
                then.push(Then::Kept(kept, forget));
                true
            }
        }
    }

    fn take(&mut self, message: Message, then: &mut Vec<Then>) {
        let now = self.clock.now();
        let question = match message {
            Message::Devices(devices) => {
                self.quarantine.agree(&mut self.state);
                return self.state.devices(devices, now);
            }
            Message::Processors(device, processors) => {
                return self.state.processors(&device, processors);
            }
            Message::Trouble(reason) => {
                return self
                    .state
                    .tell(now, None, None, None, What::Trouble { reason });
            }
            Message::Stop => {
                self.is_stopping = true;
                return;
            }
            Message::Ask(question) => question,
        };
        match self.state.lookup_for(&question.request) {
            Some(lookup) => self.lookups.request(&self.store, lookup, question),
            None => self.answer(question, then),
        }
    }

    /// Goes on with what was looked up.
    fn found(&mut self, found: Found, then: &mut Vec<Then>) {
        match found {
            Found::ForRequest(question, Ok(job)) => {
                if let Some(job) = job {
                    self.state.bring_back(job);
                }
                self.answer(question, then);
            }
            Found::ForRequest(question, Err(error)) => {
                // Nothing has changed: nothing has to be kept for the answer.
                let code = RefusalCode::StoreFailed;
                let message = error.to_string();
                let _ = question.to.send(Answer::Refused { code, message });
            }
            Found::OldJournals(searched, Ok(runs)) => {
                self.state
                    .remove_journals(runs, &searched, self.clock.now());
            }
            Found::OldJournals(_, Err(error)) => {
                tracing::warn!(%error, "old journals were not removed; they are looked for again tomorrow");
            }
            Found::Publication(run, outcome) => {
                self.state.publication_tried(run, outcome, self.clock.now());
            }
            Found::Files(job, outcome) => {
                self.state.fetched(job, outcome, self.clock.now());
            }
            Found::Took(device, run, took) => self.took(&device, run, took),
        }
    }

    fn took(&mut self, device: &str, run: RunNumber, took: Result<Vec<u64>, StoreError>) {
        match took {
            Ok(wall_ms) => self.state.took(device, run, wall_ms),
            Err(error) => {
                tracing::warn!(device, %error, "nothing is known of how long such runs take");
            }
        }
    }
}
