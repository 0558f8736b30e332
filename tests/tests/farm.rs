//! The farm: the real adb server, the real adbd, and what goes wrong between them. Skipped, with a
//! sentence, where they cannot be had.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use layerlab::campaign::{ModelFile, RunError, TimesPlan, TimesSettings, drive};
use layerlab::device::adb::{
    AdbError, AdbLink, Address, Content, Fleet, Phone, Policy, Prover, Server,
};
use layerlab::device::quarantine::Quarantine;
use layerlab::device::{Connection, Link, LinkError};
use layerlab::provision::{Agents, DEFAULT_CACHE_BYTES, Provision};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::Sample;
use layerlab_profiles::{Nanos, sha256};
use layerlab_protocol::{Entry, Event, Hygiene, RunId};
use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::{Fault, Interposer};
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{file, output, stderr, succeed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a serial, a model's name or a path may be made of.
const HOSTILE: &str = "; $(reboot) ' \" \n .. \u{1f4f1}";

const TABLES: [&str; 4] = ["layers.csv", "times.csv", "segments.csv", "samples.csv"];

/// The arguments of a short measurement of alexnet, published at `out`.
fn profile(command: &mut Command, device: &str, simulate: &str, out: &Path) {
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--samples",
            "6",
            "--device",
            device,
        ])
        .args(["--simulate", simulate, "--out"])
        .arg(out)
        .arg("--model")
        .arg(file("models/alexnet.onnx"));
}

/// A profile's tables, and its header without the provenance.
type Published = ([String; 4], serde_json::Value);

fn published(folder: &Path) -> Published {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a published file");
    let mut json: serde_json::Value = serde_json::from_str(&read("profile.json")).expect("JSON");
    json.as_object_mut()
        .expect("an object")
        .remove("provenance");
    (TABLES.map(read), json)
}

/// A profile apart from when its samples were taken: a phone's clock runs on from one run to the next.
fn clockless(([layers, times, segments, samples], mut json): Published) -> Published {
    let head: Vec<&str> = samples
        .lines()
        .next()
        .unwrap_or_default()
        .split(',')
        .collect();
    let started = head.iter().position(|name| *name == "started_ns");
    let started = started.expect("a column");
    let lines = samples.lines().map(|line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        fields.remove(started);
        fields.join(",")
    });
    let samples = lines.collect::<Vec<_>>().join("\n");
    // The hash of that table, and of the one that says how warm the phone still was from the run before.
    json["files"]["samples.csv"].take();
    json["files"]["blocks.csv"].take();
    ([layers, times, segments, samples], json)
}

/// The profile that the local link gives of the simulated device `device`.
fn local(farm: &Farm, device: &str) -> Published {
    let out = farm.path(&format!("local-{device}"));
    let mut command = farm.layerlab();
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--samples",
            "6",
            "--device",
            device,
            "--out",
        ])
        .arg(&out)
        .arg("--model")
        .arg(file("models/alexnet.onnx"));
    succeed(&mut command);
    published(&out)
}

#[test]
fn a_phone_gives_the_same_profile_as_the_local_link() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    profile(&mut command, &phone.address, "pixel6", &out);
    succeed(&mut command);
    assert_eq!(published(&out), local(&farm, "pixel6"));
    let json = std::fs::read_to_string(out.join("profile.json")).expect("profile.json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["provenance"]["link"], "adb");
}

#[test]
fn three_phones_profile_while_a_fourth_comes_and_goes() {
    let Some(farm) = Farm::new() else { return };
    let simulated = ["mate10pro", "oneplus7", "pixel6"];
    let phones = simulated.map(|name| farm.phone(name));
    let fourth = farm.phone("fourth");
    let mut watch = Watch::start(&farm, &fourth.address);
    watch.wait_for(&fourth.address, "ready");
    let expected = simulated.map(|name| clockless(local(&farm, name)));
    let settled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for ((name, phone), expected) in simulated.iter().zip(&phones).zip(&expected) {
            let (farm, settled) = (&farm, &settled);
            // Again and again, so that each cable that is pulled is pulled in the middle of three runs.
            scope.spawn(move || {
                let mut runs = 0;
                while runs == 0 || !settled.load(Ordering::Relaxed) {
                    let out = farm.path(&format!("out-{name}-{runs}"));
                    let mut command = farm.layerlab();
                    profile(&mut command, &phone.address, name, &out);
                    succeed(&mut command);
                    assert_eq!(&clockless(published(&out)), expected, "{name}, run {runs}");
                    runs += 1;
                }
            });
        }
        // Says that it is over even if a wait fails, since the others wait for that.
        let _settled = OnDrop(|| settled.store(true, Ordering::Relaxed));
        for _ in 0..20 {
            fourth.unplug();
            watch.wait_for(&fourth.address, "offline");
            fourth.plug();
            watch.wait_for(&fourth.address, "ready");
        }
    });
}

/// Does something when it goes out of scope, also in a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn going_is_seen_within_a_second_and_coming_within_three() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let mut watch = Watch::start(&farm, &phone.address);
    watch.wait_for(&phone.address, "ready");
    let second = Duration::from_secs(1);
    // Adbd is gone, and is back, when these return.
    phone.unplug();
    let seen = watch.wait_for(&phone.address, "offline");
    assert!(seen < second, "unplugged, seen after {seen:?}");
    // The server itself calls a network phone only now and then: layerlab makes it call each second.
    phone.plug();
    let seen = watch.wait_for(&phone.address, "ready");
    assert!(seen < 3 * second, "plugged in, seen after {seen:?}");
}

/// `layerlab devices --watch --json`.
struct Watch {
    child: Child,
    changes: mpsc::Receiver<serde_json::Value>,
}

impl Watch {
    fn start(farm: &Farm, address: &str) -> Watch {
        let mut command = farm.layerlab();
        command.args(["devices", "--watch", "--json", "--adb-connect", address]);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("layerlab starts");
        let stdout = child.stdout.take().expect("piped");
        let (sender, changes) = mpsc::channel();
        std::thread::spawn(move || {
            for line in
                std::io::BufRead::lines(std::io::BufReader::new(stdout)).map_while(Result::ok)
            {
                let change = serde_json::from_str(&line).expect("JSON");
                if sender.send(change).is_err() {
                    return;
                }
            }
        });
        Watch { child, changes }
    }

    /// Waits until the phone at `address` is in `state`; returns how long that took.
    fn wait_for(&mut self, address: &str, state: &str) -> Duration {
        let begin = Instant::now();
        let deadline = Duration::from_secs(30);
        loop {
            let left = deadline.saturating_sub(begin.elapsed());
            let change = self.changes.recv_timeout(left);
            let change = change.unwrap_or_else(|_| panic!("{address} did not become {state}"));
            if change["device"]["name"] == address && change["device"]["state"] == state {
                return begin.elapsed();
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// -- runs that are disturbed -------------------------------------------------------------------------------------------

/// A link that says when it has reached the agent.
struct Watched<L> {
    link: L,
    connections: AtomicU64,
}

impl<L: Link> Link for Watched<L> {
    fn kind(&self) -> &'static str {
        self.link.kind()
    }

    async fn push_file(&self, sha256: &str, onnx: &[u8]) -> Result<(), LinkError> {
        self.link.push_file(sha256, onnx).await
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let connection = self.link.connect().await?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(connection)
    }
}

fn provision(farm: &Farm, device: &str) -> Provision {
    Provision {
        agents: Agents {
            folder: farm.path("data/agents"),
            of_host: farm.agent(),
        },
        simulate: Some(Content::new(device.as_bytes().to_vec())),
        cache_bytes: DEFAULT_CACHE_BYTES,
    }
}

async fn link(farm: &Farm, address: &str, device: &str) -> AdbLink {
    let fleet = Fleet::open(&farm.settings()).await;
    let found = fleet.find(address).await.expect("a phone");
    let provision = provision(farm, device);
    AdbLink::open(
        found.server,
        address,
        provision,
        Policy::default(),
        &farm.state(),
    )
    .await
    .expect("a phone that works")
}

/// The noisy device on a clock that runs: its samples take the time that they say.
fn real_time() -> String {
    noisy().replace("clock = \"exact\"", "clock = \"real\"")
}

fn noisy() -> String {
    std::fs::read_to_string(file("devices/noisy.toml")).expect("a device")
}

/// What a test does to a run while it goes on, given how many samples have come over how many connections.
type Disturb<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// The idle time before each inference where a test needs a run that lasts.
const SLOW: Nanos = Nanos::from_micros(8_000);

/// And where it does not.
const FAST: Nanos = Nanos::from_micros(10);

/// What a disturbed run gave.
struct Ended {
    samples: Vec<Sample>,
    planned: u64,
    connections: u64,
    /// The longest silence between two entries.
    silence: Duration,
}

/// Runs alexnet on the phone; `disturb` is told after each sample how many there have been.
async fn run(
    link: AdbLink,
    samples_per_segment: u64,
    gap: Nanos,
    disturb: Disturb<'_>,
) -> Result<Ended, RunError> {
    let model =
        ModelFile::open(&file("models/alexnet.onnx"), &Default::default()).expect("a model");
    let link = Watched {
        link,
        connections: AtomicU64::new(0),
    };
    let hello = link.connect().await.map_err(RunError::Link)?.hello;
    let run = RunId::new("disturbed").expect("a name");
    let layers = model.network.layer_count();
    let settings = TimesSettings {
        processors: Vec::new(),
        design: Design::Grouped,
        samples_per_segment,
        gap,
        seed: 5,
        hygiene: Hygiene {
            // A machine that runs many tests at once is no steady device.
            sentinel_tolerance_percent: 100_000,
            ..Hygiene::default()
        },
        target: 0.02,
        budget: Nanos::ZERO,
    };
    let plan =
        TimesPlan::new(&run, &model.sha256, layers, &hello.processors, settings).expect("a plan");
    let (mut samples, mut last, mut silence) = (0, Instant::now(), Duration::ZERO);
    let mut on_entry = |entry: &Entry| {
        silence = silence.max(last.elapsed());
        if matches!(entry.event, Event::Sample { .. }) {
            samples += 1;
            disturb(samples, link.connections.load(Ordering::Relaxed));
        }
        last = Instant::now();
    };
    let measured = drive(
        &link,
        &run.into(),
        &[model.file()],
        &mut plan.orders(),
        &mut on_entry,
    )
    .await?;
    Ok(Ended {
        samples: measured.samples,
        planned: plan.samples().expect("a fixed design"),
        connections: link.connections.load(Ordering::Relaxed),
        silence,
    })
}

/// Which samples there are.
fn names(samples: &[Sample]) -> BTreeSet<(u32, u64)> {
    samples
        .iter()
        .map(|sample| (sample.order, sample.index))
        .collect()
}

/// What a sample is on a clock of its own, apart from when it was taken.
fn measured(samples: &[Sample]) -> BTreeSet<(u32, u64, u64)> {
    samples
        .iter()
        .map(|sample| (sample.order, sample.index, sample.duration.as_nanos()))
        .collect()
}

/// Runs to the end, undisturbed or not, and loses or doubles nothing.
async fn whole(link: AdbLink, samples_per_segment: u64, gap: Nanos, disturb: Disturb<'_>) -> Ended {
    let ended = run(link, samples_per_segment, gap, disturb)
        .await
        .expect("samples");
    assert_eq!(
        ended.samples.len() as u64,
        ended.planned,
        "every sample has come"
    );
    assert_eq!(
        names(&ended.samples).len() as u64,
        ended.planned,
        "and none twice"
    );
    ended
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn an_adbd_killed_twenty_times_loses_no_sample() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let link = link(&farm, &phone.address, &real_time()).await;
    // The moments are drawn from a seed: so many samples after each return.
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let (mut killed, mut last_connections, mut at) = (0, 0, u64::MAX);
    let ended = whole(link, 30, SLOW, &mut |samples, connections| {
        if connections > last_connections {
            last_connections = connections;
            at = samples + random.random_range(1..40);
        }
        if samples >= at && killed < 20 {
            // Adbd is back when this returns. What was on the way before it died still comes.
            phone.crash_adbd();
            killed += 1;
            at = u64::MAX;
        }
    })
    .await;
    assert_eq!(killed, 20);
    assert!(ended.connections >= 20, "{} connections", ended.connections);
    let silence = ended.silence;
    assert!(
        silence < Duration::from_secs(5),
        "went on only {silence:?} after adbd was back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unplugged_phone_works_on() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let link = link(&farm, &phone.address, &real_time()).await;
    let mut unplugged = false;
    let mut meanwhile = 0;
    // At the first sample, of which the host may hear late: the run must not be over by then.
    let ended = whole(link, 40, SLOW, &mut |_, _| {
        if !unplugged {
            unplugged = true;
            phone.unplug();
            // The phone's own journal grows, with nobody at the other end.
            let before = journaled(&phone);
            let grown = || journaled(&phone) >= before + 100;
            let clue = || format!("it has {} entries, {before} before", journaled(&phone));
            wait_for("100 new entries in the phone's journal", grown, clue);
            meanwhile = journaled(&phone) - before;
            phone.plug();
        }
    })
    .await;
    assert!(meanwhile >= 100, "{meanwhile} entries while unplugged");
    let silence = ended.silence;
    assert!(
        silence < Duration::from_secs(5),
        "went on only {silence:?} after it was plugged in"
    );
}

/// How many lines the phone's journals have.
fn journaled(phone: &VirtualPhone) -> usize {
    let mut lines = 0;
    for folder in agent_folders(phone) {
        let journals = std::fs::read_dir(folder.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        lines += journals
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
            .map(|text| text.lines().count())
            .sum::<usize>();
    }
    lines
}

/// The folders of the agents on the phone.
fn agent_folders(phone: &VirtualPhone) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(phone.storage().join("layerlab"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("layerlab-agent").exists())
        .collect()
}

/// What is done in the middle of a run changes no sample.
async fn changes_no_sample(disturb: impl Fn(&Farm, &VirtualPhone) + Send + Sync) {
    let Some(farm) = Farm::new() else { return };
    let (calm, disturbed) = (farm.phone("calm"), farm.phone("disturbed"));
    let undisturbed = whole(
        link(&farm, &calm.address, &noisy()).await,
        60,
        FAST,
        &mut |_, _| {},
    )
    .await;
    let link = link(&farm, &disturbed.address, &noisy()).await;
    let mut done = false;
    let ended = whole(link, 60, FAST, &mut |samples, _| {
        if samples == 100 && !done {
            done = true;
            disturb(&farm, &disturbed);
        }
    })
    .await;
    assert!(done);
    assert_eq!(measured(&ended.samples), measured(&undisturbed.samples));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_changes_no_sample() {
    changes_no_sample(|farm, _| farm.signal_server("-KILL")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebooted_phone_changes_no_sample() {
    changes_no_sample(|_, phone| {
        let before = phone.status("boot_id");
        phone.reboot();
        assert_ne!(phone.status("boot_id"), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_changes_no_sample() {
    changes_no_sample(|farm, phone| {
        let kill = "kill -KILL $(cat /data/local/tmp/layerlab/*/agent.pid)";
        let mut adb = farm.adb();
        succeed(adb.args(["-s", &phone.address, "shell", kill]));
    })
    .await;
}

/// A server that hangs is our own: it is started anew once it has not answered for long enough. It is
/// stopped for good here; one that comes back by itself is the easier case.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn a_stopped_server_changes_no_sample() {
    changes_no_sample(|farm, _| farm.signal_server("-STOP")).await;
}

/// A server that somebody else runs is not ours to start anew: it is waited for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn a_given_server_that_is_stopped_for_thirty_seconds_is_waited_for() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let own = Fleet::open(&farm.settings()).await;
    own.find(&phone.address).await.expect("a phone");
    let address = Address {
        host: "127.0.0.1".to_owned(),
        port: farm.port,
    };
    let server = Server::given(address);
    let provision = provision(&farm, &real_time());
    let link = AdbLink::open(
        server,
        &phone.address,
        provision,
        Policy::default(),
        &farm.state(),
    )
    .await
    .expect("a phone that works");
    let mut resumed = None;
    whole(link, 20, SLOW, &mut |samples, _| {
        if samples == 50 && resumed.is_none() {
            farm.signal_server("-STOP");
            let process = farm.server_process();
            resumed = Some(std::thread::spawn(move || {
                // The thirty seconds are the scenario, not a hope.
                std::thread::sleep(Duration::from_secs(30));
                let status = Command::new("kill").args(["-CONT", &process]).status();
                assert!(status.expect("kill runs").success());
            }));
        }
    })
    .await;
    resumed.expect("it was stopped").join().expect("it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_phone_ends_the_run_and_is_left_alone() {
    let Some(farm) = Farm::new() else { return };
    let first = farm.phone("first");
    let port = first.port().to_owned();
    let link = link(&farm, &first.address, &noisy()).await;
    let mut second = None;
    let result = run(link, 60, FAST, &mut |samples, _| {
        if samples == 100 && second.is_none() {
            first.stop();
            let folder = farm.path("phone-second");
            second = Some(VirtualPhone::start_with(
                &folder,
                "second",
                &["--port", &port],
            ));
        }
    })
    .await;
    let error = result.err().expect("another phone").to_string();
    for word in ["first", "second", "another phone"] {
        assert!(error.contains(word), "{error}");
    }
    let second = second.expect("it was swapped");
    assert!(
        agent_folders(&second).is_empty(),
        "the other phone was touched"
    );
}

// -- storage -----------------------------------------------------------------------------------------------------------

#[test]
fn a_full_phone_is_named_and_nothing_is_left_on_it() {
    let Some(farm) = Farm::new() else { return };
    let folder = farm.path("small");
    let phone = VirtualPhone::start_with(&folder, "small", &["--storage-bytes", "4194304"]);
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    profile(&mut command, &phone.address, "pixel6", &out);
    let ended = output(&mut command);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    assert!(
        said.contains("storage") && said.contains("full") && said.contains(&phone.address),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    let listed = farm
        .adb()
        .args([
            "-s",
            &phone.address,
            "shell",
            "find /data/local/tmp -type f",
        ])
        .output()
        .expect("adb runs");
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "", "left behind");
    assert!(!out.exists());
    // Room is made, and it works.
    phone.set("storage_free_bytes", "200000000");
    let mut command = farm.layerlab();
    profile(&mut command, &phone.address, "pixel6", &out);
    succeed(&mut command);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_that_was_not_used_for_longest_goes_first() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let fleet = Fleet::open(&farm.settings()).await;
    let found = fleet.find(&phone.address).await.expect("a phone");
    let provision = Provision {
        cache_bytes: 2_500_000,
        ..provision(&farm, &noisy())
    };
    let link = AdbLink::open(
        found.server,
        &phone.address,
        provision,
        Policy::default(),
        &farm.state(),
    )
    .await
    .expect("a phone that works");
    link.connect().await.expect("an agent");
    let files = phone.storage().join("layerlab/files");
    let push = async |name: char| {
        let model = vec![name as u8; 1_000_000];
        let sha256 = Content::new(&model).sha256().to_owned();
        link.push_file(&sha256, &model).await.expect("pushed");
        let path = files.join(&sha256);
        let inode =
            std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).expect("it is there"));
        (path, inode)
    };
    let age = |path: &Path, hours: u64| {
        let file = std::fs::File::options()
            .append(true)
            .open(path)
            .expect("a model");
        let then = std::time::SystemTime::now() - Duration::from_secs(3600 * hours);
        file.set_modified(then).expect("its own file");
    };
    let (a, first) = push('a').await;
    assert_eq!(push('a').await.1, first, "sent again");
    let (b, _) = push('b').await;
    age(&a, 3);
    age(&b, 2);
    // Used again: it is the younger one now.
    push('a').await;
    let (c, _) = push('c').await;
    assert!(
        a.exists() && c.exists() && !b.exists(),
        "the one that was not used for longest goes"
    );
}

// -- what the real server and the real adbd cannot be made to do -------------------------------------------------------

/// Layerlab with the server's place taken by `interposer`.
fn layerlab_through(farm: &Farm, interposer: &Interposer) -> Command {
    let mut command = farm.layerlab();
    command.env("LAYERLAB_ADB_SERVER", interposer.address.to_string());
    command
}

/// A lab with one phone that its server knows, and a liar before it.
fn with_interposer(serial: &str) -> Option<(Farm, VirtualPhone, Interposer)> {
    let farm = Farm::new()?;
    let phone = farm.phone("P1");
    if serial != "P1" {
        phone.set("prop.ro.serialno", serial);
    }
    succeed(
        farm.layerlab()
            .args(["devices", "--adb-connect", &phone.address]),
    );
    let interposer = Interposer::before(farm.port);
    Some((farm, phone, interposer))
}

#[test]
fn what_is_on_the_phone_is_not_sent_again() {
    let Some((farm, phone, interposer)) = with_interposer("P1") else {
        return;
    };
    let name = format!("{}@{}", phone.address, interposer.address);
    let run = |out: &str| {
        let before = interposer.sent();
        let mut command = layerlab_through(&farm, &interposer);
        profile(&mut command, &name, "pixel6", &farm.path(out));
        succeed(&mut command);
        interposer.sent() - before
    };
    let agent = std::fs::metadata(farm.agent()).expect("an agent").len();
    let first = run("first");
    assert!(
        first > agent,
        "{first} bytes were sent, the agent has {agent}"
    );
    let agents = phone.storage().join("layerlab");
    for (name, days) in [("of-last-year", 300), ("of-last-week", 7)] {
        std::fs::create_dir(agents.join(name)).expect("a folder");
        let then = std::time::SystemTime::now() - Duration::from_secs(days * 86_400);
        let folder = std::fs::File::open(agents.join(name)).expect("a folder");
        folder.set_modified(then).expect("its own folder");
    }
    // What is sent again are questions and orders.
    let second = run("second");
    assert!(second < 100_000, "{second} bytes were sent again");
    assert!(agents.join("of-last-week").exists());
    assert!(!agents.join("of-last-year").exists(), "old agents go");
}

#[test]
fn every_state_is_listed_with_its_reason_and_remedy() {
    let Some((farm, _phone, interposer)) = with_interposer("P1") else {
        return;
    };
    let states = [
        ("offline", "offline", "does not answer"),
        ("unauthorized", "unauthorized", "accept the prompt"),
        ("authorizing", "authorizing", "wait"),
        ("connecting", "connecting", "wait"),
        ("recovery", "recovery", "start Android"),
        ("sideload", "sideload", "start Android"),
        ("bootloader", "bootloader", "start Android"),
        (
            "no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com/tools/device.html]",
            "no permissions",
            "udev",
        ),
    ];
    for (told, state, word) in states {
        interposer.list(Some(&format!(
            "ABC                    {told} usb:1-1 transport_id:9\n"
        )));
        let listed = succeed(layerlab_through(&farm, &interposer).arg("devices"));
        assert!(listed.contains(state) && listed.contains(word), "{listed}");
        assert!(
            listed.contains("host") && listed.contains("pixel6"),
            "the others are listed, too"
        );
        let mut command = layerlab_through(&farm, &interposer);
        let name = format!("ABC@{}", interposer.address);
        profile(&mut command, &name, "pixel6", &farm.path("out"));
        let ended = output(command.args(["--patience", "100ms"]));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(4), "{said}");
        assert!(said.contains("ABC") && said.contains(word), "{said}");
        let doctor = output(layerlab_through(&farm, &interposer).args(["doctor", "--json"]));
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert_eq!(doctor.status.code(), Some(4));
        assert!(
            said.contains("\"problem\"") && said.contains(word),
            "{said}"
        );
    }
}

#[test]
fn a_phone_that_is_accepted_in_the_end_is_profiled() {
    let Some((farm, phone, interposer)) = with_interposer("P1") else {
        return;
    };
    interposer.list(Some(&format!(
        "{} unauthorized transport_id:1\n",
        phone.address
    )));
    let name = format!("{}@{}", phone.address, interposer.address);
    let out = farm.path("profile");
    let mut command = layerlab_through(&farm, &interposer);
    profile(&mut command, &name, "pixel6", &out);
    command
        .env("LAYERLAB_LOG", "warn")
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().expect("layerlab starts");
    let stderr = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = std::io::BufRead::lines(stderr).map_while(Result::ok);
    let told = lines
        .by_ref()
        .any(|line| line.contains("accept the prompt"));
    assert!(told, "the user is told what to do");
    // The owner accepts.
    interposer.list(None);
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().expect("a child").success(), "{rest:?}");
    assert_eq!(published(&out), local(&farm, "pixel6"));
}

#[test]
fn hostile_names_do_nothing_but_be_printed() {
    let Some((farm, phone, interposer)) = with_interposer(HOSTILE) else {
        return;
    };
    phone.set("prop.ro.product.model", HOSTILE);
    let boots = phone.status("boots");
    // Hostile as the server's name of the phone, as the phone's own serial, and as its model's name.
    interposer.list(Some(&format!("{HOSTILE:<22} device transport_id:1\n")));
    let name = format!("{HOSTILE}@{}", interposer.address);
    let listed = succeed(layerlab_through(&farm, &interposer).arg("devices"));
    assert!(
        listed.contains("; $(reboot) ' \" \\n .. \u{1f4f1}"),
        "{listed}"
    );
    let json = succeed(layerlab_through(&farm, &interposer).args(["devices", "--json"]));
    let devices: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let listed = devices.as_array().expect("a list").iter();
    assert!(
        listed
            .into_iter()
            .any(|device| device["name"] == name.as_str()),
        "{json}"
    );
    output(layerlab_through(&farm, &interposer).arg("doctor"));

    let folder = farm.path(&HOSTILE.replace('/', "_"));
    std::fs::create_dir(&folder).expect("a folder");
    let model = folder.join(format!("{HOSTILE}.onnx"));
    std::fs::copy(file("models/alexnet.onnx"), &model).expect("room");
    let out = farm.path("profile");
    let mut command = layerlab_through(&farm, &interposer);
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--samples",
            "6",
            "--simulate",
            "pixel6",
        ])
        .args(["--device", &name, "--out"])
        .arg(&out)
        .arg("--model")
        .arg(&model);
    succeed(&mut command);
    assert_eq!(published(&out).0, local(&farm, "pixel6").0);

    let quarantine =
        |arguments: &[&str]| succeed(farm.layerlab().arg("quarantine").args(arguments));
    quarantine(&["add", HOSTILE, "--reason", HOSTILE]);
    assert!(quarantine(&["list"]).contains("$(reboot)"));
    let mut command = layerlab_through(&farm, &interposer);
    profile(&mut command, &name, "pixel6", &farm.path("never"));
    let refused = output(&mut command);
    assert_eq!(refused.status.code(), Some(4));
    assert!(
        stderr(&refused).contains("quarantine"),
        "{}",
        stderr(&refused)
    );
    quarantine(&["lift", HOSTILE]);
    assert_eq!(phone.status("boots"), boots, "a name booted the phone");
}

#[test]
fn a_push_that_is_cut_damaged_or_stalled_is_done_again() {
    // Into the file of an agent or of a model: requests and small answers are far shorter.
    let far = 300_000;
    for fault in [Fault::CutAfter(far), Fault::CorruptAt(far), Fault::Delay(5)] {
        let Some((farm, phone, interposer)) = with_interposer("P1") else {
            return;
        };
        let name = format!("{}@{}", phone.address, interposer.address);
        let run = |out: &str| {
            let out = farm.path(out);
            interposer.spoil(fault, 1);
            let mut command = layerlab_through(&farm, &interposer);
            profile(&mut command, &name, "pixel6", &out);
            succeed(&mut command);
            assert!(
                matches!(fault, Fault::Delay(_)) || interposer.left_to_spoil() == 0,
                "{fault:?} never came"
            );
            published(&out)
        };
        let local = local(&farm, "pixel6");
        assert_eq!(run("agent"), local, "{fault:?}");
        // With the agent there already, it is the model that comes to harm.
        let files = phone.storage().join("layerlab/files");
        std::fs::remove_dir_all(&files).expect("a model");
        assert_eq!(clockless(run("model")), clockless(local), "{fault:?}");
        let models = std::fs::read_dir(&files).expect("a folder");
        let paths: Vec<PathBuf> = models.map(|file| file.expect("a file").path()).collect();
        let [model] = &paths[..] else {
            panic!("{paths:?}")
        };
        let found = sha256(&std::fs::read(model).expect("a model"));
        assert!(model.ends_with(&found), "{fault:?} left {found}");
    }
}

#[test]
fn a_journal_that_is_damaged_on_its_way_is_read_again() {
    let Some((farm, phone, interposer)) = with_interposer("P1") else {
        return;
    };
    let name = format!("{}@{}", phone.address, interposer.address);
    let out = farm.path("profile");
    // Answers of the phone's shell are shorter; the journal is not.
    interposer.spoil(Fault::CorruptBackAt(20_000), 2);
    let mut command = layerlab_through(&farm, &interposer);
    profile(&mut command, &name, "pixel6", &out);
    succeed(&mut command);
    assert_eq!(published(&out), local(&farm, "pixel6"));
    assert_eq!(interposer.left_to_spoil(), 0, "nothing was damaged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_stream_is_given_up_in_time() {
    let Some((farm, phone, interposer)) = with_interposer("P1") else {
        return;
    };
    let server = Server::given(interposer.address.to_string().parse().expect("an address"));
    let phone = Phone::find(&server, &phone.address)
        .await
        .expect("it is ready");
    interposer.spoil(Fault::StallAfter(0), 1);
    let begin = Instant::now();
    let error = phone.identity().await.expect_err("nothing passes");
    assert!(matches!(error, AdbError::Deadline { .. }), "{error}");
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "given up after {:?}",
        begin.elapsed()
    );
    phone.identity().await.expect("the next one passes");
    drop(farm);
}

#[test]
fn a_phone_whose_agent_dies_again_and_again_is_left_alone() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let agent = farm.path("dies");
    std::fs::write(
        &agent,
        "#!/system/bin/sh\necho 'the runtime has no licence' >&2\nexit 1\n",
    )
    .expect("room");
    let run = |agent: &Path| {
        let mut command = farm.layerlab();
        profile(&mut command, &phone.address, "pixel6", &farm.path("out"));
        output(command.arg("--agent").arg(agent).args(["--no-reboot"]))
    };
    let first = run(&agent);
    assert_eq!(first.status.code(), Some(4));
    assert!(
        stderr(&first).contains("the runtime has no licence"),
        "{}",
        stderr(&first)
    );
    // Another process, with an agent that would work: the phone is left alone all the same.
    let second = run(&farm.agent());
    assert!(
        stderr(&second).contains("quarantine"),
        "{}",
        stderr(&second)
    );
    let listed = succeed(farm.layerlab().args(["quarantine", "list", "--json"]));
    assert!(listed.contains("the runtime has no licence"), "{listed}");
    let entries = Quarantine::in_folder(&farm.state()).list().expect("a file");
    assert_eq!(entries.len(), 1);
    succeed(farm.layerlab().args(["quarantine", "lift", "P1"]));
    let third = run(&farm.agent());
    assert!(third.status.success(), "{}", stderr(&third));
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_keeps_status_output_and_errors_apart_and_ends_in_time() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let fleet = Fleet::open(&farm.settings()).await;
    let found = fleet.find(&phone.address).await.expect("a phone");
    let phone = Phone::new(&found.server, &found.row).expect("it is ready");
    let output = phone
        .shell("cat; echo no >&2; exit 7", b"yes")
        .await
        .expect("a shell");
    assert_eq!((output.status, output.text().as_str()), (7, "yes"));
    assert_eq!(output.last_words(), "no");
    let deadline = Duration::from_millis(300);
    let error = phone
        .shell_within("sleep 60", b"", deadline)
        .await
        .expect_err("too long");
    assert!(matches!(error, AdbError::Deadline { .. }), "{error}");
    // What was given up keeps nothing busy.
    phone.identity().await.expect("a sign of life");
    let name = "/data/local/tmp/; $(reboot) ' \" \n";
    phone
        .push(
            &Content::new(HOSTILE.as_bytes()),
            name,
            0o640,
            Prover::Phone,
        )
        .await
        .expect("pushed");
    assert_eq!(phone.pull(name).await.expect("pulled"), HOSTILE.as_bytes());
}
