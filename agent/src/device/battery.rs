//! How full and how warm the battery is, and whether it is being emptied: by the kernel's files where they may be read, else
//! by Android's battery service.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use layerlab_profiles::MilliCelsius;

use super::answer::answer_of;
use super::kernel_files::{number, text};

/// The service takes some ten milliseconds. One that needs longer than this hangs.
const DEADLINE: Duration = Duration::from_secs(2);

/// How a battery is. What is not told is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) percent: Option<u8>,
    pub(super) temperature: Option<MilliCelsius>,
    /// Whether there is power, and the battery is not emptied in spite of that.
    pub(super) charging: Option<bool>,
}

/// The battery of a phone.
#[derive(Debug)]
pub(super) struct Battery {
    /// Its folder in /sys, whether or not it is there.
    folder: PathBuf,
    /// The program that asks the service, as long as it may know.
    dumpsys: Option<PathBuf>,
}

impl Battery {
    /// The battery that the kernel tells of under `sys`, and that the program `dumpsys` asks for, if there is one.
    pub(super) fn told_under(sys: &Path, dumpsys: &Path) -> Battery {
        Battery {
            folder: sys.join("class/power_supply/battery"),
            dumpsys: dumpsys.is_file().then(|| dumpsys.to_owned()),
        }
    }

    /// How it is now. The service is asked only for what the kernel keeps to itself, since that costs another process.
    pub(super) fn charge(&mut self) -> Charge {
        let by_kernel = self.by_kernel();
        if by_kernel.percent.is_some() && by_kernel.charging.is_some() {
            return by_kernel;
        }
        let by_service = self.by_service().unwrap_or_default();
        Charge {
            percent: by_kernel.percent.or(by_service.percent),
            temperature: by_kernel.temperature.or(by_service.temperature),
            charging: by_kernel.charging.or(by_service.charging),
        }
    }

    fn by_kernel(&self) -> Charge {
        let tenths: Option<i64> = number(&self.folder.join("temp"));
        Charge {
            percent: number(&self.folder.join("capacity")).filter(|percent| *percent <= 100),
            temperature: tenths.map(of_tenths),
            charging: match text(&self.folder.join("status")).as_deref() {
                Some("Charging" | "Full" | "Not charging") => Some(true),
                Some("Discharging") => Some(false),
                _ => None,
            },
        }
    }

    fn by_service(&mut self) -> Option<Charge> {
        let mut command = Command::new(self.dumpsys.as_ref()?);
        let printed = answer_of(command.arg("battery"), DEADLINE)
            .inspect_err(|error| tracing::warn!(%error, "the battery service does not answer"))
            .ok()?;
        let charge = printed_charge(&printed);
        if charge.is_none() {
            // There is no such service, or it speaks another language.
            self.dumpsys = None;
        }
        charge
    }
}

fn of_tenths(tenths: i64) -> MilliCelsius {
    MilliCelsius::from_millicelsius(tenths.saturating_mul(100))
}

/// What the battery service printed of now; nothing where it did not print its state, and an empty charge where somebody
/// froze it.
fn printed_charge(printed: &str) -> Option<Charge> {
    let state = printed.split_once("Current Battery Service state:")?.1;
    // What makers add has other indents; each of the service's own lines has two spaces.
    let lines: Vec<&str> = state
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .collect();
    if lines
        .iter()
        .any(|line| line.starts_with("(UPDATES STOPPED"))
    {
        return Some(Charge::default());
    }
    let value = |key: &str| {
        let mut values = lines.iter();
        values.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
    };
    let number = |key: &str| value(key)?.trim().parse::<i64>().ok();
    if value("present") == Some("false") {
        return Some(Charge::default());
    }
    let powered =
        ["AC", "USB", "Wireless", "Dock"].map(|source| value(&format!("{source} powered")));
    let is_told = powered.iter().any(Option::is_some);
    let powered = is_told.then(|| powered.contains(&Some("true")));
    let scale = number("scale").filter(|scale| *scale > 0).unwrap_or(100);
    let percent = number("level").map(|level| level.saturating_mul(100) / scale);
    // Android's numbers: 2 charging, 3 discharging, 4 not charging, 5 full.
    let status = number("status");
    Some(Charge {
        percent: percent.and_then(|percent| u8::try_from(percent).ok()),
        temperature: number("temperature").map(of_tenths),
        charging: match (powered, status) {
            (Some(false), _) | (_, Some(3)) => Some(false),
            (Some(true), _) | (None, Some(2 | 4 | 5)) => Some(true),
            (None, _) => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../device-scripts/tests/formats/",
                $name,
                ".battery"
            ))
        };
    }

    fn charge(percent: u8, tenths: i64, charging: bool) -> Charge {
        Charge {
            percent: Some(percent),
            temperature: Some(of_tenths(tenths)),
            charging: Some(charging),
        }
    }

    #[test]
    fn a_charge_is_read_from_what_phones_print() {
        assert_eq!(
            printed_charge(recorded!("aosp-9")),
            Some(charge(100, 274, true))
        );
        let unplugged = recorded!("aosp-9").replace("USB powered: true", "USB powered: false");
        assert_eq!(printed_charge(&unplugged), Some(charge(100, 274, false)));
        let emptied = recorded!("aosp-9").replace("status: 5", "status: 3");
        assert_eq!(printed_charge(&emptied), Some(charge(100, 274, false)));
        assert_eq!(printed_charge("Can't find service: battery\n"), None);
        let frozen = recorded!("aosp-9").replace(
            "  AC powered",
            "  (UPDATES STOPPED -- use 'reset' to restart)\n  AC powered",
        );
        assert_eq!(printed_charge(&frozen), Some(Charge::default()));
        for printed in [
            recorded!("aosp-12"),
            recorded!("aosp-14"),
            recorded!("aosp-15"),
            recorded!("samsung-oneui"),
        ] {
            let charge = printed_charge(printed).expect("a state");
            assert!(
                charge.percent.is_some() || printed.contains("UPDATES STOPPED"),
                "{printed}"
            );
        }
    }

    /// A stand-in for `dumpsys` that prints this text, and counts how often it is asked.
    fn service(folder: &Path, printed: &str) -> PathBuf {
        fs::write(folder.join("printed"), printed).expect("room");
        let program = folder.join("dumpsys");
        let at = folder.display();
        let script = format!("#!/bin/sh\necho x >>'{at}/asked'\ncat '{at}/printed'\n");
        fs::write(&program, script).expect("room");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("our own");
        program
    }

    fn asked(folder: &Path) -> usize {
        let asked = fs::read_to_string(folder.join("asked")).unwrap_or_default();
        asked.lines().count()
    }

    #[test]
    fn the_service_is_asked_for_what_the_kernel_keeps_to_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let dumpsys = service(folder.path(), recorded!("aosp-9"));
        let mut battery = Battery::told_under(folder.path(), &dumpsys);
        assert_eq!(battery.charge(), charge(100, 274, true));
        assert_eq!(asked(folder.path()), 1);
        let supply = folder.path().join("class/power_supply/battery");
        fs::create_dir_all(&supply).expect("room");
        for (file, content) in [
            ("capacity", "61"),
            ("temp", "315"),
            ("status", "Discharging"),
        ] {
            fs::write(supply.join(file), format!("{content}\n")).expect("room");
        }
        assert_eq!(battery.charge(), charge(61, 315, false));
        assert_eq!(asked(folder.path()), 1, "the kernel told all of it");
    }

    #[test]
    fn a_machine_without_the_service_is_asked_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let dumpsys = service(folder.path(), "Can't find service: battery\n");
        let mut battery = Battery::told_under(folder.path(), &dumpsys);
        for _ in 0..2 {
            assert_eq!(battery.charge(), Charge::default());
        }
        assert_eq!(asked(folder.path()), 1);
        let mut computer = Battery::told_under(folder.path(), Path::new("/nowhere/dumpsys"));
        assert_eq!(computer.charge(), Charge::default());
    }
}
