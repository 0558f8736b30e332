//! A small disk of a test's own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::skip::skip;

/// Names the disk to the test's second process.
const DISK: &str = "LAYERLAB_TEST_DISK";

/// The folder of an empty disk of `size`, as mount understands it, for the test `name`. The test runs once more, in a mount
/// namespace of its own, so that nobody else sees the disk; there the answer is the disk. Else it is `None`: the test has
/// passed there, or was skipped because such a disk cannot be had.
pub fn small_disk(size: &str, name: &str) -> Option<PathBuf> {
    if let Some(disk) = std::env::var_os(DISK) {
        return Some(disk.into());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |program: &Path| {
        let script = r#"mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command.args(["sh", "-c", script, "sh", size]);
        command.arg(folder.path()).arg(program);
        command.env(DISK, folder.path());
        command
    };
    let why = match inside(Path::new("true")).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why {
        let remedy = "allow this user `unshare --user --mount` (the packages util-linux and mount)";
        skip("a mount namespace", &format!("{}; {remedy}", why.trim()));
        return None;
    }
    let this = std::env::current_exe().expect("this program");
    let output = inside(&this)
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .stderr(Stdio::inherit())
        .output()
        .expect("a second process");
    let said = String::from_utf8_lossy(&output.stdout);
    // What it told, without the second process's own report, which would be counted as another test's.
    let is_told = |line: &&str| !line.is_empty() && !line.starts_with("test ");
    for line in said
        .lines()
        .filter(is_told)
        .filter(|line| !line.starts_with("running "))
    {
        let _ = writeln!(std::io::stdout(), "{line}");
    }
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name} failed on its small disk"
    );
    None
}
