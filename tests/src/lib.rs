//! What the whole-system tests share: the real binaries, and the files they are fed.

pub mod browser;
pub mod certificate;
pub mod door;
pub mod elsewhere;
pub mod farm;
pub mod fleet;
pub mod fuzz;
pub mod gate;
pub mod interposer;
pub mod lab;
pub mod library_file;
pub mod postgres;
pub mod process_usage;
pub mod proof;
pub mod published;
pub mod run;
pub mod s3_folder_server;
pub mod s3_server;
pub mod scenes;
pub mod skip;
pub mod small_disk;
pub mod virtual_phone;
pub mod wait;
pub mod watch;
pub mod watched;
pub mod web;
pub mod web_lab;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
}

/// A file below `tests/`.
pub fn file(path: &str) -> PathBuf {
    root().join("tests").join(path)
}

/// One of the models in `tests/models`.
pub fn model(name: &str) -> PathBuf {
    file(&format!("models/{name}.onnx"))
}

/// One of the device files in `tests/devices`.
pub fn device(name: &str) -> PathBuf {
    file(&format!("devices/{name}.toml"))
}

/// The text of a device file of which inferences take as long as they are said to.
pub fn in_real_time(name: &str) -> String {
    let text = std::fs::read_to_string(device(name)).expect("a device");
    let real = text.replace("clock = \"exact\"", "clock = \"real\"");
    assert_ne!(real, text, "{name} has no exact clock");
    real
}

/// The folder of the freshly built binaries.
pub fn binaries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        // All of them, as `make` does: for two crates alone dependencies have other features, and are built anew.
        cargo.args(["build", "--quiet", "--workspace", "--bins"]);
        // Build scripts that ask for their package's name or folder run again where it is another (ring's), and all that
        // depends on them is built anew: what cargo tells this program about its own package is not for another cargo.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&*name);
            }
        }
        let status = cargo.current_dir(root()).status().expect("cargo runs");
        assert!(status.success(), "the programs do not build");
        // target/debug/deps/this-test or target/debug/this-program → target/debug
        let this = std::env::current_exe().expect("this program's own path");
        let mut folders = this.ancestors().skip(1);
        let built = folders.find(|folder| !folder.ends_with("deps"));
        built.expect("target/debug").to_owned()
    })
}

/// What tells layerlab of runtimes. Where `make npu-test` names some, only the tests that ask for them are to have them.
const RUNTIMES: [&str; 4] = [
    "LAYERLAB_ONNXRUNTIME",
    "LAYERLAB_QNN",
    "LAYERLAB_EMULATE",
    "LAYERLAB_AS_ACCELERATOR",
];

/// The `layerlab` command, which sees no phones and no runtimes beside its own: those of the machine's owner are not for
/// tests.
pub fn layerlab() -> Command {
    let mut command = Command::new(binaries().join("layerlab"));
    command.env("LAYERLAB_ADB", "");
    // Not what the user's own plans have learnt.
    command.env("LAYERLAB_CACHE", binaries().join("test-cache"));
    for name in RUNTIMES {
        command.env_remove(name);
    }
    // No lab elsewhere that the machine's owner asks.
    for name in ["LAYERLAB_LAB", "LAYERLAB_TOKEN", "LAYERLAB_CA"] {
        command.env_remove(name);
    }
    command
}

/// Has `command` profile a model on a device by the papers' segments, with so many samples of each.
pub fn profile<'a>(
    command: &'a mut Command,
    samples: u32,
    model: impl AsRef<OsStr>,
    device: impl AsRef<OsStr>,
    out: &Path,
) -> &'a mut Command {
    command.args(["profile", "--design", "prefix-suffix", "--samples"]);
    command.arg(samples.to_string());
    command.arg("--model").arg(model);
    command.arg("--device").arg(device);
    command.arg("--out").arg(out)
}

/// As many samples of each segment as have an interval.
pub const FEW: u32 = 6;

/// The agent's program.
pub fn agent_program() -> PathBuf {
    binaries().join("layerlab-agent")
}

/// Runs `command` to its end.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

/// What `output` wrote to standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `output` wrote to standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `command`, which must succeed, and returns its standard output.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        stderr(&output)
    );
    stdout(&output)
}
