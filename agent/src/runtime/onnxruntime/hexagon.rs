//! Whether a phone lets its shell user, whose program the agent is, reach the Hexagon.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The folder of a phone's devices.
const DEVICES: &str = "/dev";

/// The devices by which Qualcomm's libraries reach the Hexagon: those of newer kernels, then that of older ones.
const NAMES: [&str; 4] = [
    "fastrpc-cdsp",
    "fastrpc-cdsp-secure",
    "adsprpc-smd",
    "adsprpc-smd-secure",
];

/// What keeps the shell user from the Hexagon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HexagonBarrier {
    /// The kernel has none of the devices.
    NoDevice,
    /// There are devices, and none may be opened.
    Denied {
        /// The first that there is.
        device: PathBuf,
        /// What the system said.
        cause: String,
    },
}

impl fmt::Display for HexagonBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HexagonBarrier::NoDevice => write!(
                f,
                "it shows none of the devices by which Qualcomm's libraries reach one ({DEVICES}/{} and the like)",
                NAMES[0]
            ),
            HexagonBarrier::Denied { device, cause } => write!(
                f,
                "its shell user may not open {} ({cause}), by which Qualcomm's libraries reach it",
                device.display()
            ),
        }
    }
}

/// What keeps the agent from this phone's Hexagon, as far as devices tell. It is asked when Qualcomm's libraries failed, and
/// not before: a service of the phone may open the device for them.
pub(super) fn barrier_here() -> Option<HexagonBarrier> {
    barrier(Path::new(DEVICES))
}

/// What keeps this process from the Hexagon of which the devices are in `folder`; `None` if one of them can be opened.
fn barrier(folder: &Path) -> Option<HexagonBarrier> {
    let mut first = None;
    for name in NAMES {
        let device = folder.join(name);
        // A device that waits for something is no reason to wait.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&device);
        match opened {
            Ok(_) => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                first.get_or_insert(HexagonBarrier::Denied {
                    device,
                    cause: error.to_string(),
                });
            }
        }
    }
    Some(first.unwrap_or(HexagonBarrier::NoDevice))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_phone_without_the_devices_has_no_hexagon() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("binder"), "").expect("room");
        assert_eq!(barrier(folder.path()), Some(HexagonBarrier::NoDevice));
    }

    #[test]
    fn one_device_that_can_be_opened_is_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        // Nobody can open a link to itself, whatever their rights.
        symlink("fastrpc-cdsp", folder.path().join("fastrpc-cdsp")).expect("room");
        let barrier_now = barrier(folder.path()).expect("none can be opened");
        let sentence = barrier_now.to_string();
        assert!(
            sentence.starts_with("its shell user may not open ")
                && sentence.contains("/fastrpc-cdsp ("),
            "{sentence}"
        );
        fs::write(folder.path().join("adsprpc-smd"), "").expect("room");
        assert_eq!(barrier(folder.path()), None);
    }
}
