//! A lab of a user: its daemon, its commands, and what its store and its profiles say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use jiff::Timestamp;
use layerlab_lab::record::{Kept, Run, RunState};
use layerlab_lab::socket::ask;
use layerlab_lab::store::Reader;
use layerlab_lab::talk::{Answer, DeviceStatus, Request};
use layerlab_protocol::{Entry, Event, RunId};
use tempfile::TempDir;

use crate::farm::{Farm, end_server};
use crate::published::Published;
use crate::virtual_phone::VirtualPhone;
use crate::wait::wait_for;
use crate::{agent_program, layerlab, succeed};

/// The configuration of a lab whose `phones` all play the device of the file `device`. Their load and their storage are the
/// host's, and not asked for.
pub fn simulating(phones: &[VirtualPhone], device: &Path) -> String {
    let addresses: Vec<&str> = phones.iter().map(|phone| phone.address.as_str()).collect();
    let simulate: String = phones
        .iter()
        .map(|phone| format!("{:?} = {device:?}\n", phone.serial))
        .collect();
    format!(
        "[phones]\nadb-connect = {addresses:?}\n[phones.simulate]\n{simulate}[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\n"
    )
}

/// A user's lab: its folders, its configuration, and the variables that lead commands to it.
pub struct Lab {
    folder: TempDir,
    /// Where its state and its data are.
    disk: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Lab {
    /// A lab with this configuration, and without phones.
    pub fn new(configuration: &str) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("config.toml"), configuration).expect("room");
        let environment = vec![
            ("LAYERLAB_AGENT", agent_program().into()),
            ("LAYERLAB_ADB", "".into()),
        ];
        Lab {
            disk: folder.path().to_owned(),
            folder,
            environment,
        }
    }

    /// Keeps its state and its data on `disk`, but not its log.
    #[must_use]
    pub fn on(mut self, disk: &Path) -> Lab {
        disk.clone_into(&mut self.disk);
        self
    }

    /// Reaches the phones of `farm`.
    #[must_use]
    pub fn with_phones(mut self, farm: &Farm) -> Lab {
        let of_adb = |(name, _): &(&str, OsString)| name.starts_with("LAYERLAB_ADB");
        self.environment
            .extend(farm.environment().into_iter().filter(of_adb));
        self.environment
            .push(("LAYERLAB_AGENT", farm.agent().into()));
        self
    }

    /// Has its daemon log what this filter lets pass.
    #[must_use]
    pub fn logging(mut self, filter: &str) -> Lab {
        self.environment.push(("LAYERLAB_LOG", filter.into()));
        self
    }

    /// Gives phones this agent.
    #[must_use]
    pub fn with_agent(mut self, agent: &Path) -> Lab {
        self.environment.push(("LAYERLAB_AGENT", agent.into()));
        self
    }

    /// Sets a variable of its commands and of its daemon.
    #[must_use]
    pub fn with_variable(mut self, name: &'static str, value: OsString) -> Lab {
        self.environment.push((name, value));
        self
    }

    /// A file of its own.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its state folder.
    pub fn state(&self) -> PathBuf {
        self.disk.join("state")
    }

    /// The folder with its profiles and models.
    pub fn data(&self) -> PathBuf {
        self.disk.join("data")
    }

    fn layerlab(&self, arguments: &[&str]) -> Command {
        let mut command = layerlab();
        command.args(arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("LAYERLAB_STATE", self.state());
        command.env("LAYERLAB_DATA", self.data());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.layerlab(arguments).output().expect("layerlab runs")
    }

    /// Starts a command, whose output nobody reads.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.layerlab(arguments);
        command
            .stdout(Stdio::null())
            .spawn()
            .expect("layerlab runs")
    }

    /// Runs a command that must succeed.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts its daemon.
    pub fn daemon(&self) -> Daemon {
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

    /// Waits until something is so; a failure shows the daemon's log.
    #[track_caller]
    pub fn wait_for(&self, awaited: &str, has_come: impl FnMut() -> bool) {
        wait_for(awaited, has_come, || self.log());
    }

    /// Waits until the daemon answers.
    #[track_caller]
    pub fn wait_until_open(&self) {
        self.wait_for("a daemon that answers", || {
            self.state().join("lab/daemon.socket").exists()
                && self.run(&["job", "cancel", "999999"]).status.code() == Some(3)
        });
    }

    /// Waits until the daemon knows so many devices.
    #[track_caller]
    pub fn wait_for_devices(&self, count: usize) {
        self.wait_for(&format!("{count} devices"), || {
            self.kept().devices.len() >= count
        });
    }

    /// What the daemon says of its devices.
    pub fn devices(&self) -> Vec<DeviceStatus> {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        match runtime.block_on(ask(&self.state(), &Request::Status)) {
            Ok(Answer::Status(status)) => status.devices,
            other => panic!("{other:?}"),
        }
    }

    /// How many blocks have ended, as far as the store knows.
    pub fn blocks(&self) -> usize {
        let kept = self.kept();
        self.read(async |reader| {
            let mut blocks = 0;
            for run in kept.runs.values() {
                let entries = entries(&reader, &kept, run).await;
                let ended = |entry: &&Entry| matches!(entry.event, Event::BlockEnded { .. });
                blocks += entries.iter().filter(ended).count();
            }
            blocks
        })
    }

    /// How many runs are done, as far as the store knows.
    pub fn runs_done(&self) -> usize {
        let kept = self.kept();
        let runs = kept.runs.values();
        runs.filter(|run| run.state == RunState::Done).count()
    }

    /// What its daemons logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    /// Writes a job file and submits it.
    pub fn submit(&self, job: &str) -> String {
        let file = self.path("job.toml");
        std::fs::write(&file, job).expect("room");
        self.succeed(&["submit", file.to_str().expect("UTF-8")])
    }

    fn read<T>(&self, question: impl AsyncFnOnce(Reader) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let reader = Reader::open(&self.state().join("lab"))
                .await
                .expect("a store");
            question(reader).await
        })
    }

    /// What its store holds, journals apart.
    pub fn kept(&self) -> Kept {
        self.read(async |reader| reader.all().await.expect("all"))
    }

    /// Whether nothing is left to be done.
    pub fn is_over(&self) -> bool {
        self.kept().runs.values().all(|run| run.state.is_over())
    }

    /// All that has happened.
    pub fn events(&self) -> Vec<layerlab_lab::record::Event> {
        self.read(async |reader| {
            let all = reader.events(Timestamp::MIN, Timestamp::MAX).await;
            all.expect("events")
        })
    }

    /// The journal of a part of a run, as the store has it.
    pub fn journal(&self, run: i64, part: &str) -> Vec<Entry> {
        let kept = self.kept();
        self.read(async |reader| match kept.runs.get(&run) {
            Some(run) => entries_of(&reader, &kept, run, part).await,
            None => Vec::new(),
        })
    }

    /// The profiles by their place, without provenance.
    pub fn profiles(&self) -> BTreeMap<String, Published> {
        let mut all = BTreeMap::new();
        for run in self.kept().runs.values() {
            let Some(folder) = &run.profile else { continue };
            let place = folder
                .strip_prefix(self.data())
                .expect("in the data folder");
            all.insert(place.display().to_string(), Published::read(folder));
        }
        all
    }

    /// Every journal is whole: its entries are numbered from 1, without a gap, and the profile has its samples.
    pub fn check_journals(&self) {
        let kept = self.kept();
        self.read(async |reader| {
            for run in kept.runs.values().filter(|run| run.state == RunState::Done) {
                let entries = entries(&reader, &kept, run).await;
                let numbers: Vec<u64> = entries.iter().map(|entry| entry.sequence).collect();
                let expected: Vec<u64> = (1..=entries.len() as u64).collect();
                assert_eq!(numbers, expected, "run {}", run.number);
                let samples = entries
                    .iter()
                    .filter(|entry| matches!(entry.event, Event::Sample { .. }))
                    .count();
                let folder = run.profile.as_ref().expect("it is done");
                let rows = |name: &str| {
                    let text = std::fs::read_to_string(folder.join(name)).expect("a table");
                    text.lines().count() - 1
                };
                assert_eq!(
                    samples,
                    rows("samples.csv") + rows("rejected.csv") + rows("probes.csv"),
                    "run {}",
                    run.number
                );
            }
        });
    }
}

/// The journal of the times that a run measured, as the store has it.
async fn entries(reader: &Reader, kept: &Kept, run: &Run) -> Vec<Entry> {
    entries_of(reader, kept, run, "times").await
}

async fn entries_of(reader: &Reader, kept: &Kept, run: &Run, part: &str) -> Vec<Entry> {
    let id = format!("lab-{}-{}-{}-{part}", kept.lab, run.number, run.attempt);
    let id = RunId::new(id).expect("a name");
    reader.entries(&id).await.expect("a journal")
}

impl Drop for Lab {
    fn drop(&mut self) {
        end_server(&self.state());
    }
}

/// A daemon, killed when the test is over.
pub struct Daemon(Child);

impl Daemon {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it as a power cut would. It must not have ended by itself.
    pub fn kill(mut self) {
        let ended = self.has_ended();
        assert!(ended.is_none(), "{ended:?}");
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ran");
    }

    /// How it ended, if it has by itself.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("it was started")
    }

    /// How it ended, once it has by itself.
    pub fn ended(mut self) -> ExitStatus {
        self.0.wait().expect("it was started")
    }

    /// Has it stop between two blocks.
    pub fn stop(mut self) {
        let id = self.id().to_string();
        succeed(Command::new("kill").args(["-TERM", &id]));
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

/// Compares the named files of all profiles; all files if none are named.
pub fn same_profiles(one: &Lab, other: &Lab, names: &[&str]) {
    let (one, other) = (one.profiles(), other.profiles());
    assert!(!one.is_empty(), "there are no profiles");
    let places = |profiles: &BTreeMap<String, Published>| profiles.keys().cloned().collect();
    let (of_one, of_other): (Vec<_>, Vec<_>) = (places(&one), places(&other));
    assert_eq!(of_one, of_other);
    for (place, profile) in &one {
        let chosen = |profile: &Published| match names {
            [] => profile.clone(),
            names => profile.only(names),
        };
        let differences = chosen(profile).differences(&chosen(&other[place]));
        assert_eq!(differences, [""; 0], "in {place}");
    }
}
