//! The options that say how phones are reached and what this machine has, and the device that `--device` means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::runtimes::RuntimeArgs;
use layerlab_farm::adb::{AdbError, Address, Content, Fleet, Settings};
use layerlab_farm::agents::Agents;
use layerlab_farm::discovery::{self, BUILT_IN, Choice, UnknownDevice};
use layerlab_farm::folders::Folders;
use layerlab_farm::local::LocalLink;
use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::provision::{DEFAULT_CACHE_BYTES, Provision};
use layerlab_farm::{AdbLink, Policy};
use layerlab_farm::{Connection, Link, LinkError};
use layerlab_lab::config::Phones;
use layerlab_profiles::document;

#[derive(clap::Args)]
#[command(next_help_heading = "Phones")]
pub(super) struct AdbArgs {
    /// The adb program [default: the one in PATH, or in ANDROID_HOME]; an empty name: use none
    #[arg(long, env = "LAYERLAB_ADB", value_name = "FILE", hide_env = true)]
    adb: Option<OsString>,
    /// Use this adb server instead of one of our own; for several hosts, name several
    #[arg(
        long = "adb-server",
        env = "LAYERLAB_ADB_SERVER",
        value_delimiter = ',',
        value_name = "HOST:PORT",
        hide_env = true
    )]
    servers: Vec<Address>,
    /// Reach phones without an adb server or program, over USB and the network; done anyway where there is no adb program
    #[arg(
        long,
        env = "LAYERLAB_DIRECT",
        hide_env = true,
        value_parser = clap::builder::FalseyValueParser::new(),
        conflicts_with = "servers"
    )]
    direct: bool,
    /// Connect to the phone at this network address; may be given several times
    #[arg(
        long = "adb-connect",
        env = "LAYERLAB_ADB_CONNECT",
        value_delimiter = ',',
        value_name = "HOST:PORT",
        hide_env = true
    )]
    phones: Vec<Address>,
    #[command(flatten)]
    pub(super) host: RuntimeArgs,
}

/// Said once where nobody asked for it.
pub(super) const BY_ITSELF: &str =
    "there is no adb program, so phones are reached without one (as with --direct)";

/// What a command is told that measures on phones or looks at them: its own options, and how phones are reached.
#[derive(clap::Args)]
pub(super) struct WithPhones<T: clap::Args> {
    #[command(flatten)]
    pub(super) args: T,
    #[command(flatten)]
    pub(super) adb: AdbArgs,
}

impl AdbArgs {
    /// The network addresses at which there should be phones.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.phones.iter().map(ToString::to_string).collect()
    }

    fn settings(&self, folders: &Folders) -> Settings {
        Settings {
            program: self.adb.clone().map(PathBuf::from),
            servers: self.servers.clone(),
            phones: self.phones.clone(),
            direct: self.direct,
            layerlab: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("layerlab")),
            state: folders.state.clone(),
        }
    }

    /// The same, with what the configuration says where the command line says nothing. Phones are added up.
    pub(super) fn settings_over(&self, phones: &Phones, folders: &Folders) -> Settings {
        let mut settings = self.settings(folders);
        if settings.servers.is_empty() && !settings.direct {
            settings.servers.clone_from(&phones.adb_servers);
            settings.direct = phones.direct;
        }
        settings.phones.extend(phones.adb_connect.iter().cloned());
        settings
    }

    /// All servers, ours started if it must be.
    pub(super) async fn fleet(&self, folders: &Folders) -> Fleet {
        let fleet = Fleet::open(&self.settings(folders)).await;
        if fleet.direct_by_itself {
            output::note(format_args!("layerlab: {BY_ITSELF}"));
        }
        fleet
    }
}

/// What `profile` may say about a phone.
#[derive(clap::Args)]
#[command(next_help_heading = "Phones")]
pub(super) struct PhoneArgs {
    /// Have the phone's agent play this simulated device: a name that comes with layerlab, or a file
    #[arg(long, value_name = "DEVICE")]
    simulate: Option<String>,
    /// How long to wait for a phone that is unplugged, for its owner to accept its prompt, or for it to be fit to be
    /// measured
    #[arg(long, default_value = "10m", value_name = "DURATION")]
    pub(super) patience: humantime::Duration,
    /// Do not boot a phone anew that nothing else helps
    #[arg(long)]
    no_reboot: bool,
}

impl PhoneArgs {
    /// How long to wait for a phone that is not ready.
    pub(super) fn patience(&self) -> humantime::Duration {
        self.patience
    }
}

/// The link to a device of either kind.
pub(super) enum Opened {
    Local(Box<LocalLink>),
    Adb(Box<AdbLink>),
}

impl Link for Opened {
    fn kind(&self) -> &'static str {
        match self {
            Opened::Local(link) => link.kind(),
            Opened::Adb(link) => link.kind(),
        }
    }

    fn described(&self) -> Option<document::Phone> {
        match self {
            Opened::Local(link) => link.described(),
            Opened::Adb(link) => link.described(),
        }
    }

    async fn push_file(&self, sha256: &str, onnx: &[u8]) -> Result<(), LinkError> {
        match self {
            Opened::Local(link) => link.push_file(sha256, onnx).await,
            Opened::Adb(link) => link.push_file(sha256, onnx).await,
        }
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        match self {
            Opened::Local(link) => link.connect().await,
            Opened::Adb(link) => link.connect().await,
        }
    }
}

/// Opens the device called `name`: this host, a simulated one, or a phone.
pub(super) async fn open(
    name: &str,
    agent: PathBuf,
    adb: &AdbArgs,
    phone: &PhoneArgs,
) -> Result<Opened, Failure> {
    let unknown = match discovery::choose(name) {
        Ok(choice) if phone.simulate.is_some() => {
            let error = anyhow::anyhow!(
                "--simulate is for phones, and {} is none; give the simulated device to --device",
                choice.name()
            );
            return Err(Failure::new(Code::Usage, error));
        }
        Ok(choice) => {
            let link = LocalLink::new(agent, choice).exit_with(Code::Output)?;
            return Ok(Opened::Local(Box::new(
                link.with_runtimes(adb.host.settings()),
            )));
        }
        Err(unknown) => unknown,
    };
    let simulate = match &phone.simulate {
        Some(device) => Some(simulated(device)?),
        None => None,
    };
    let policy = Policy {
        patience: phone.patience.into(),
        may_reboot: !phone.no_reboot,
        ..Policy::default()
    };
    open_phone(name, agent, adb, simulate, policy, unknown)
        .await
        .map(|link| Opened::Adb(Box::new(link)))
}

/// Opens the phone called `name`, of which the link to a server is to be measured.
pub(super) async fn open_real_phone(
    name: &str,
    agent: PathBuf,
    adb: &AdbArgs,
    policy: Policy,
) -> Result<AdbLink, Failure> {
    match discovery::choose(name) {
        Ok(choice) => {
            let error = anyhow::anyhow!(
                "{} is no phone and has no link of its own: give --device a phone, or leave it out to measure from this \
                 machine",
                choice.name()
            );
            Err(Failure::new(Code::Usage, error))
        }
        Err(unknown) => open_phone(name, agent, adb, None, policy, unknown).await,
    }
}

async fn open_phone(
    name: &str,
    agent: PathBuf,
    adb: &AdbArgs,
    simulate: Option<Content<'static>>,
    policy: Policy,
    unknown: UnknownDevice,
) -> Result<AdbLink, Failure> {
    let folders = Folders::of_this_user();
    let mut fleet = adb.fleet(&folders).await;
    let found = match fleet.find(name).await {
        Ok(found) => found,
        Err(AdbError::Absent { .. }) => match fleet.problems.pop() {
            None => return Err(Failure::new(Code::Input, unknown)),
            Some(problem) => return Err(Failure::new(Code::Device, problem)),
        },
        Err(error) => return Err(Failure::new(Code::Device, error)),
    };
    let provision = provision(&folders, agent, simulate);
    AdbLink::open(
        found.route,
        &found.row.serial,
        provision,
        policy,
        &folders.state,
    )
    .await
    .exit_with(Code::Device)
}

/// What makes this user's phones ready.
pub(super) fn provision(
    folders: &Folders,
    agent: PathBuf,
    simulate: Option<Content<'static>>,
) -> Provision {
    Provision {
        agents: Agents {
            folder: folders.data.join("agents"),
            of_host: agent,
        },
        simulate,
        runtimes: PhoneRuntimes::in_folder(&folders.data),
        cache_bytes: DEFAULT_CACHE_BYTES,
        lab: None,
    }
}

/// The file of a simulated device, unread: only the agent knows what is in it.
fn simulated(device: &str) -> Result<Content<'static>, Failure> {
    match discovery::choose(device).exit_with(Code::Input)? {
        Choice::BuiltIn(_, toml) => Ok(Content::new(toml.as_bytes())),
        Choice::File(path) => read(&path),
        Choice::Host => {
            let names = BUILT_IN.map(|device| device.name).join(", ");
            let error =
                anyhow::anyhow!("`host` is no simulated device; name a file, or one of {names}");
            Err(Failure::new(Code::Input, error))
        }
    }
}

fn read(path: &Path) -> Result<Content<'static>, Failure> {
    Content::file(path).map_err(|error| {
        let error = anyhow::anyhow!("cannot read the device file {}: {error}", path.display());
        Failure::new(Code::Input, error)
    })
}
