//! What Android says of throttling and of heat: its thermal service, asked through `dumpsys`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::answer::answer_of;
use super::temperatures::Temperatures;

/// Where Android has the program that asks its services.
pub(super) const DUMPSYS: &str = "/system/bin/dumpsys";

/// It takes some ten milliseconds. A service that needs longer than this hangs, and the block's end has waited long
/// enough.
const DEADLINE: Duration = Duration::from_secs(2);

/// Android's highest thermal status: shutdown.
const HIGHEST: u8 = 6;

/// Android's thermal service, where there is one.
#[derive(Debug)]
pub(super) struct ThermalService {
    /// The program that asks it, as long as it may know.
    dumpsys: Option<PathBuf>,
}

impl ThermalService {
    /// The service that this program asks, if the program is there.
    pub(super) fn behind(dumpsys: &Path) -> Self {
        ThermalService {
            dumpsys: dumpsys.is_file().then(|| dumpsys.to_owned()),
        }
    }

    /// The thermal status and the temperatures now; nothing where the service does not tell, or not in time. One that told
    /// nothing at all is not asked again: before Android 10 there is none.
    pub(super) fn ask(&mut self) -> Heat {
        let Some(dumpsys) = &self.dumpsys else {
            return Heat::default();
        };
        let mut command = Command::new(dumpsys);
        self.take(answer_of(command.arg("thermalservice"), DEADLINE))
    }

    fn take(&mut self, answer: io::Result<String>) -> Heat {
        let Ok(text) = answer
            .inspect_err(|error| tracing::warn!(%error, "the thermal service does not answer"))
        else {
            return Heat::default();
        };
        let status = match Told::by(&text) {
            Told::Status(status) => Some(status),
            Told::Overridden => None,
            Told::Nothing => {
                self.dumpsys = None;
                None
            }
        };
        Heat {
            status,
            temperatures: Temperatures::by_service(&text),
        }
    }
}

/// How hot Android says that the phone is. What it does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heat {
    /// The thermal status.
    pub(super) status: Option<u8>,
    pub(super) temperatures: Temperatures,
}

/// What the service said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Status(u8),
    /// Somebody has set the status by hand, so that it says nothing of the phone.
    Overridden,
    Nothing,
}

impl Told {
    fn by(text: &str) -> Told {
        let after = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        if after("IsStatusOverride: ") == Some("true") {
            return Told::Overridden;
        }
        let status = after("Thermal Status: ").and_then(|status| status.trim().parse().ok());
        match status {
            Some(status) if status <= HIGHEST => Told::Status(status),
            _ => Told::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../device-scripts/tests/formats/",
                $name,
                ".thermalservice"
            ))
        };
    }

    #[test]
    fn the_status_is_read_from_what_phones_print() {
        for (text, told) in [
            (recorded!("aosp-9"), Told::Nothing),
            (recorded!("aosp-10"), Told::Status(0)),
            (recorded!("cached-only"), Told::Status(1)),
            (recorded!("samsung-a52-12"), Told::Status(0)),
            (recorded!("samsung-oneui-14"), Told::Status(0)),
            (recorded!("pixel-15"), Told::Overridden),
            (
                "IsStatusOverride: false\nThermal Status: 3\n",
                Told::Status(3),
            ),
            ("Thermal Status: 6\r\n", Told::Status(6)),
            ("Thermal Status: 7\n", Told::Nothing),
            ("Can't find service: thermalservice\n", Told::Nothing),
            ("", Told::Nothing),
        ] {
            assert_eq!(Told::by(text), told, "{text}");
        }
    }

    fn service() -> ThermalService {
        ThermalService::behind(Path::new("/bin/sh"))
    }

    #[test]
    fn a_phone_says_each_time_whether_it_throttles() {
        let mut service = service();
        for status in [0, 3, 1] {
            let text = format!("IsStatusOverride: false\nThermal Status: {status}\n");
            assert_eq!(service.take(Ok(text)).status, Some(status));
        }
        assert!(service.dumpsys.is_some());
    }

    #[test]
    fn a_service_that_is_late_or_overridden_is_asked_again() {
        let mut service = service();
        let late = service.take(Err(io::ErrorKind::TimedOut.into()));
        assert_eq!(late, Heat::default());
        let overridden = "IsStatusOverride: true\nThermal Status: 0\n";
        assert_eq!(service.take(Ok(overridden.to_owned())), Heat::default());
        assert!(service.dumpsys.is_some());
    }

    #[test]
    fn a_phone_without_the_service_is_asked_once() {
        let mut service = service();
        let missing = "Can't find service: thermalservice\n";
        assert_eq!(service.take(Ok(missing.to_owned())), Heat::default());
        assert!(service.dumpsys.is_none());
        assert_eq!(service.ask(), Heat::default());
    }

    #[test]
    fn a_machine_without_the_program_tells_nothing() {
        assert_eq!(
            ThermalService::behind(Path::new("/nowhere/dumpsys")).ask(),
            Heat::default()
        );
    }
}
