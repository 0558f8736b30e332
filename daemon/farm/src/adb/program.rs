//! The one `adb` program that layerlab uses: named, or found.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::error::AdbError;

/// How long `adb version` may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// An adb program that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Its release, such as `34.0.5-debian`.
    pub release: String,
    /// The version of the server's protocol, such as 41. Servers of another version are not ours.
    pub protocol: u32,
}

/// Finds the program: `named` (by --adb or LAYERLAB_ADB), in PATH, or in the Android SDK.
pub async fn find(named: Option<&Path>) -> Result<Program, AdbError> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => search().ok_or(AdbError::NoProgram)?,
    };
    let bad = |reason: String| AdbError::BadProgram {
        program: path.clone(),
        reason,
    };
    let run = Command::new(&path)
        .arg("version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, run)
        .await
        .map_err(|_| bad(format!("it says nothing for {} s", DEADLINE.as_secs())))?
        .map_err(|error| bad(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (protocol, release) =
        version(&text).ok_or_else(|| bad("`adb version` does not name a version".to_owned()))?;
    Ok(Program {
        path,
        release,
        protocol,
    })
}

fn search() -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let in_sdk = ["ANDROID_HOME", "ANDROID_SDK_ROOT"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(|sdk| Path::new(&sdk).join("platform-tools"));
    in_path
        .into_iter()
        .chain(in_sdk)
        .map(|folder| folder.join("adb"))
        .find(|path| path.is_file())
}

/// "Android Debug Bridge version 1.0.41\nVersion 34.0.5-debian\n…": 41 and the release.
fn version(text: &str) -> Option<(u32, String)> {
    let after = |prefix| text.lines().find_map(|line| line.strip_prefix(prefix));
    let protocol = after("Android Debug Bridge version ")?.trim();
    let protocol = protocol.rsplit('.').next()?.parse().ok()?;
    let release = after("Version ").unwrap_or("unknown").trim().to_owned();
    Some((protocol, release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_adb_says() {
        let debian = "Android Debug Bridge version 1.0.41\nVersion 34.0.5-debian\nInstalled as /usr/bin/adb\n";
        assert_eq!(version(debian), Some((41, "34.0.5-debian".to_owned())));
        let old = "Android Debug Bridge version 1.0.32\n";
        assert_eq!(version(old), Some((32, "unknown".to_owned())));
        assert_eq!(version("GNU bash, version 5.2"), None);
    }

    #[tokio::test]
    async fn what_is_no_adb_is_named() {
        let error = find(Some(Path::new("/bin/echo")))
            .await
            .expect_err("no adb");
        assert!(error.to_string().contains("/bin/echo"), "{error}");
    }
}
