//! What a phone knows of a failure: its logs up to now, the kernel's, the tombstones of what crashed, and the agent's own
//! log. They are kept in a folder of this host, each no longer than its newest part.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::timeout;

use crate::AdbLink;
use crate::adb::{Phone, Printable, quote};
use crate::folders::{make_private, write_whole};

/// The newest part of each file that is kept: some thousand lines.
pub const MOST_BYTES: usize = 256 << 10;

/// So many tombstones are kept; a runtime that crashes is tried again once or twice.
pub const MOST_TOMBSTONES: usize = 4;

/// How long all of it may take: whoever waits for the failure wants to know of it.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long one source may take.
const SOURCE: Duration = Duration::from_secs(15);

/// What is asked of the phone's shell. What it may not read says nothing.
const SOURCES: [(&str, &str); 4] = [
    ("logcat.txt", "logcat -d -b all -v threadtime -t 5000"),
    ("dmesg.txt", "dmesg"),
    // Only root may read /data/tombstones on most phones; the drop box has copies that the shell user may read.
    (
        "tombstones-of-dropbox.txt",
        "dumpsys dropbox --print SYSTEM_TOMBSTONE",
    ),
    (
        "agent.log",
        "f=$(ls -t /data/local/tmp/layerlab/*/agent.log | head -n 1) && cat \"$f.1\" \"$f\"",
    ),
];

/// The file that says what failed, and when.
const FAILURE: &str = "failure.txt";

/// What the drop box says when it has nothing.
const NOTHING: &str = "(No entries found.)";

/// What was kept of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifacts {
    /// The folder.
    pub folder: PathBuf,
    /// The files in it, by name.
    pub files: Vec<String>,
}

impl Artifacts {
    /// Where they are and which, for the end of a sentence about the failure.
    pub fn in_words(&self) -> String {
        format!(
            "what the phone logged around it is in {} ({})",
            Printable(&self.folder.to_string_lossy()),
            self.files.join(", ")
        )
    }
}

/// Asks the phone behind `link` for what it knows of a failure in what began at `since`, and keeps it in `folder`, which is
/// made anew. Nothing where the phone cannot be asked, or knows nothing.
pub async fn keep(
    link: &AdbLink,
    since: OffsetDateTime,
    failure: &str,
    folder: &Path,
) -> Option<Artifacts> {
    let asked = timeout(DEADLINE, ask(link, since)).await;
    let found = asked
        .inspect_err(|_| tracing::warn!("the phone did not tell of the failure in time"))
        .ok()??;
    match write(folder, failure, &found) {
        Ok(artifacts) => Some(artifacts),
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(%error, %folder, "what the phone told of the failure cannot be kept");
            None
        }
    }
}

/// What the phone tells, by the names of the files to be; `None` where it tells nothing.
async fn ask(link: &AdbLink, since: OffsetDateTime) -> Option<Vec<(String, Vec<u8>)>> {
    let phone = link
        .phone()
        .await
        .inspect_err(|error| tracing::debug!(%error, "the phone cannot be asked about the failure"))
        .ok()?;
    let mut found = Vec::new();
    for (name, command) in SOURCES {
        found.extend(newest(&phone, name, command).await);
    }
    for (place, file) in tombstones(&phone, since).await.iter().enumerate() {
        let name = format!("tombstone-{}.txt", place + 1);
        found.extend(newest(&phone, &name, &format!("cat {}", quote(file))).await);
    }
    (!found.is_empty()).then_some(found)
}

/// The newest part of what `command` prints, if it prints anything.
async fn newest(phone: &Phone, name: &str, command: &str) -> Option<(String, Vec<u8>)> {
    let command = format!("{{ {command}; }} 2>/dev/null | tail -c {MOST_BYTES}");
    let output = phone.shell_within(&command, b"", SOURCE).await;
    let mut printed = output
        .inspect_err(|error| tracing::debug!(%error, name, "cannot be had"))
        .ok()?
        .stdout;
    // The phone's `tail` may be another one than ours.
    printed.drain(..printed.len().saturating_sub(MOST_BYTES));
    let text = String::from_utf8_lossy(&printed);
    let says_something = !text.trim().is_empty() && !text.contains(NOTHING);
    says_something.then(|| (name.to_owned(), printed))
}

/// The tombstones that were written since then, as far as they can be listed: the newest first.
async fn tombstones(phone: &Phone, since: OffsetDateTime) -> Vec<String> {
    let age = OffsetDateTime::now_utc() - since;
    // One more, since minutes are counted downwards.
    let minutes = age.whole_minutes().max(0) + 1;
    let command = format!("find /data/tombstones -type f -mmin -{minutes} 2>/dev/null");
    let listed = match phone.shell_within(&command, b"", SOURCE).await {
        Ok(output) => output.text(),
        Err(_) => return Vec::new(),
    };
    // A tombstone has a twin in another format.
    let mut files: Vec<String> = listed
        .lines()
        .filter(|file| file.starts_with('/') && !file.ends_with(".pb"))
        .map(str::to_owned)
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    files.truncate(MOST_TOMBSTONES);
    files
}

fn write(folder: &Path, failure: &str, found: &[(String, Vec<u8>)]) -> std::io::Result<Artifacts> {
    // A folder of somebody else's stays.
    if folder.join(FAILURE).is_file() {
        fs::remove_dir_all(folder)?;
    } else if folder.exists() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    make_private(folder)?;
    let at = OffsetDateTime::now_utc()
        .format(&Rfc3339)
        .unwrap_or_default();
    let text = format!("{at}\n{failure}\n");
    write_whole(&folder.join(FAILURE), text.as_bytes())?;
    for (name, content) in found {
        write_whole(&folder.join(name), content)?;
    }
    let names = found.iter().map(|(name, _)| name.clone());
    Ok(Artifacts {
        folder: folder.to_owned(),
        files: names.collect(),
    })
}

/// Removes the oldest folders in `all` until no more than `most` are left.
pub fn keep_newest(all: &Path, most: usize) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let mut folders: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    folders.sort_unstable();
    let surplus = folders.len().saturating_sub(most);
    for (_, folder) in folders.drain(..surplus) {
        if let Err(error) = fs::remove_dir_all(&folder) {
            tracing::warn!(%error, folder = %folder.display(), "cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_folders_go() {
        let all = tempfile::tempdir().expect("a folder");
        for name in ["run-1", "run-2", "run-3"] {
            let folder = all.path().join(name);
            fs::create_dir(&folder).expect("room");
            fs::write(folder.join("logcat.txt"), name).expect("room");
        }
        for (name, second) in [("run-1", 30), ("run-2", 10), ("run-3", 20)] {
            let file = fs::File::open(all.path().join(name)).expect("a folder");
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            file.set_modified(at).expect("our own");
        }
        keep_newest(all.path(), 2);
        let left = |name: &str| all.path().join(name).exists();
        assert_eq!(["run-1", "run-2", "run-3"].map(left), [true, false, true]);
        keep_newest(&all.path().join("nowhere"), 2);
    }

    #[test]
    fn what_is_kept_is_for_nobody_else_and_named() {
        use std::os::unix::fs::PermissionsExt;
        let all = tempfile::tempdir().expect("a folder");
        let folder = all.path().join("run-7");
        let found = [("logcat.txt".to_owned(), b"F libc: Fatal signal 11".to_vec())];
        write(&folder, "an older failure", &[]).expect("room");
        let kept = write(&folder, "the agent died", &found).expect("room");
        let mode = fs::metadata(&folder)
            .expect("a folder")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0);
        let failure = fs::read_to_string(folder.join("failure.txt")).expect("a file");
        assert!(failure.ends_with("\nthe agent died\n"), "{failure}");
        let said = kept.in_words();
        assert!(said.contains("run-7 (logcat.txt)"), "{said}");
        let others = all.path().join("somebody-elses");
        fs::create_dir(&others).expect("room");
        let refused = write(&others, "the agent died", &found).expect_err("not ours");
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    }
}
