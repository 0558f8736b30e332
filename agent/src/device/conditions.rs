//! Temperature, battery and clock caps as the kernel tells them.

use std::collections::BTreeMap;
use std::path::Path;

use layerlab_profiles::MilliCelsius;
use layerlab_protocol::Conditions;

use super::kernel_files::{entries, number};

/// Sensors below this read nonsense, or are switched off.
const COLDEST: MilliCelsius = MilliCelsius::from_millicelsius(-40_000);

/// The state of the device whose kernel's files are under `sys`, but for throttling.
pub(super) fn read(sys: &Path) -> Conditions {
    Conditions {
        thermal_status: None,
        temperature_millicelsius: hottest(&sys.join("class/thermal")),
        battery_percent: number(&sys.join("class/power_supply/battery/capacity")),
        frequency_caps_khz: frequency_caps(&sys.join("devices/system/cpu/cpufreq")),
    }
}

fn hottest(thermal: &Path) -> Option<MilliCelsius> {
    entries(thermal, "thermal_zone")
        .filter_map(|(_, zone)| number(&zone.join("temp")))
        .map(MilliCelsius::from_millicelsius)
        .filter(|&temperature| temperature > COLDEST)
        .max()
}

fn frequency_caps(cpufreq: &Path) -> BTreeMap<String, u64> {
    entries(cpufreq, "policy")
        .filter_map(|(name, policy)| Some((name, number(&policy.join("scaling_max_freq"))?)))
        .collect()
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
            ("class/power_supply/battery/capacity", "87\n"),
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
            thermal_status: None,
            temperature_millicelsius: Some(MilliCelsius::from_millicelsius(41_500)),
            battery_percent: Some(87),
            frequency_caps_khz: caps.into(),
        };
        assert_eq!(read(sys.path()), expected);
    }
}
