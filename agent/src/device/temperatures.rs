//! Temperatures of the skin and of the SoC: by Android's thermal service, else by the kernel's zones.

use std::path::Path;

use layerlab_profiles::MilliCelsius;

use super::kernel_files::{entries, number, text};

/// What sensors that are fitted and work say, in thousandths of a degree Celsius.
const CREDIBLE: std::ops::RangeInclusive<i64> = -40_000..=150_000;

/// Android's types of sensors that are parts of the SoC: CPU, GPU, NPU, TPU, SoC.
const OF_SOC: [&str; 5] = ["0", "1", "9", "10", "13"];

/// Android's type of sensors of the skin.
const OF_SKIN: &str = "3";

/// Words in the names of the kernel's zones of parts of the SoC.
const ZONES_OF_SOC: [&str; 6] = ["cpu", "gpu", "npu", "tpu", "soc", "x86_pkg_temp"];

/// How hot a device is where it matters. What it does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Temperatures {
    /// Of its skin, by which Android throttles.
    pub(super) skin: Option<MilliCelsius>,
    /// Of the hottest part of its SoC.
    pub(super) soc: Option<MilliCelsius>,
}

impl Temperatures {
    /// What the thermal service printed: its sensors now, else what it remembers of them.
    pub(super) fn by_service(printed: &str) -> Temperatures {
        let now = Temperatures::in_section(printed, "Current temperatures from HAL:");
        match now == Temperatures::default() {
            true => Temperatures::in_section(printed, "Cached temperatures:"),
            false => now,
        }
    }

    fn in_section(printed: &str, title: &str) -> Temperatures {
        let mut lines = printed.lines();
        if !lines.any(|line| line.trim_end() == title) {
            return Temperatures::default();
        }
        // What belongs to a section begins with a tab.
        let sensors = lines.take_while(|line| line.starts_with([' ', '\t']));
        let mut temperatures = Temperatures::default();
        for sensor in sensors {
            let field = |key: &str| {
                let rest = sensor.split_once(key)?.1;
                rest.split([',', '}']).next()
            };
            let celsius = field("mValue=").and_then(|value| value.parse::<f64>().ok());
            // One that reads nothing at all is not fitted.
            let fitted = celsius.filter(|celsius| celsius.abs() > 0.001);
            let found = fitted.and_then(|celsius| credible((celsius * 1000.0).round() as i64));
            match field("mType=") {
                Some(OF_SKIN) => temperatures.skin = temperatures.skin.max(found),
                Some(kind) if OF_SOC.contains(&kind) => {
                    temperatures.soc = temperatures.soc.max(found);
                }
                _ => {}
            }
        }
        temperatures
    }

    /// What the kernel's zones in the folder `thermal` say that can be read.
    pub(super) fn by_zones(thermal: &Path) -> Temperatures {
        let mut temperatures = Temperatures::default();
        for (_, zone) in entries(thermal, "thermal_zone") {
            let kind = text(&zone.join("type")).unwrap_or_default().to_lowercase();
            let is_skin = kind.contains("skin");
            if !is_skin && !ZONES_OF_SOC.iter().any(|word| kind.contains(word)) {
                continue;
            }
            let found = number(&zone.join("temp")).and_then(credible);
            match is_skin {
                true => temperatures.skin = temperatures.skin.max(found),
                false => temperatures.soc = temperatures.soc.max(found),
            }
        }
        temperatures
    }
}

/// A reading that a sensor can have.
fn credible(millicelsius: i64) -> Option<MilliCelsius> {
    let is_credible = CREDIBLE.contains(&millicelsius) && millicelsius != 0;
    is_credible.then(|| MilliCelsius::from_millicelsius(millicelsius))
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    fn degrees(skin: Option<i64>, soc: Option<i64>) -> Temperatures {
        Temperatures {
            skin: skin.map(MilliCelsius::from_millicelsius),
            soc: soc.map(MilliCelsius::from_millicelsius),
        }
    }

    #[test]
    fn temperatures_are_read_from_what_phones_print() {
        for (printed, expected) in [
            (recorded!("aosp-9"), degrees(None, None)),
            (recorded!("pixel-15"), degrees(Some(42_080), Some(60_000))),
            (recorded!("cached-only"), degrees(Some(38_000), None)),
            ("Can't find service: thermalservice\n", degrees(None, None)),
            ("", degrees(None, None)),
        ] {
            assert_eq!(Temperatures::by_service(printed), expected, "{printed}");
        }
    }

    #[test]
    fn zones_are_read_by_what_they_are_of() {
        let thermal = tempfile::tempdir().expect("a folder");
        let zones = [
            ("cpu-0-0-usr", "51200"),
            ("gpuss-0", "48000"),
            ("battery", "99000"),
            ("skin-therm", "36500"),
            ("npu", "-273000"),
            ("soc_max", "not ready"),
        ];
        for (place, (kind, temperature)) in zones.into_iter().enumerate() {
            let zone = thermal.path().join(format!("thermal_zone{place}"));
            fs::create_dir(&zone).expect("room");
            fs::write(zone.join("type"), format!("{kind}\n")).expect("room");
            fs::write(zone.join("temp"), format!("{temperature}\n")).expect("room");
        }
        let expected = degrees(Some(36_500), Some(51_200));
        assert_eq!(Temperatures::by_zones(thermal.path()), expected);
        let nowhere = thermal.path().join("nowhere");
        assert_eq!(Temperatures::by_zones(&nowhere), Temperatures::default());
    }
}
