//! Files from elsewhere, taken only if they are what their SHA-256 says.
//!
//! `curl` does the fetching: a TLS library of our own is much to build and to keep safe for a file a year.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::anyhow;
use layerlab_farm::adb::Printable;
use layerlab_lab::webhook::{quoted, without_secrets};
use layerlab_profiles::Hash;

use super::exit::{Code, ExitWith, Failure};

/// The largest file that is fetched, in bytes. Runtimes have some hundred megabytes.
const LARGEST: &str = "4000000000";

/// A transfer slower than so many bytes a second for so many seconds is given up.
const SLOWEST: [&str; 4] = ["--speed-limit", "1000", "--speed-time", "60"];

/// `file` as a URL, if it is one and no path.
pub(super) fn as_url(file: &Path) -> Option<&str> {
    let text = file.to_str()?;
    let scheme = text.split_once("://")?.0;
    ["http", "https"].contains(&scheme).then_some(text)
}

/// Fetches the file at `url` into `folder`, under the name that the URL ends in.
pub(super) fn fetch(url: &str, folder: &Path) -> Result<PathBuf, Failure> {
    let shown = without_secrets(url);
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.starts_with('.') {
        let error = anyhow!("{} names no file", Printable(&shown));
        return Err(Failure::new(Code::Usage, error));
    }
    let file = folder.join(name);
    let is_seen = std::io::stderr().is_terminal();
    let mut curl = Command::new("curl")
        // First, so that no file of the user's changes what the others mean.
        .arg("--disable")
        .args(["--fail", "--location", "--globoff", "--show-error"])
        .args(["--proto", "=http,https", "--connect-timeout", "30"])
        .args(["--max-filesize", LARGEST])
        .args(SLOWEST)
        .arg(if is_seen {
            "--progress-bar"
        } else {
            "--silent"
        })
        .arg("--output")
        .arg(&file)
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(if is_seen {
            Stdio::inherit()
        } else {
            Stdio::piped()
        })
        .spawn()
        .map_err(|error| {
            let error =
                anyhow!("curl, which does the fetching, cannot be run ({error}): install it");
            Failure::new(Code::Output, error)
        })?;
    if let Some(mut stdin) = curl.stdin.take() {
        // Not as an argument: whoever lists processes would read the secret that such URLs may contain.
        let line = format!("url = \"{}\"\n", quoted(url));
        stdin.write_all(line.as_bytes()).exit_with(Code::Output)?;
    }
    let ended = curl.wait_with_output().exit_with(Code::Output)?;
    if ended.status.success() {
        return Ok(file);
    }
    // curl may quote what it was given.
    let said = String::from_utf8_lossy(&ended.stderr).replace(url, &shown);
    let said = said.lines().last().unwrap_or("curl failed").trim();
    let error = anyhow!("{} was not fetched: {}", Printable(&shown), Printable(said));
    Err(Failure::new(Code::Input, error))
}

/// Refuses a file that is another than its SHA-256 says.
pub(super) fn expect_sha256(file: &Path, expected: &str) -> Result<(), Failure> {
    let unreadable = |error| {
        let error = anyhow!("cannot read {}: {error}", file.display());
        Failure::new(Code::Input, error)
    };
    let mut open = File::open(file).map_err(unreadable)?;
    let mut hash = Hash::default();
    let mut portion = vec![0; 1 << 20];
    loop {
        match open.read(&mut portion).map_err(unreadable)? {
            0 => break,
            read => hash.update(&portion[..read]),
        }
    }
    let found = hash.finish();
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let error = anyhow!(
        "{} has SHA-256 {found}, not {expected}: it is damaged, or another file; nothing was added",
        file.file_name().unwrap_or_default().display(),
    );
    Err(Failure::new(Code::Input, error))
}
