//! The clocks that cores and accelerators have now, and the highest that cores may have, as the kernel tells them.

use std::collections::BTreeMap;
use std::path::Path;

use super::kernel_files::{entries, number};

/// Words in the kernel's names of GPUs, NPUs and DSPs among what it scales.
const ACCELERATORS: [&str; 7] = ["npu", "dsp", "tpu", "apu", "gpu", "kgsl", "mali"];

/// The highest frequency that each group of cores may have now, by the group's name.
pub(super) fn caps_khz(sys: &Path) -> BTreeMap<String, u64> {
    of_cores(sys, "scaling_max_freq")
}

/// The frequency that each group of cores has now, and each accelerator that the kernel tells of.
pub(super) fn now_khz(sys: &Path) -> BTreeMap<String, u64> {
    let mut clocks = of_cores(sys, "scaling_cur_freq");
    let folder = sys.join("class/devfreq");
    let scaled = entries(&folder, "");
    clocks.extend(scaled.filter_map(|(name, device)| {
        let lower = name.to_lowercase();
        if !ACCELERATORS.iter().any(|word| lower.contains(word)) {
            return None;
        }
        // In hertz, which cores have in thousands of them.
        let hertz: u64 = number(&device.join("cur_freq"))?;
        // These two divide groups in `blocks.csv`.
        Some((name.replace([';', '='], "_"), hertz / 1000))
    }));
    clocks
}

fn of_cores(sys: &Path, file: &str) -> BTreeMap<String, u64> {
    entries(&sys.join("devices/system/cpu/cpufreq"), "policy")
        .filter_map(|(name, policy)| Some((name, number(&policy.join(file))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cores_and_accelerators_tell_their_clocks() {
        let sys = tempfile::tempdir().expect("a folder");
        assert_eq!(now_khz(sys.path()), BTreeMap::new());
        let cpufreq = "devices/system/cpu/cpufreq";
        for (file, content) in [
            (format!("{cpufreq}/policy0/scaling_max_freq"), "1800000"),
            (format!("{cpufreq}/policy0/scaling_cur_freq"), "1132800"),
            (format!("{cpufreq}/policy4/scaling_cur_freq"), "not ready"),
            (
                "class/devfreq/17000010.npu/cur_freq".to_owned(),
                "800000000",
            ),
            (
                "class/devfreq/3d00000.qcom,kgsl-3d0/cur_freq".to_owned(),
                "0",
            ),
            ("class/devfreq/soc:qcom,memlat/cur_freq".to_owned(), "1804"),
        ] {
            let path = sys.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            fs::write(path, format!("{content}\n")).expect("room");
        }
        let clocks = |pairs: &[(&str, u64)]| {
            let pairs = pairs.iter().map(|(name, khz)| ((*name).to_owned(), *khz));
            pairs.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(caps_khz(sys.path()), clocks(&[("policy0", 1_800_000)]));
        let now = [
            ("policy0", 1_132_800),
            ("17000010.npu", 800_000),
            ("3d00000.qcom,kgsl-3d0", 0),
        ];
        assert_eq!(now_khz(sys.path()), clocks(&now));
    }
}
