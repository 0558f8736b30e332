//! RAPL: energy that the processor's packages count themselves, as Linux tells of it in `class/powercap`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};

use super::counter::{Counted, CounterMeter, EnergySource};
use super::{MeterError, PowerMeter};
use crate::device::kernel_files::{entries, number, text};

/// Packages are counted anew every millisecond.
const SETTLE: Nanos = Nanos::from_millis(100);

/// One package, or its memory, whose counter begins at zero again when it is full.
struct Zone {
    file: PathBuf,
    /// The largest value that the counter has.
    range: u64,
    last: u64,
    since: u64,
}

struct Rapl(Vec<Zone>);

/// All packages with their memory, where the kernel counts that beside them.
pub(super) fn open(sys: &Path) -> Result<Box<dyn PowerMeter>, MeterError> {
    let powercap = sys.join("class/powercap");
    let (mut names, mut zones) = (Vec::new(), Vec::new());
    let mut found: Vec<(String, PathBuf)> = entries(&powercap, "intel-rapl:").collect();
    found.sort();
    for (_, folder) in found {
        let Some(name) = text(&folder.join("name")) else {
            continue;
        };
        // A package holds its cores; the platform (psys) would hold the packages.
        if name.starts_with("package") || name == "dram" {
            zones.push(Zone::open(&folder)?);
            names.push(name);
        }
    }
    if zones.is_empty() {
        return Err(MeterError::Missing {
            what: "energy counters of a processor (RAPL)",
            place: powercap,
        });
    }
    let meter = Meter {
        source: MeterSource::Rapl,
        name: names.join("+"),
        settle_ns: SETTLE,
    };
    Ok(Box::new(CounterMeter::of(meter, Rapl(zones))?))
}

impl Zone {
    fn open(folder: &Path) -> Result<Zone, MeterError> {
        let file = folder.join("energy_uj");
        let last = counter(&file)?;
        let range = number(&folder.join("max_energy_range_uj"));
        Ok(Zone {
            range: range.unwrap_or(u64::MAX),
            last,
            since: 0,
            file,
        })
    }

    /// What was counted since it was opened, in µJ.
    fn read(&mut self) -> Result<u64, MeterError> {
        let now = counter(&self.file)?;
        self.since += match now.checked_sub(self.last) {
            Some(more) => more,
            // It was full, and begins again.
            None => self.range.saturating_sub(self.last).saturating_add(now),
        };
        self.last = now;
        Ok(self.since)
    }
}

fn counter(file: &Path) -> Result<u64, MeterError> {
    let refused = |reason: String, remedy| MeterError::Read {
        path: file.to_owned(),
        reason,
        remedy,
    };
    let read = fs::read_to_string(file).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                "the kernel lets root alone read it: allow your user to, for instance with `sudo chmod a+r`"
            }
            _ => "choose another --meter",
        };
        refused(error.to_string(), remedy)
    })?;
    let parsed = read.trim().parse();
    parsed.map_err(|_| refused("it holds no number".to_owned(), "choose another --meter"))
}

impl EnergySource for Rapl {
    fn read(&mut self, now: Nanos) -> Result<Counted, MeterError> {
        let mut microjoules = 0;
        for zone in &mut self.0 {
            microjoules += zone.read()?;
        }
        Ok(Counted {
            at: now,
            microjoules,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(sys: &Path, folder: &str, name: &str, energy: u64) -> PathBuf {
        let folder = sys.join("class/powercap").join(folder);
        fs::create_dir_all(&folder).expect("room");
        fs::write(folder.join("name"), format!("{name}\n")).expect("room");
        fs::write(folder.join("max_energy_range_uj"), "1000000\n").expect("room");
        let file = folder.join("energy_uj");
        fs::write(&file, format!("{energy}\n")).expect("room");
        file
    }

    #[test]
    fn packages_and_their_memory_are_summed_over_the_wraps_of_their_counters() {
        let sys = tempfile::tempdir().expect("a folder");
        let package = zone(sys.path(), "intel-rapl:0", "package-0", 999_000);
        let memory = zone(sys.path(), "intel-rapl:0:1", "dram", 10);
        // Part of the package, and what the package is part of.
        zone(sys.path(), "intel-rapl:0:0", "core", 5);
        zone(sys.path(), "intel-rapl:1", "psys", 7);
        let mut meter = open(sys.path()).expect("counters");
        assert_eq!(meter.meter().name, "package-0+dram");
        let at = Nanos::from_millis;
        meter.begin(at(0)).expect("counters");
        // Twice full in one window: seen because it is looked at meanwhile.
        for (seconds, value) in [(1, 500_000), (2, 100_000)] {
            fs::write(&package, format!("{value}\n")).expect("room");
            meter.poll(at(seconds * 1_000)).expect("counters");
        }
        fs::write(&memory, "5010\n").expect("room");
        let drawn = meter.end(at(4_000)).expect("counters");
        // 1,000 + 500,000 until it was full first and 600,000 until the second time; 5,000 of memory.
        assert_eq!(
            drawn.energy.as_nanojoules(),
            (501_000 + 600_000 + 5_000) * 1_000
        );
    }

    #[test]
    fn a_machine_without_counters_says_where_they_were_looked_for() {
        let sys = tempfile::tempdir().expect("a folder");
        let error = open(sys.path()).err().expect("nothing there").to_string();
        assert!(
            error.contains("RAPL") && error.contains("powercap"),
            "{error}"
        );
        let file = zone(sys.path(), "intel-rapl:0", "package-0", 1);
        fs::write(file, "none\n").expect("room");
        assert!(matches!(open(sys.path()), Err(MeterError::Read { .. })));
    }
}
