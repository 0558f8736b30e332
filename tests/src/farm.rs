//! A lab of a test's own: an adb server, state and data folders, and virtual phones.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use layerlab_farm::adb::{Content, Fleet, Phone, Settings, quote};
use layerlab_farm::agents::Agents;
use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::provision::{DEFAULT_CACHE_BYTES, Provision};
use layerlab_farm::{AdbLink, Policy};
use tempfile::TempDir;

use crate::virtual_phone::{VirtualPhone, adb};
use crate::{agent_program, binaries, layerlab};

/// The load and the storage of virtual phones are this machine's, and their screens are on unless a test darkens them.
const GATES: &str =
    "[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\nscreen-off = false\npoll = \"1s\"\n";

/// A test's own lab: a folder for layerlab's state, with an adb server of its own.
pub struct Farm {
    folder: TempDir,
    adb: PathBuf,
}

impl Farm {
    /// A lab without phones; `None` where virtual phones cannot be had: the test is then skipped.
    #[track_caller]
    pub fn new() -> Option<Farm> {
        let folder = tempfile::tempdir().expect("a folder");
        let adb = own_adb(adb()?, folder.path());
        let config = folder.path().join("config/layerlab");
        std::fs::create_dir_all(&config).expect("room");
        std::fs::write(config.join("config.toml"), GATES).expect("room");
        Some(Farm { folder, adb })
    }

    /// A place for files of this test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Layerlab's state folder.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Switches a phone on.
    pub fn phone(&self, serial: &str) -> VirtualPhone {
        VirtualPhone::start(&self.path(&format!("phone-{serial}")), serial)
    }

    /// What makes layerlab's library use this lab.
    pub fn settings(&self) -> Settings {
        Settings {
            program: Some(self.adb.clone()),
            servers: Vec::new(),
            phones: Vec::new(),
            direct: false,
            layerlab: binaries().join("layerlab"),
            state: self.state(),
        }
    }

    /// What makes layerlab's library reach phones without an adb server.
    pub fn direct_settings(&self) -> Settings {
        Settings {
            program: Some(PathBuf::new()),
            direct: true,
            ..self.settings()
        }
    }

    /// The variables that make layerlab use this lab.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LAYERLAB_ADB", self.adb.clone().into()),
            ("LAYERLAB_STATE", self.state().into()),
            ("LAYERLAB_DATA", self.path("data").into()),
            ("XDG_CONFIG_HOME", self.path("config").into()),
        ]
    }

    /// The `layerlab` command in this lab.
    pub fn layerlab(&self) -> Command {
        let mut command = layerlab();
        command.envs(self.environment());
        command.env("LAYERLAB_AGENT", self.agent());
        command
    }

    /// The agent without what only debuggers need: it is pushed often.
    pub fn agent(&self) -> PathBuf {
        stripped_agent()
    }

    /// The adb command with this lab's server, as another client of it.
    pub fn adb(&self) -> Command {
        self.adb_in(&self.state())
    }

    /// The adb command with the server that layerlab started with this state folder.
    pub fn adb_in(&self, state: &Path) -> Command {
        let mut command = Command::new(&self.adb);
        let socket = server_file(state, "socket");
        command.args(["-L", &format!("localfilesystem:{}", socket.display())]);
        command
    }

    /// The socket of the adb server.
    pub fn socket(&self) -> PathBuf {
        server_file(&self.state(), "socket")
    }

    /// What makes a phone ready that plays the device with this text.
    pub fn provision(&self, device: &str) -> Provision {
        Provision {
            agents: Agents {
                folder: self.path("data/agents"),
                of_host: self.agent(),
            },
            simulate: Some(Content::new(device.as_bytes().to_vec())),
            runtimes: PhoneRuntimes::default(),
            cache_bytes: DEFAULT_CACHE_BYTES,
            lab: None,
        }
    }

    /// A link to a phone, made ready by `provision`.
    pub async fn link(&self, phone: &VirtualPhone, provision: Provision) -> AdbLink {
        self.link_by(&self.settings(), phone, provision).await
    }

    /// The same without an adb server.
    pub async fn link_directly(&self, phone: &VirtualPhone, provision: Provision) -> AdbLink {
        let settings = self.direct_settings();
        self.link_by(&settings, phone, provision).await
    }

    async fn link_by(
        &self,
        settings: &Settings,
        phone: &VirtualPhone,
        provision: Provision,
    ) -> AdbLink {
        let fleet = Fleet::open(settings).await;
        let found = fleet.find(&phone.address).await.expect("a phone");
        let (policy, state) = (Policy::default(), self.state());
        let link = AdbLink::open(found.route, &phone.address, provision, policy, &state);
        link.await.expect("a phone that works")
    }

    /// A phone as the server knows it.
    pub async fn connect(&self, phone: &VirtualPhone) -> Phone {
        connect(&self.settings(), phone).await
    }

    /// A phone that is reached without a server.
    pub async fn connect_directly(&self, phone: &VirtualPhone) -> Phone {
        connect(&self.direct_settings(), phone).await
    }

    /// The process id of the adb server.
    pub fn server_process(&self) -> String {
        let file = server_file(&self.state(), "pid");
        std::fs::read_to_string(file).expect("layerlab started the server")
    }

    /// Sends `signal` to the adb server.
    pub fn signal_server(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.server_process()])
            .status();
        assert!(status.expect("kill runs").success());
    }
}

async fn connect(settings: &Settings, phone: &VirtualPhone) -> Phone {
    let fleet = Fleet::open(settings).await;
    let found = fleet.find(&phone.address).await.expect("a phone");
    Phone::new(&found.route, &found.row).expect("it is ready")
}

impl Drop for Farm {
    fn drop(&mut self) {
        end_server(&self.state());
    }
}

/// Ends the adb server that was started with this state folder.
pub(crate) fn end_server(state: &Path) {
    if let Ok(process) = std::fs::read_to_string(server_file(state, "pid")) {
        // It may be gone already, which is what is wanted.
        let _ = Command::new("kill")
            .args(["-KILL", &process])
            .stderr(Stdio::null())
            .status();
    }
}

fn server_file(state: &Path, extension: &str) -> PathBuf {
    state.join("adb/server").with_extension(extension)
}

/// An adb program whose server keeps its key and its notes in `folder` instead of the user's home, and
/// looks for no emulators: it would find other people's.
fn own_adb(adb: &Path, folder: &Path) -> PathBuf {
    let script = folder.join("adb");
    let text = format!(
        "#!/bin/sh\nexport HOME={} ADB_LOCAL_TRANSPORT_MAX_PORT=5553\nexec {} \"$@\"\n",
        quote(&folder.to_string_lossy()),
        quote(&adb.to_string_lossy()),
    );
    std::fs::write(&script, text).expect("room");
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("our own file");
    script
}

/// Made once for all tests, and anew when the agent is.
fn stripped_agent() -> PathBuf {
    let agent = agent_program();
    let stripped = agent.with_extension("stripped");
    let changed = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified());
    if changed(&stripped).is_ok_and(|then| changed(&agent).is_ok_and(|agent| then >= agent)) {
        return stripped;
    }
    // Under another name first: other tests do the same at the same time.
    let own = TempDir::new_in(binaries()).expect("room");
    let partial = own.path().join("agent");
    let mut strip = Command::new("strip");
    let done = strip.arg("-o").arg(&partial).arg(&agent).status();
    if !done.is_ok_and(|status| status.success()) {
        std::fs::copy(&agent, &partial).expect("room");
    }
    std::fs::rename(&partial, &stripped).expect("the same folder");
    stripped
}
