//! Switching a phone's USB port off and on, where the hub can and this user may (Linux 6.0 and later
//! let the kernel do it through one file).

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the port stays off: phones need a moment to notice.
const OFF: Duration = Duration::from_secs(2);

/// Switches the port at `usb_path` (such as `1-4.2`) off and on.
pub(super) async fn cycle(sys: &Path, usb_path: &str) -> std::io::Result<()> {
    let file = switch(usb_path)
        .map(|file| sys.join("bus/usb/devices").join(file))
        .ok_or_else(|| std::io::Error::other("this is no USB port"))?;
    std::fs::write(&file, "1")?;
    tokio::time::sleep(OFF).await;
    std::fs::write(&file, "0")
}

/// The file that switches the port: `1-4.2` is port 2 of hub `1-4`; `1-4` is port 4 of root hub 1.
fn switch(usb_path: &str) -> Option<PathBuf> {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !usb_path.split(['-', '.']).all(digits) {
        return None;
    }
    let (hub, port) = match usb_path.rsplit_once('.') {
        Some((hub, port)) => (hub.to_owned(), port),
        None => {
            let (bus, port) = usb_path.split_once('-')?;
            (format!("usb{bus}"), port)
        }
    };
    let interface = match hub.strip_prefix("usb") {
        Some(bus) => format!("{bus}-0:1.0"),
        None => format!("{hub}:1.0"),
    };
    let name = format!("{hub}-port{port}");
    Some(Path::new(&interface).join(name).join("disable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_ports_like_this() {
        let cases = [
            ("1-4", Some("1-0:1.0/usb1-port4/disable")),
            ("1-4.2", Some("1-4:1.0/1-4-port2/disable")),
            ("3-1.4.7", Some("3-1.4:1.0/3-1.4-port7/disable")),
            ("../../etc", None),
            ("", None),
        ];
        for (path, file) in cases {
            assert_eq!(switch(path), file.map(PathBuf::from), "{path}");
        }
    }
}
