//! Named sets of cores: a phone's big and little cores are processors of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// A set of cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreSet {
    /// The processor's name: `cpu:all`, or `cpu:big4`, `cpu:mid2`, `cpu:little4` after the cores' speed and
    /// number.
    pub name: String,
    /// The cores' numbers, ascending.
    pub cores: Vec<u32>,
    /// Whether the system lets threads be bound to them.
    pub pinned: bool,
}

/// The sets of the machine whose kernel's files are under `sys`: all cores that this process may use, and
/// where they differ in speed, those of each speed.
pub(super) fn core_sets(sys: &Path) -> Vec<CoreSet> {
    let named = sets_by_speed(sys, allowed_cores()).into_iter();
    named
        .map(|(name, cores)| CoreSet {
            pinned: can_pin(&cores),
            name,
            cores,
        })
        .collect()
}

fn sets_by_speed(sys: &Path, cores: Vec<u32>) -> Vec<(String, Vec<u32>)> {
    let mut by_speed: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for &core in &cores {
        by_speed.entry(speed(sys, core)).or_default().push(core);
    }
    let mut named = vec![("cpu:all".to_owned(), cores)];
    if by_speed.len() > 1 {
        let slowest = by_speed.len() - 1;
        for (place, cores) in by_speed.into_values().rev().enumerate() {
            let kind = match place {
                0 => "big",
                place if place == slowest => "little",
                _ => "mid",
            };
            named.push((format!("cpu:{kind}{}", cores.len()), cores));
        }
    }
    named
}

impl CoreSet {
    /// Binds the calling thread to the cores, where the system lets it.
    pub fn bind_this_thread(&self) {
        if self.pinned {
            // It was possible when it was tried; should it fail now, the thread roams as it would have
            // without the wish.
            let _ = sched_setaffinity(None, &cpu_set(&self.cores));
        }
    }
}

/// The cores that this process may use.
pub(crate) fn allowed_cores() -> Vec<u32> {
    let cores: Vec<u32> = sched_getaffinity(None)
        .map(|set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&core| set.is_set(core))
                .map(|c| c as u32)
                .collect()
        })
        .unwrap_or_default();
    // A system that does not tell has one core.
    if cores.is_empty() { vec![0] } else { cores }
}

/// A number that grows with a core's speed: its highest frequency, or 0 where none is told.
fn speed(sys: &Path, core: u32) -> u64 {
    let file = format!("devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq");
    let text = fs::read_to_string(sys.join(file)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Tries it on a thread that ends right away.
fn can_pin(cores: &[u32]) -> bool {
    let set = cpu_set(cores);
    std::thread::spawn(move || sched_setaffinity(None, &set).is_ok())
        .join()
        .unwrap_or(false)
}

fn cpu_set(cores: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core as usize);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sys(frequencies: &[(u32, u64)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("a folder");
        for (core, khz) in frequencies {
            let folder = sys
                .path()
                .join(format!("devices/system/cpu/cpu{core}/cpufreq"));
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("cpuinfo_max_freq"), format!("{khz}\n")).expect("room");
        }
        sys
    }

    #[test]
    fn equal_cores_are_one_set() {
        let sets = core_sets(sys(&[]).path());
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(names, ["cpu:all"]);
        assert_eq!(sets[0].cores, allowed_cores());
    }

    #[test]
    fn cores_of_different_speed_are_sets_of_their_own() {
        let (little, mid, big) = (1_800_000, 2_400_000, 2_800_000);
        let of_phone = [
            (0, little),
            (1, little),
            (4, mid),
            (5, mid),
            (6, mid),
            (7, big),
        ];
        let named = |cores: &[u32]| sets_by_speed(sys(&of_phone).path(), cores.to_vec());
        let set = |name: &str, cores: &[u32]| (name.to_owned(), cores.to_vec());
        let all = [0, 1, 4, 5, 6, 7];
        let expected = [
            set("cpu:all", &all),
            set("cpu:big1", &[7]),
            set("cpu:mid3", &[4, 5, 6]),
            set("cpu:little2", &[0, 1]),
        ];
        assert_eq!(named(&all), expected);
        // A process that may use two of them.
        let expected = [
            set("cpu:all", &[1, 6]),
            set("cpu:big1", &[6]),
            set("cpu:little1", &[1]),
        ];
        assert_eq!(named(&[1, 6]), expected);
        assert_eq!(named(&[5, 6]), [set("cpu:all", &[5, 6])]);
    }

    #[test]
    fn cores_that_may_not_be_used_are_not_pinned_to() {
        let beyond = CpuSet::MAX_CPU as u32 - 1;
        assert!(!allowed_cores().contains(&beyond));
        assert!(!can_pin(&[beyond]));
    }
}
