//! The hottest sensor and the clocks, as the kernel tells them.

use std::path::Path;

use layerlab_profiles::MilliCelsius;
use layerlab_protocol::Conditions;

use super::clocks;
use super::kernel_files::{entries, number};

/// Sensors below this read nonsense, or are switched off.
const COLDEST: MilliCelsius = MilliCelsius::from_millicelsius(-40_000);

/// The state of the device whose kernel's files are under `sys`, as far as they alone tell it.
pub(super) fn read(sys: &Path) -> Conditions {
    Conditions {
        temperature_millicelsius: hottest(&sys.join("class/thermal")),
        frequency_caps_khz: clocks::caps_khz(sys),
        frequencies_khz: clocks::now_khz(sys),
        ..Conditions::default()
    }
}

fn hottest(thermal: &Path) -> Option<MilliCelsius> {
    entries(thermal, "thermal_zone")
        .filter_map(|(_, zone)| number(&zone.join("temp")))
        .map(MilliCelsius::from_millicelsius)
        .filter(|&temperature| temperature > COLDEST)
        .max()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read_and_the_rest_is_absent() {
        let sys = tempfile::tempdir().expect("a folder");
        assert_eq!(read(sys.path()), Conditions::default());
        for (file, content) in [
            ("class/thermal/thermal_zone0/temp", "41500\n"),
            ("class/thermal/thermal_zone1/temp", "-273000\n"),
            ("class/thermal/thermal_zone2/temp", "not ready\n"),
            (
                "devices/system/cpu/cpufreq/policy0/scaling_max_freq",
                "1800000\n",
            ),
            (
                "devices/system/cpu/cpufreq/policy4/scaling_max_freq",
                "2400000\n",
            ),
        ] {
            let path = sys.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            fs::write(path, content).expect("room");
        }
        let caps = [
            ("policy0".to_owned(), 1_800_000),
            ("policy4".to_owned(), 2_400_000),
        ];
        let expected = Conditions {
            temperature_millicelsius: Some(MilliCelsius::from_millicelsius(41_500)),
            frequency_caps_khz: caps.into(),
            ..Conditions::default()
        };
        assert_eq!(read(sys.path()), expected);
    }
}
