//! How much of the machine's processor time its host gave to others.

use std::fs;
use std::path::Path;

/// The time of all cores since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// All of it.
    pub all: u64,
    /// What a virtual machine's host gave to others while something was to run here.
    pub stolen: u64,
}

impl ProcessorTime {
    /// As the kernel's files under `proc` tell it.
    pub(super) fn read(proc: &Path) -> Option<ProcessorTime> {
        let stat = fs::read_to_string(proc.join("stat")).ok()?;
        let of_all_cores = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = of_all_cores.split_whitespace().map(str::parse::<u64>);
        // Time of guests, which follows, is part of the user's.
        let ticks: Vec<u64> = ticks.take(8).collect::<Result<_, _>>().ok()?;
        Some(ProcessorTime {
            all: ticks.iter().sum(),
            stolen: *ticks.get(7)?,
        })
    }

    /// Which share of the time since `before` was stolen, in whole per cent.
    pub fn stolen_percent_since(self, before: ProcessorTime) -> u64 {
        let all = self.all.saturating_sub(before.all);
        let stolen = self.stolen.saturating_sub(before.stolen).min(all);
        (stolen * 100).checked_div(all).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let proc = tempfile::tempdir().expect("a folder");
        let read = |stat: &str| {
            fs::write(proc.path().join("stat"), stat).expect("room");
            ProcessorTime::read(proc.path())
        };
        let before = read("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3\n").expect("told");
        assert_eq!((before.all, before.stolen), (1000, 40));
        let after = read("cpu  150 0 50 820 10 0 0 70 9 0\n").expect("told");
        assert_eq!(after.stolen_percent_since(before), 30);
        assert_eq!(after.stolen_percent_since(after), 0);
        assert_eq!(before.stolen_percent_since(after), 0);
        assert_eq!(read("cpu  100 0 50 800\n"), None, "an old kernel");
        assert_eq!(read("cpu  100 0 x 800 10 0 0 40\n"), None);
        assert_eq!(read(""), None);
    }
}
