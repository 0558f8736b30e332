//! The lab as a whole: the real daemon and its commands, killed, stopped and out of room. With phones where it says so:
//! the real adb server and the real adbd; skipped, with a sentence, where they cannot be had.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that is skipped says so, one that takes minutes its figures"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use layerlab::lab::record::{Kept, RunState};
use layerlab::lab::socket::ask;
use layerlab::lab::talk::{Answer, Request};
use layerlab::store::Reader;
use layerlab_protocol::RunId;
use layerlab_tests::farm::Farm;
use layerlab_tests::{agent_program, file, layerlab};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

/// The longest that anything here may take.
const DEADLINE: Duration = Duration::from_secs(1800);

/// A user's lab: its folders, its configuration, and the variables that lead commands to it.
struct Lab {
    folder: TempDir,
    environment: Vec<(String, std::ffi::OsString)>,
    /// The process whose mounts commands see; none: the test's own.
    inside: Option<u32>,
}

impl Lab {
    fn new(configuration: &str) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("config.toml"), configuration).expect("room");
        let environment = vec![
            ("LAYERLAB_STATE".to_owned(), path.join("state").into()),
            ("LAYERLAB_DATA".to_owned(), path.join("data").into()),
            ("LAYERLAB_AGENT".to_owned(), agent_program().into()),
            // No phones, unless a test says otherwise.
            ("LAYERLAB_ADB".to_owned(), "".into()),
        ];
        Lab {
            folder,
            environment,
            inside: None,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn layerlab(&self, arguments: &[&str]) -> Command {
        let mut command = match self.inside {
            None => layerlab(),
            Some(process) => {
                let mut command = Command::new("nsenter");
                command.args(["--user", "--mount", "--preserve-credentials", "--target"]);
                command
                    .arg(process.to_string())
                    .arg(layerlab().get_program());
                command
            }
        };
        command.args(arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.layerlab(arguments).output().expect("layerlab runs")
    }

    /// Runs a command that must succeed.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn daemon(&self) -> Daemon {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("daemon.log"))
            .expect("room");
        let config = self.path("config.toml");
        let mut command = self.layerlab(&["daemon", "--config"]);
        command.arg(config).stdout(Stdio::null()).stderr(log);
        Daemon(command.spawn().expect("a daemon"))
    }

    /// Waits until the daemon answers.
    fn wait_until_open(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.path("state/lab/daemon.socket").exists()
            || self.run(&["job", "cancel", "999999"]).status.code() != Some(3)
        {
            assert!(Instant::now() < end, "no daemon: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    /// Writes a job file and submits it.
    fn submit(&self, job: &str) -> String {
        let file = self.path("job.toml");
        std::fs::write(&file, job).expect("room");
        self.succeed(&["submit", file.to_str().expect("UTF-8")])
    }

    fn read<T>(&self, question: impl AsyncFnOnce(Reader) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let reader = Reader::open(&self.path("state/lab"))
                .await
                .expect("a store");
            question(reader).await
        })
    }

    fn kept(&self) -> Kept {
        self.read(async |reader| reader.all().await.expect("all"))
    }

    /// The profiles by their place, without provenance.
    fn profiles(&self) -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
        let mut all = BTreeMap::new();
        for run in self.kept().runs.values() {
            let Some(folder) = &run.profile else { continue };
            let place = folder
                .strip_prefix(self.path("data"))
                .expect("in the data folder");
            all.insert(place.display().to_string(), content(folder));
        }
        all
    }

    /// Every journal is whole: its entries are numbered from 1, without a gap, and the profile has its samples.
    fn check_journals(&self) {
        let kept = self.kept();
        self.read(async |reader| {
            for run in kept.runs.values().filter(|run| run.state == RunState::Done) {
                let id = format!("lab-{}-{}-{}-times", kept.lab, run.number, run.attempt);
                let id = RunId::new(id).expect("a name");
                let entries = reader.entries(&id).await.expect("a journal");
                let numbers: Vec<u64> = entries.iter().map(|entry| entry.sequence).collect();
                let expected: Vec<u64> = (1..=entries.len() as u64).collect();
                assert_eq!(numbers, expected, "run {}", run.number);
                let samples = entries
                    .iter()
                    .filter(|entry| matches!(entry.event, layerlab_protocol::Event::Sample { .. }))
                    .count();
                let folder = run.profile.as_ref().expect("it is done");
                let rows = |name: &str| {
                    let text = std::fs::read_to_string(folder.join(name)).expect("a table");
                    text.lines().count() - 1
                };
                assert_eq!(
                    samples,
                    rows("samples.csv") + rows("rejected.csv"),
                    "run {}",
                    run.number
                );
            }
        });
    }
}

/// A daemon, killed when the test is over.
struct Daemon(Child);

impl Daemon {
    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.0.id().to_string()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Kills it as a power cut would.
    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ran");
    }

    /// Has it stop between two blocks.
    fn stop(mut self) {
        self.signal("-TERM");
        let status = self.0.wait().expect("it ran");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A profile's files; of profile.json all but the provenance.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("a profile")
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let mut bytes = std::fs::read(&path).expect("a file");
            if name == "profile.json" {
                let mut json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                let had = json
                    .as_object_mut()
                    .expect("an object")
                    .remove("provenance");
                assert!(had.is_some(), "no provenance in {name}");
                bytes = json.to_string().into_bytes();
            }
            (name, bytes)
        })
        .collect();
    files.sort();
    files
}

fn job(model: &str, rest: &str) -> String {
    format!(
        "models = [{:?}]\n{rest}",
        file(&format!("models/{model}.onnx"))
    )
}

const SIMULATED: &str =
    "[phones]\nlocal = [\"mate10pro\", \"oneplus7\"]\n[gates]\nload-percent = 100\n";

const EACH: &str = "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\n";

#[test]
fn a_job_gives_the_profiles_that_the_command_gives() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let said = lab.submit(&job("alexnet", EACH));
    assert!(said.contains("Job 1"), "{said}");
    lab.succeed(&["job", "wait", "1", "--timeout", "5m"]);
    let profiles = lab.profiles();
    assert_eq!(profiles.len(), 2, "{:?}", profiles.keys());
    lab.check_journals();
    for (number, device) in ["mate10pro", "oneplus7"].iter().enumerate() {
        let out = lab.path(device);
        let model = file("models/alexnet.onnx");
        lab.succeed(&[
            "profile",
            "--device",
            device,
            "--model",
            model.to_str().expect("UTF-8"),
            "--design",
            "local",
            "--out",
            out.to_str().expect("UTF-8"),
        ]);
        let of_lab = &profiles[&format!("profiles/{device}/alexnet/run-{}", number + 1)];
        assert!(*of_lab == content(&out), "the profiles of {device} differ");
    }
    let report = lab.succeed(&["report"]);
    assert!(report.starts_with("2 of 2 profiles published"), "{report}");
    // The same again is recognised.
    let again = lab.succeed(&["submit", lab.path("job.toml").to_str().expect("UTF-8")]);
    assert!(again.contains("Job 1 asks for the same"), "{again}");
    assert_eq!(lab.kept().jobs.len(), 1);
}

#[test]
fn a_second_daemon_is_refused() {
    let lab = Lab::new(SIMULATED);
    let first = lab.daemon();
    lab.wait_until_open();
    let config = lab.path("config.toml");
    let second = lab.run(&["daemon", "--config", config.to_str().expect("UTF-8")]);
    assert_eq!(second.status.code(), Some(4));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let process = format!("(process {})", first.0.id());
    assert!(said.contains(&process), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // The first one is none the worse for it.
    lab.submit(&job("alexnet", EACH));
    lab.succeed(&["job", "wait", "1", "--timeout", "5m"]);
}

#[test]
fn without_a_daemon_commands_say_so() {
    let lab = Lab::new(SIMULATED);
    let file = lab.path("job.toml");
    std::fs::write(&file, job("alexnet", EACH)).expect("room");
    let output = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("layerlab daemon"), "{said}");
    assert!(lab.succeed(&["jobs"]).contains("No jobs"));
}

/// Many samples, so that runs take a while.
const LONG: &str =
    "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 400\n";

/// What was derived. A local agent ends with the daemon, and the clock of a simulated device begins anew with it: when
/// samples were taken differs.
const DERIVED: [&str; 4] = ["layers.csv", "times.csv", "cuts.csv", "segments.csv"];

#[test]
fn a_daemon_that_is_stopped_and_started_goes_on() {
    let noisy = file("devices/noisy.toml");
    let configuration = format!("[phones]\nlocal = [{noisy:?}]\n");
    let undisturbed = Lab::new(&configuration);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", LONG));
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "10m"]);
    daemon.stop();

    let lab = Lab::new(&configuration);
    let mut daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", LONG));
    let mut stops = 0;
    let end = Instant::now() + DEADLINE;
    while !is_over(&lab) {
        assert!(Instant::now() < end, "{}", lab.log());
        daemon.stop();
        stops += 1;
        daemon = lab.daemon();
        lab.wait_until_open();
    }
    assert!(stops > 2, "it was over after {stops} stops");
    lab.check_journals();
    same_profiles(&lab, &undisturbed, &DERIVED);
}

fn is_over(lab: &Lab) -> bool {
    lab.kept().runs.values().all(|run| run.state.is_over())
}

/// Compares the named files of all profiles; all files if none are named.
fn same_profiles(one: &Lab, other: &Lab, names: &[&str]) {
    let (one, other) = (one.profiles(), other.profiles());
    assert!(
        one.keys().eq(other.keys()),
        "{:?}\n{:?}",
        one.keys(),
        other.keys()
    );
    for (place, files) in &one {
        let wanted =
            |file: &&(String, Vec<u8>)| names.is_empty() || names.contains(&file.0.as_str());
        assert!(files.iter().filter(wanted).count() >= names.len().max(1));
        for (file, of_other) in files
            .iter()
            .zip(&other[place])
            .filter(|(file, _)| wanted(file))
        {
            assert!(file == of_other, "{} of {place} differs", file.0);
        }
    }
}

#[test]
#[ignore = "takes ten minutes"]
fn a_daemon_that_is_killed_a_hundred_times_loses_nothing() {
    let kills: usize = match std::env::var("LAYERLAB_KILLS") {
        Ok(kills) => kills.parse().expect("a number"),
        Err(_) => 100,
    };
    let Some(farm) = Farm::new() else { return };
    let phones: Vec<_> = (1..=4)
        .map(|number| farm.phone(&format!("P{number}")))
        .collect();
    let addresses: Vec<&str> = phones.iter().map(|phone| phone.address.as_str()).collect();
    let simulate: String = addresses
        .iter()
        .map(|address| format!("{address:?} = {:?}\n", file("devices/noisy.toml")))
        .collect();
    let configuration = format!(
        "[phones]\nadb-connect = {addresses:?}\n[phones.simulate]\n{simulate}[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\n"
    );
    // Each lab has agents of its own on the phones, whose clocks begin anew.
    let lab_of = |state: &str| {
        let mut lab = Lab::new(&configuration);
        for (name, value) in farm.environment() {
            if name.starts_with("LAYERLAB_ADB") {
                lab.environment.push((name.to_owned(), value));
            }
        }
        lab.environment
            .push(("LAYERLAB_AGENT".to_owned(), farm.agent().into()));
        println!("{state}: {}", lab.folder.path().display());
        lab
    };
    let job = job(
        "alexnet",
        &format!(
            "repeats = {}\n[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 3000\n",
            kills.div_ceil(6)
        ),
    );
    let submit = |lab: &Lab| {
        lab.wait_until_open();
        let end = Instant::now() + DEADLINE;
        while lab.kept().devices.len() < phones.len() {
            assert!(Instant::now() < end, "{}", lab.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        lab.submit(&job);
    };

    let lab = lab_of("disturbed");
    let mut daemon = lab.daemon();
    submit(&lab);
    let mut random = ChaCha8Rng::seed_from_u64(100);
    let began = Timestamp::now();
    let mut killed = 0;
    while killed < kills && !is_over(&lab) {
        std::thread::sleep(Duration::from_millis(random.random_range(200..6_000)));
        daemon.kill();
        killed += 1;
        daemon = lab.daemon();
    }
    println!(
        "killed {killed} times in {:.0}",
        Timestamp::now().duration_since(began)
    );
    assert_eq!(killed, kills, "the job was over too soon");
    lab.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    assert_eq!(
        lab.kept().runs.values().map(|run| run.attempt).max(),
        Some(1)
    );
    lab.check_journals();

    let undisturbed = lab_of("undisturbed");
    let daemon = undisturbed.daemon();
    submit(&undisturbed);
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    let spent: Vec<_> = undisturbed
        .kept()
        .runs
        .values()
        .map(|run| run.spent)
        .collect();
    let (wall, busy): (u64, u64) = spent.iter().fold((0, 0), |(wall, busy), spent| {
        (wall + spent.wall_ms, busy + spent.busy_ms)
    });
    println!(
        "undisturbed: {wall} ms on phones, busy {:.1} %",
        100.0 * busy as f64 / wall as f64
    );
    same_profiles(&lab, &undisturbed, &[]);
}

#[test]
fn a_disk_that_fills_up_and_is_freed_loses_nothing() {
    let undisturbed = Lab::new(SIMULATED);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", LONG));
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "10m"]);
    daemon.stop();

    let mut lab = Lab::new(SIMULATED);
    // A disk that only the daemon and its children see; the test reaches it through them.
    std::fs::create_dir(lab.path("state")).expect("room");
    let script =
        "mount -t tmpfs -o size=48m none \"$STATE\" && mkdir \"$STATE/data\" && exec \"$@\"";
    let namespace = [
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ];
    let possible = Command::new("unshare")
        .args(namespace)
        .arg("true")
        .env("STATE", lab.path("state"))
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no mount namespace here");
        return;
    }
    let state = lab.path("state");
    lab.environment.retain(|(name, _)| name != "LAYERLAB_DATA");
    lab.environment
        .push(("LAYERLAB_DATA".to_owned(), state.join("data").into()));
    let mut command = Command::new("unshare");
    command.args(namespace).arg(layerlab().get_program());
    command
        .args(["daemon", "--config"])
        .arg(lab.path("config.toml"));
    command
        .envs(lab.environment.iter().map(|(name, value)| (name, value)))
        .env("STATE", &state);
    let log = std::fs::File::create(lab.path("daemon.log")).expect("room");
    let daemon = Daemon(
        command
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a daemon"),
    );
    // Without links: SQLite would follow them out of the daemon's disk.
    let inside = PathBuf::from(format!("/proc/{}/root", daemon.0.id()));
    let inside = inside.join(state.strip_prefix("/").expect("absolute"));
    lab.inside = Some(daemon.0.id());
    let end = Instant::now() + DEADLINE;
    while !inside.join("lab/daemon.socket").exists() {
        assert!(Instant::now() < end, "{}", lab.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.submit(&job("alexnet", LONG));
    // The agents have what they need, and measure.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let progress = || match runtime.block_on(ask(&inside, &Request::Status)) {
        Ok(Answer::Status(status)) => status
            .devices
            .iter()
            .filter(|one| one.progress.is_some_and(|(done, _)| done > 0))
            .count(),
        other => panic!("{other:?}"),
    };
    while progress() < 2 {
        assert!(Instant::now() < end, "{}", lab.log());
    }
    for _ in 0..3 {
        let filler = inside.join("filler");
        fill(&filler);
        // An agent may find out first, and wait; then the lab has nothing to write.
        let noticed = lab.log().matches("make room").count();
        let patience = Instant::now() + Duration::from_secs(5);
        while lab.log().matches("make room").count() == noticed && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_file(&filler).expect("it is there");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(
        lab.log().contains("make room"),
        "it never noticed: {}",
        lab.log()
    );
    lab.succeed(&["job", "wait", "1", "--timeout", "10m"]);
    for (place, files) in undisturbed.profiles() {
        let folder = inside.join("data").join(&place);
        assert!(content(&folder) == files, "{place} differs");
    }
    daemon.stop();
}

/// Takes all the room that there is.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a name takes no room");
    let chunk = vec![0; 1 << 16];
    while file.write_all(&chunk).is_ok() {}
    while file.write_all(&chunk[..512]).is_ok() {}
}
