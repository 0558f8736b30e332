//! Driving a run against agents that hang, cheat or forget. They are scripts at the other end of a
//! pipe in memory, because the real agent cannot be made to do this; time is paused, so that deadlines
//! pass at once.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use layerlab_campaign::orders::{Fixed, News, Orders, PlannerError};
use layerlab_campaign::{File, Follower, KnownJournal, RunError, drive};
use layerlab_farm::{Connection, Link, LinkError};
use layerlab_profiles::derive::graph::GraphError;
use layerlab_profiles::document::Rejected;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{
    Clock, Conditions, Device, Entry, Event, Hygiene, Order, Refusal, Rejection, Request, Response,
    RunId, TimingSettings, VERSION, WarmUp, Work, decode, encode,
};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The agent's end of a connection.
struct Peer {
    requests: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    async fn request(&mut self) -> Option<Request> {
        let line = self.requests.next_line().await.ok()??;
        Some(decode(&line).expect("the daemon speaks the protocol"))
    }

    async fn say(&mut self, response: &Response) {
        // The daemon may have gone, which is its right.
        let _ = self.writer.write_all(encode(response).as_bytes()).await;
    }

    async fn entry(&mut self, sequence: u64, order: u32, event: Event) {
        let entry = Entry {
            sequence,
            order,
            event,
        };
        self.say(&Response::Entry { run: run(), entry }).await;
    }
}

/// A link whose agent does as `script` says, given how often it was connected to before.
struct Scripted<F> {
    script: F,
    connections: AtomicU32,
    pushes: AtomicU32,
    agents: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl<F, A> Scripted<F>
where
    F: Fn(u32, Peer) -> A + Send + Sync,
    A: Future<Output = ()> + Send + 'static,
{
    fn new(script: F) -> Self {
        Scripted {
            script,
            connections: AtomicU32::new(0),
            pushes: AtomicU32::new(0),
            agents: Mutex::default(),
        }
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    fn pushes(&self) -> u32 {
        self.pushes.load(Ordering::Relaxed)
    }
}

impl<F, A> Link for Scripted<F>
where
    F: Fn(u32, Peer) -> A + Send + Sync,
    A: Future<Output = ()> + Send + 'static,
{
    fn kind(&self) -> &'static str {
        "scripted"
    }

    async fn push_file(&self, _sha256: &str, _onnx: &[u8]) -> Result<(), LinkError> {
        self.pushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let mut peer = Peer {
            requests: BufReader::new(reader).lines(),
            writer,
        };
        let hello = Response::Hello {
            protocol: VERSION,
            agent_version: "1".to_owned(),
            device: Device {
                name: "x".to_owned(),
                simulated: true,
                clock: Clock::Monotonic,
            },
            system: "y".to_owned(),
            processors: Vec::new(),
        };
        peer.say(&hello).await;
        let agent = (self.script)(self.connections.fetch_add(1, Ordering::Relaxed), peer);
        self.agents
            .lock()
            .expect("no panic")
            .push(tokio::spawn(agent));
        Ok(Connection::open(ours, "token").await?)
    }
}

fn run() -> RunId {
    RunId::new("run").expect("a name")
}

fn order(number: u32) -> Order {
    Order {
        run: run(),
        number,
        model_sha256: "ab".repeat(32),
        quantised_sha256: None,
        processor: "npu".to_owned(),
        work: Work::TimePasses {
            timing: TimingSettings {
                samples_per_segment: 1,
                gap_ns: Nanos::ZERO,
                warm_up: WarmUp::default(),
                hygiene: Hygiene::default(),
            },
        },
        seed: 1,
    }
}

fn sample(index: u64) -> Event {
    let time = Nanos::from_nanos(5);
    Event::Sample {
        block: 0,
        index,
        segment: Segment::single(1),
        started_ns: time,
        duration_ns: time,
    }
}

fn block_started(block: u32) -> Event {
    Event::BlockStarted {
        block,
        segments: vec![Segment::single(1)],
        sentinel_ns: Nanos::from_nanos(5),
        conditions: Conditions::default(),
    }
}

fn block_ended(rejection: Option<Rejection>) -> Event {
    Event::BlockEnded {
        block: 0,
        sentinel_ns: Nanos::from_nanos(5),
        conditions: Conditions::default(),
        rejection,
        disturbance: None,
    }
}

async fn drive_with<L: Link>(link: &L) -> Result<usize, RunError> {
    let measured = drive(
        link,
        &run().into(),
        &[File {
            sha256: "x",
            content: b"a model",
        }],
        &mut Fixed::new(vec![order(1)]),
        &mut |_: &Entry| {},
    )
    .await?;
    Ok(measured.samples.len())
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_given_up() {
    let link =
        Scripted::new(|_, mut peer: Peer| async move { while peer.request().await.is_some() {} });
    let error = drive_with(&link).await.expect_err("nothing comes");
    assert!(
        matches!(
            error,
            RunError::GaveUp {
                last: LinkError::Deadline { .. }
            }
        ),
        "{error}"
    );
    assert_eq!(link.connections(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_answers_but_does_nothing_is_stuck() {
    let link = Scripted::new(|_, mut peer: Peer| async move {
        while let Some(request) = peer.request().await {
            if request == Request::Ping {
                peer.say(&Response::Pong).await;
            }
        }
    });
    let error = drive_with(&link).await.expect_err("nothing comes");
    assert!(matches!(error, RunError::Stuck), "{error}");
    assert_eq!(link.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_goes_away_after_every_entry_is_followed_to_the_end() {
    // Each connection shows one entry more and closes; the daemon asks for what it lacks.
    let link = Scripted::new(|_, mut peer: Peer| async move {
        while let Some(request) = peer.request().await {
            if let Request::Follow { after, .. } = request {
                let event = match after {
                    0 => block_started(0),
                    1..21 => sample(after),
                    21 => block_ended(None),
                    _ => Event::Finished,
                };
                return peer.entry(after + 1, 1, event).await;
            }
        }
    });
    assert_eq!(drive_with(&link).await.expect("all samples"), 20);
}

#[tokio::test(start_paused = true)]
async fn a_finished_order_is_not_sent_again() {
    let submitted: Arc<Mutex<Vec<(u32, u32)>>> = Arc::default();
    let seen = Arc::clone(&submitted);
    let link = Scripted::new(move |connection, mut peer: Peer| {
        let seen = Arc::clone(&seen);
        async move {
            while let Some(request) = peer.request().await {
                match request {
                    Request::Submit { order } => {
                        seen.lock()
                            .expect("no panic")
                            .push((connection, order.number));
                    }
                    // Each connection finishes one order and closes.
                    Request::Follow { after, .. } => {
                        return peer
                            .entry(after + 1, after as u32 + 1, Event::Finished)
                            .await;
                    }
                    _ => {}
                }
            }
        }
    });
    drive(
        &link,
        &run().into(),
        &[],
        &mut Fixed::new(vec![order(1), order(2)]),
        &mut |_: &Entry| {},
    )
    .await
    .expect("both orders");
    assert_eq!(
        *submitted.lock().expect("no panic"),
        [(0, 1), (0, 2), (1, 2)]
    );
}

#[tokio::test(start_paused = true)]
async fn the_samples_of_a_rejected_block_are_kept_apart() {
    let link = Scripted::new(|_, mut peer: Peer| async move {
        let throttling = Rejection::Throttling { thermal_status: 1 };
        let events = [
            block_started(0),
            sample(0),
            sample(1),
            block_ended(Some(throttling)),
            Event::CooledDown {
                rested_ns: Nanos::from_millis(30_000),
                conditions: Conditions::default(),
            },
            block_started(0),
            sample(0),
            block_ended(None),
            Event::Finished,
        ];
        for (sequence, event) in (1..).zip(events) {
            peer.entry(sequence, 1, event).await;
        }
        while peer.request().await.is_some() {}
    });
    let measured = drive(
        &link,
        &run().into(),
        &[],
        &mut Fixed::new(vec![order(1)]),
        &mut |_: &Entry| {},
    )
    .await
    .expect("samples");
    assert_eq!(measured.samples.len(), 1);
    assert_eq!(measured.rejected.len(), 2);
    let blocks: Vec<_> = measured
        .blocks
        .iter()
        .map(|block| (block.rejection, block.rested))
        .collect();
    let rested = Nanos::from_millis(30_000);
    assert_eq!(
        blocks,
        [(Some(Rejected::Throttling), Nanos::ZERO), (None, rested)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_journal_is_an_error() {
    let link = Scripted::new(|_, mut peer: Peer| async move {
        peer.entry(1, 1, sample(0)).await;
        peer.entry(3, 1, sample(2)).await;
        while peer.request().await.is_some() {}
    });
    let error = drive_with(&link).await.expect_err("entry 2 is missing");
    assert!(
        matches!(
            error,
            RunError::Gap {
                expected: 2,
                found: 3
            }
        ),
        "{error}"
    );
}

/// Refuses its first order.
async fn refuse(mut peer: Peer, refusal: Refusal) {
    peer.request().await;
    let message = "push it first".to_owned();
    peer.say(&Response::Refused { refusal, message }).await;
    while peer.request().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_refused_order_ends_the_run_at_once() {
    let link = Scripted::new(|_, peer: Peer| refuse(peer, Refusal::Conflict));
    let error = drive_with(&link).await.expect_err("refused");
    assert!(error.to_string().contains("push it first"), "{error}");
    assert_eq!((link.connections(), link.pushes()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn files_that_the_agent_does_not_find_right_are_pushed_again() {
    let link = Scripted::new(|connection, mut peer: Peer| async move {
        if connection < 2 {
            return refuse(peer, Refusal::UnknownModel).await;
        }
        peer.entry(1, 1, Event::Finished).await;
        while peer.request().await.is_some() {}
    });
    drive_with(&link).await.expect("the third is right");
    assert_eq!((link.connections(), link.pushes()), (3, 3));

    let link = Scripted::new(|_, peer: Peer| refuse(peer, Refusal::UnknownModel));
    let error = drive_with(&link).await.expect_err("none is ever right");
    assert!(error.to_string().contains("push it first"), "{error}");
    assert_eq!((link.connections(), link.pushes()), (3, 3));
}

/// Plans one order, and fails at what comes of it.
struct FailsAtNews;

impl Orders for FailsAtNews {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        match news {
            [] => Ok(vec![order(1)]),
            _ => Err(PlannerError::Observations {
                processor: "npu".to_owned(),
                reason: GraphError::NoLayers,
            }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_fails_ends_the_run_with_its_reason() {
    let link = Scripted::new(|_, mut peer: Peer| async move {
        let events = [
            block_started(0),
            sample(0),
            block_ended(None),
            Event::Finished,
        ];
        for (sequence, event) in (1..).zip(events) {
            peer.entry(sequence, 1, event).await;
        }
        while peer.request().await.is_some() {}
    });
    let mut follower = |_: &Entry| {};
    let error = drive(&link, &run().into(), &[], &mut FailsAtNews, &mut follower)
        .await
        .expect_err("nothing is planned");
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("what to measure next on `npu` cannot be planned: "),
        "{sentence}"
    );
}

/// Wants the run parked once so many entries have come.
struct ParksAfter(usize, Vec<Entry>);

impl Follower for ParksAfter {
    async fn entry(&mut self, entry: &Entry) {
        self.1.push(entry.clone());
    }

    async fn park_asked(&mut self) {
        if self.1.len() < self.0 {
            std::future::pending().await
        }
    }
}

/// An agent that measures a block of three samples for each of two orders, and parks between them.
async fn parks_between_orders(mut peer: Peer) {
    let journal: Vec<(u32, Event)> = [1, 2]
        .into_iter()
        .flat_map(|order| {
            let first = u64::from(order - 1) * 3;
            let samples = (first..first + 3).map(sample);
            let mut events = vec![block_started(0)];
            events.extend(samples);
            events.extend([block_ended(None), Event::Finished]);
            events.into_iter().map(move |event| (order, event))
        })
        .collect();
    let mut parked = None;
    while let Some(request) = peer.request().await {
        match request {
            Request::Submit { .. } => parked = None,
            Request::Park { run } => {
                // The answer overtakes the entries that are on their way.
                peer.say(&Response::Parked { run, entries: 6 }).await;
                for (at, (order, event)) in journal.iter().enumerate().take(6).skip(2) {
                    peer.entry(at as u64 + 1, *order, event.clone()).await;
                }
                parked = Some(6);
            }
            Request::Follow { after, .. } => {
                let until = if after == 0 { 2 } else { journal.len() };
                for (at, (order, event)) in journal.iter().enumerate().take(until) {
                    if at as u64 >= after && parked.is_none() {
                        peer.entry(at as u64 + 1, *order, event.clone()).await;
                    }
                }
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_parked_has_all_its_entries_and_goes_on_from_them() {
    let link = Scripted::new(|_, peer: Peer| parks_between_orders(peer));
    let orders = || Fixed::new(vec![order(1), order(2)]);
    let mut follower = ParksAfter(2, Vec::new());
    let error = drive(&link, &run().into(), &[], &mut orders(), &mut follower)
        .await
        .expect_err("it was asked to park");
    assert!(matches!(error, RunError::Parked), "{error}");
    let known = follower.1;
    assert_eq!(known.len(), 6);

    let journal = KnownJournal {
        entries: known,
        ..run().into()
    };
    let mut seen = Vec::new();
    let measured = drive(&link, &journal, &[], &mut orders(), &mut |entry: &Entry| {
        seen.push(entry.sequence);
    })
    .await
    .expect("samples");
    assert_eq!(measured.samples.len(), 6);
    assert_eq!(seen, [7, 8, 9, 10, 11, 12]);
}
