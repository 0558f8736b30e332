//! The state of the device as its kernel tells it, read between inferences. Every file is optional: on
//! a phone the shell user may read some of them, in a container none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use layerlab_profiles::MilliCelsius;
use layerlab_protocol::Conditions;

/// Sensors below this read nonsense, or are switched off.
const COLDEST: MilliCelsius = MilliCelsius::from_millicelsius(-40_000);

/// The state of the device whose kernel's files are under `sys`.
pub(super) fn read(sys: &Path) -> Conditions {
    Conditions {
        // Android's own service tells it, the kernel does not.
        thermal_status: None,
        temperature_millicelsius: hottest(&sys.join("class/thermal")),
        battery_percent: number(&sys.join("class/power_supply/battery/capacity")),
        frequency_caps_khz: frequency_caps(&sys.join("devices/system/cpu/cpufreq")),
    }
}

fn hottest(thermal: &Path) -> Option<MilliCelsius> {
    let zones = entries(thermal).filter(|(name, _)| name.starts_with("thermal_zone"));
    zones
        .filter_map(|(_, zone)| number(&zone.join("temp")))
        .map(MilliCelsius::from_millicelsius)
        .filter(|&temperature| temperature > COLDEST)
        .max()
}

fn frequency_caps(cpufreq: &Path) -> BTreeMap<String, u64> {
    let policies = entries(cpufreq).filter(|(name, _)| name.starts_with("policy"));
    policies
        .filter_map(|(name, policy)| Some((name, number(&policy.join("scaling_max_freq"))?)))
        .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, std::path::PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        )
    })
}

fn number<T: std::str::FromStr>(file: &Path) -> Option<T> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
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
