//! What the whole-system tests share: the real binaries, and the files they are fed.

pub mod farm;
pub mod interposer;
pub mod lab;
pub mod proof;
pub mod small_disk;
pub mod virtual_phone;
pub mod wait;
pub mod watched;

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

/// The folder of the freshly built binaries.
pub fn binaries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let status = Command::new(env!("CARGO"))
            // All of them, as `make` does: for two crates alone dependencies have other features, and are built anew.
            .args(["build", "--quiet", "--workspace", "--bins"])
            .current_dir(root())
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the programs do not build");
        // target/debug/deps/this-test or target/debug/this-program → target/debug
        let this = std::env::current_exe().expect("this program's own path");
        let mut folders = this.ancestors().skip(1);
        let built = folders.find(|folder| !folder.ends_with("deps"));
        built.expect("target/debug").to_owned()
    })
}

/// The `layerlab` command, which sees no phones: those of the machine's owner are not for tests.
pub fn layerlab() -> Command {
    let mut command = Command::new(binaries().join("layerlab"));
    command.env("LAYERLAB_ADB", "");
    command
}

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
