//! What a lab of many hosts costs: `lab-scale [JOBS] [SECONDS] [HOSTS]...` has 8, 16 and 32 hosts with 32 devices each work on as
//! many queued jobs in a PostgreSQL server of its own for so long, and prints a Markdown table. The devices are played: they do nothing until
//! their run ends, after 100 s on average. Dispatchers and stores are the lab's own, all in this process; the server is real.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::print_stderr, reason = "it takes minutes")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use layerlab_lab::bench::{Assignment, Bench, Desk};
use layerlab_lab::clock::Clock;
use layerlab_lab::config::Config;
use layerlab_lab::dispatcher::{Dispatcher, Message, Question};
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::{Device, Spent};
use layerlab_lab::state::{LabState, Rules, StayOutcome};
use layerlab_lab::store::{Store, StoreError, StorePlace, StoreServer};
use layerlab_lab::talk::{Answer, Request};
use layerlab_tests::postgres::PostgresServer;
use layerlab_tests::process_usage::ProcessUsage;
use layerlab_tests::proof::table::markdown;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const HOSTS: [usize; 3] = [8, 16, 32];

/// Of each host.
const DEVICES: usize = 32;

const JOBS: usize = 100_000;

/// How long each lab is watched.
const SECONDS: u64 = 120;

/// How long a run takes on average.
const RUN_SECONDS: f64 = 100.0;

/// How long hosts may take to open the store, and their devices to have a run each.
const BEGINNING: Duration = Duration::from_secs(900);

/// So many jobs are submitted at once.
const AT_ONCE: usize = 64;

/// Without a server there is nothing to measure.
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let jobs = arguments.next().map_or(Ok(JOBS), |jobs| jobs.parse());
    let seconds = arguments.next().map_or(Ok(SECONDS), |one| one.parse());
    let hosts: Result<Vec<usize>, _> = arguments.map(|hosts| hosts.parse()).collect();
    let (Ok(jobs), Ok(seconds), Ok(mut hosts)) = (jobs, seconds, hosts) else {
        eprintln!("usage: lab-scale [JOBS] [SECONDS] [HOSTS]...");
        return ExitCode::from(2);
    };
    if hosts.is_empty() {
        hosts.extend(HOSTS);
    }
    let Some(server) = PostgresServer::new() else {
        return ExitCode::from(UNAVAILABLE);
    };
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let queued = server.database();
    runtime.block_on(submit(&queued, jobs));
    let mut rows = Vec::new();
    for hosts in hosts {
        let url = copy(&server, &queued, hosts);
        let during = Duration::from_secs(seconds);
        let row = runtime.block_on(measure(&server, &url, hosts, jobs, during));
        eprintln!("{}", row.join(" "));
        rows.push(row);
    }
    let header = [
        "hosts",
        "devices",
        "jobs",
        "runs that ended",
        "to the next run, median",
        "p99",
        "longest",
        "a decision, median",
        "p99",
        "decisions for each end",
        "the server's processor time for each end",
        "the hosts'",
        "database",
        "memory of all hosts",
    ];
    println!("{}", markdown(&header, &rows));
    ExitCode::SUCCESS
}

/// Devices that do nothing until their run ends.
#[derive(Clone)]
struct PlayedDevices {
    chance: Arc<Mutex<ChaCha8Rng>>,
    seen: Arc<Mutex<Seen>>,
    /// Has a permit for each device that has begun its first run.
    begun: Arc<Semaphore>,
}

#[derive(Default)]
struct Seen {
    /// When the run on each device ended.
    ended: HashMap<String, Instant>,
    /// From the end of a run to the beginning of the next on the same device.
    waits: Vec<Duration>,
    /// How long each decision took.
    decisions: Vec<Duration>,
}

impl PlayedDevices {
    fn new() -> PlayedDevices {
        PlayedDevices {
            chance: Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(1))),
            seen: Arc::default(),
            begun: Arc::new(Semaphore::new(0)),
        }
    }

    /// What was seen since this was asked last: how long devices waited, and how long decisions took, each in order.
    fn take_seen(&self) -> (Vec<Duration>, Vec<Duration>) {
        let mut seen = self.seen.lock().expect("no panic");
        let mut waits = std::mem::take(&mut seen.waits);
        let mut decisions = std::mem::take(&mut seen.decisions);
        waits.sort_unstable();
        decisions.sort_unstable();
        (waits, decisions)
    }
}

impl Bench for PlayedDevices {
    type Opened = ();

    async fn work(
        &self,
        is_open: &mut Option<()>,
        assignment: &Assignment,
        _: &Desk,
    ) -> (StayOutcome, Spent) {
        let name = &assignment.device.name;
        let ended = {
            let mut seen = self.seen.lock().expect("no panic");
            let ended = seen.ended.remove(name).map(|at| at.elapsed());
            seen.waits.extend(ended);
            ended
        };
        if ended.is_none() && is_open.replace(()).is_none() {
            self.begun.add_permits(1);
        }
        let share: f64 = self.chance.lock().expect("no panic").random();
        let takes = Duration::from_secs_f64(-RUN_SECONDS * (1.0 - share).ln());
        let outcome = tokio::select! {
            () = tokio::time::sleep(takes) => StayOutcome::Published {
                folder: PathBuf::from(format!("profiles/{}", assignment.run.number)),
                findings: Vec::new(),
                verdict: None,
            },
            () = assignment.asked_to_leave() => StayOutcome::Parked,
        };
        let mut seen = self.seen.lock().expect("no panic");
        seen.ended.insert(name.clone(), Instant::now());
        (outcome, Spent::default())
    }

    async fn forget(&self, _: &mut Option<()>, _: &Assignment) {}

    fn decided(&self, took: Duration) {
        self.seen.lock().expect("no panic").decisions.push(took);
    }

    async fn close(&self, (): ()) {}
}

/// A daemon of one host, as far as it decides.
struct Daemon {
    _folder: TempDir,
    messages: mpsc::Sender<Message>,
    ended: JoinHandle<Result<(), StoreError>>,
    /// Ends with what writes to the store.
    trouble: watch::Receiver<Option<String>>,
}

impl Daemon {
    async fn begin(name: &str, url: &str, devices: PlayedDevices) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        let server = StoreServer::new(url).expect("a database");
        let place = StorePlace::in_folder(folder.path()).on(server.as_host(name.to_owned()));
        let (store, kept) = Store::open(&place).await.expect("a store");
        let state = LabState::new(kept, Rules::of(&Config::default()));
        let dispatcher = Dispatcher::new(state, store.clone(), devices, Clock::Host);
        let trouble = store.trouble();
        let (messages, inbox) = mpsc::channel(AT_ONCE);
        let ended = tokio::spawn(async move {
            let ended = dispatcher.run(inbox).await;
            store.close().await;
            ended
        });
        Daemon {
            _folder: folder,
            messages,
            ended,
            trouble,
        }
    }

    async fn send(&self, message: Message) {
        self.messages.send(message).await.expect("a dispatcher");
    }

    async fn ask(&self, request: Request) -> oneshot::Receiver<Answer> {
        let (to, answer) = oneshot::channel();
        let by = None;
        self.send(Message::Ask(Question { request, by, to })).await;
        answer
    }

    async fn submit(&self, jobs: usize) {
        let mut answers = Vec::with_capacity(jobs);
        for number in 0..jobs {
            let request = Request::Submit {
                spec: Box::new(job(number)),
                again: true,
                sizes: Vec::new(),
            };
            answers.push(self.ask(request).await);
        }
        for answer in join_all(answers).await {
            let answer = answer.expect("an answer");
            assert!(matches!(answer, Answer::Submitted { .. }), "{answer:?}");
        }
    }

    /// Ends it, on whose devices there are no runs.
    async fn stop(self) {
        self.send(Message::Stop).await;
        let ended = self.ended.await.expect("no panic");
        ended.expect("a store");
    }

    /// Ends it as if it were killed: stopped, it would wait for its runs.
    async fn kill(mut self) {
        self.ended.abort();
        assert!(self.ended.await.is_err(), "it had ended by itself");
        while self.trouble.changed().await.is_ok() {}
    }
}

/// A device of one of three kinds, half of them in a pool.
fn device(host: usize, number: usize) -> Device {
    let name = format!("phone{host:02}-{number:02}");
    Device {
        serial: name.clone(),
        name,
        soc: Some(["kirin970", "sm8550", "tensor"][number % 3].to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        android: Some(10 + number as u32 % 5),
        pools: match number % 2 {
            0 => vec!["night".to_owned()],
            _ => Vec::new(),
        },
        ..Device::default()
    }
}

/// A job for any one device of some kind; they differ in priority, devices and models.
fn job(number: usize) -> JobSpec {
    let selector = match number % 4 {
        0 => Selector {
            soc: Some("sm8550".to_owned()),
            ..Selector::default()
        },
        1 => Selector {
            android: Some(">= 12".parse().expect("a requirement")),
            ..Selector::default()
        },
        2 => Selector {
            pool: Some("night".to_owned()),
            ..Selector::default()
        },
        _ => Selector {
            abi: Some("arm64-v8a".to_owned()),
            ..Selector::default()
        },
    };
    JobSpec {
        name: format!("job{number}"),
        models: vec![ModelSpec {
            name: "alexnet".to_owned(),
            sha256: format!("{number:064}"),
            ..ModelSpec::default()
        }],
        devices: vec![selector],
        repeats: 1,
        priority: (number % 3) as i32,
        ..JobSpec::default()
    }
}

/// A database for so many hosts with what the one at `url` holds, to which nobody is connected.
fn copy(server: &PostgresServer, url: &str, hosts: usize) -> String {
    let path = url.split('?').next().unwrap_or(url);
    let name = path.rsplit('/').next().unwrap_or(path);
    let copy = format!("{name}_{hosts}");
    server.sql(url, &format!("CREATE DATABASE {copy} TEMPLATE {name}"));
    url.replace(name, &copy)
}

/// Puts so many jobs into the database at `url`.
async fn submit(url: &str, jobs: usize) {
    let began = Instant::now();
    let daemon = Daemon::begin("host00", url, PlayedDevices::new()).await;
    daemon.submit(jobs).await;
    daemon.stop().await;
    let took = began.elapsed();
    eprintln!("{jobs} jobs submitted in {took:.1?}");
}

/// The table's row for a lab of so many hosts, with the database at `url`.
async fn measure(
    server: &PostgresServer,
    url: &str,
    hosts: usize,
    jobs: usize,
    during: Duration,
) -> Vec<String> {
    let devices = PlayedDevices::new();
    let began = Instant::now();
    let names = (0..hosts).map(|host| format!("host{host:02}"));
    let beginning = names.map(|name| {
        let (url, devices) = (url.to_owned(), devices.clone());
        tokio::spawn(async move { Daemon::begin(&name, &url, devices).await })
    });
    let daemons = join_all(beginning).await;
    let daemons: Vec<Daemon> = daemons
        .into_iter()
        .map(|it| it.expect("no panic"))
        .collect();
    for (host, daemon) in daemons.iter().enumerate() {
        let here = (0..DEVICES).map(|number| device(host, number)).collect();
        daemon.send(Message::Devices(here)).await;
    }
    let all = u32::try_from(hosts * DEVICES).expect("not so many");
    let begun = timeout(BEGINNING, devices.begun.acquire_many(all)).await;
    let took = began.elapsed();
    begun
        .expect("each device has a run")
        .expect("it stays open")
        .forget();
    eprintln!("{hosts} hosts began, and {all} devices, in {took:.1?}");

    devices.take_seen();
    let before = Spending::of(server);
    tokio::time::sleep(during).await;
    let after = Spending::of(server);
    let (waits, decisions) = devices.take_seen();
    let ends = waits.len().max(1);
    let for_each_end = |one: f64| format!("{:.1} ms", 1e3 * one / ends as f64);
    let size = server.sql(url, "SELECT pg_database_size(current_database())");
    let size: f64 = size.parse().expect("a number");
    let row = vec![
        hosts.to_string(),
        all.to_string(),
        jobs.to_string(),
        waits.len().to_string(),
        percentile(&waits, 50),
        percentile(&waits, 99),
        percentile(&waits, 100),
        percentile(&decisions, 50),
        percentile(&decisions, 99),
        format!("{:.1}", decisions.len() as f64 / ends as f64),
        for_each_end(after.server_s - before.server_s),
        for_each_end(after.hosts_s - before.hosts_s),
        format!("{:.0} MB", size / 1e6),
        format!("{} MB", ProcessUsage::own().peak_bytes / 1_000_000),
    ];
    join_all(daemons.into_iter().map(Daemon::kill)).await;
    row
}

/// So many hundredths of the times, which are in order, are not longer.
fn percentile(times: &[Duration], hundredths: usize) -> String {
    let last = times.len().saturating_sub(1);
    let time = times.get((times.len() * hundredths / 100).min(last));
    time.map_or_else(String::new, |time| {
        format!("{:.2} ms", 1e3 * time.as_secs_f64())
    })
}

/// What a lab has spent since it began.
struct Spending {
    server_s: f64,
    /// Processor time of this process, in which all hosts are.
    hosts_s: f64,
}

impl Spending {
    fn of(server: &PostgresServer) -> Spending {
        Spending {
            server_s: of_process_and_children(server.process()),
            hosts_s: ProcessUsage::own().cpu_s,
        }
    }
}

/// Processor time of a process and all its children, in seconds.
fn of_process_and_children(process: u32) -> f64 {
    let own = ProcessUsage::of(&process.to_string()).expect("a server");
    let all = std::fs::read_dir("/proc").expect("Linux").flatten();
    let all = all.filter_map(|entry| ProcessUsage::of(entry.file_name().to_str()?));
    let children = all.filter(|one| one.parent == process);
    own.cpu_s + own.ended_children_cpu_s + children.map(|child| child.cpu_s).sum::<f64>()
}
