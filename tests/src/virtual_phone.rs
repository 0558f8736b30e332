//! Virtual phones: the real adbd in a sandbox (see `virtual-phone/README.md`). Where its tools cannot
//! be had, tests are skipped, and fail in CI.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::file;
use crate::skip::skip;

/// The exit status of scripts that lack a tool.
const UNAVAILABLE: i32 = 69;

/// The adb program that belongs to the virtual phones' adbd; `None` where there is none: the test is then skipped.
#[track_caller]
pub fn adb() -> Option<&'static Path> {
    static ADB: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = ADB.get_or_init(|| {
        let output = run(Command::new(file("virtual-phone/tools")));
        if output.status.code() == Some(UNAVAILABLE) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{said} (tests/virtual-phone/README.md says more)"));
        }
        Ok(PathBuf::from(value(&succeeded(output), "adb")))
    });
    match found {
        Ok(adb) => Some(adb),
        Err(remedy) => {
            skip("virtual phones", remedy);
            None
        }
    }
}

/// A phone that is on. It goes off with this value.
pub struct VirtualPhone {
    folder: PathBuf,
    /// Its network address.
    pub address: String,
    /// What it calls itself.
    pub serial: String,
}

impl VirtualPhone {
    /// Switches the phone that lives in `folder` on.
    pub fn start(folder: &Path, serial: &str) -> VirtualPhone {
        VirtualPhone::start_with(folder, serial, &[])
    }

    /// Switches it on with further options of `virtual-phone start`.
    pub fn start_with(folder: &Path, serial: &str, options: &[&str]) -> VirtualPhone {
        let mut command = script("start");
        let owner = std::process::id().to_string();
        command
            .arg("--dir")
            .arg(folder)
            .args(["--serial", serial, "--owner", &owner]);
        let text = succeeded(run_command(command.args(options)));
        VirtualPhone {
            folder: folder.to_owned(),
            address: value(&text, "address"),
            serial: serial.to_owned(),
        }
    }

    /// Its TCP port.
    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }

    /// What is stored on it: its `/data/local/tmp`.
    pub fn storage(&self) -> PathBuf {
        self.folder.join("storage")
    }

    /// Pulls its cable: everything on it runs on.
    pub fn unplug(&self) {
        self.act("unplug", &[]);
    }

    /// Plugs it in again. Its adbd listens when this returns.
    pub fn plug(&self) {
        self.act("plug", &[]);
    }

    /// Kills its adbd, which starts again by itself. It listens again when this returns.
    pub fn crash_adbd(&self) {
        self.act("crash", &[]);
    }

    /// Has its adbd listen on another port, as wireless debugging does now and then. It listens when this returns.
    pub fn change_address(&mut self) {
        self.address = value(&self.act("move", &[]), "address");
    }

    /// Boots it anew. It is back when this returns.
    pub fn reboot(&self) {
        self.act("reboot", &[]);
    }

    /// Switches it off.
    pub fn stop(&self) {
        self.act("stop", &[]);
    }

    /// Changes its state.
    pub fn set(&self, key: &str, value: &str) {
        self.act("set", &[key, value]);
    }

    /// Its whole state, by key.
    pub fn state(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.folder.join("state")).expect("a phone's folder");
        let paths = files.map(|file| file.expect("a file").path());
        let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
        let keys = paths.filter_map(|path| Some((name(&path)?, path)));
        // What begins with a dot is a value that is being written.
        let keys = keys.filter(|(key, _)| !key.starts_with('.'));
        let read = |path| std::fs::read_to_string(path).expect("a value");
        keys.map(|(key, path)| (key, read(path))).collect()
    }

    /// One of the values of `virtual-phone status`.
    pub fn status(&self, key: &str) -> String {
        value(&self.act("status", &[]), key)
    }

    fn act(&self, what: &str, arguments: &[&str]) -> String {
        let mut command = script(what);
        succeeded(run_command(command.arg(&self.folder).args(arguments)))
    }
}

impl Drop for VirtualPhone {
    fn drop(&mut self) {
        // It goes off with this process in any case.
        let _ = script("stop").arg(&self.folder).output();
    }
}

fn script(what: &str) -> Command {
    let mut command = Command::new(file("virtual-phone/virtual-phone"));
    command.arg(what);
    command
}

fn run(mut command: Command) -> Output {
    run_command(&mut command)
}

fn run_command(command: &mut Command) -> Output {
    command.output().expect("bash runs")
}

#[track_caller]
fn succeeded(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "virtual phone: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The value of `key` in `key=value` lines.
fn value(text: &str, key: &str) -> String {
    let of_key = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    text.lines()
        .find_map(of_key)
        .unwrap_or_else(|| panic!("no {key} in:\n{text}"))
}
