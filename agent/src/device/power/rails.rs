//! Meters of power rails, as the kernel's industrial I/O tells of them in `bus/iio`: those that count the energy of each rail in
//! one file, as Pixel phones have them, and those with a file for the power of each rail. All rails together are the device's
//! power.

use std::path::{Path, PathBuf};

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};

use super::counter::{Counted, CounterMeter, EnergySource};
use super::sampled::{PowerSource, SampledMeter};
use super::{MeterError, PowerMeter};
use crate::device::kernel_files::{entries, number, text};

/// These meters average over a fraction of a second.
const SETTLE: Nanos = Nanos::from_millis(2_000);

/// The file in which energies are counted.
const ENERGIES: &str = "energy_value";

/// All of them.
pub(super) fn open(sys: &Path) -> Result<Box<dyn PowerMeter>, MeterError> {
    let place = sys.join("bus/iio/devices");
    let mut devices: Vec<PathBuf> = entries(&place, "iio:device")
        .map(|(_, folder)| folder)
        .collect();
    devices.sort();
    let counters: Vec<PathBuf> = devices
        .iter()
        .map(|folder| folder.join(ENERGIES))
        .filter(|file| file.exists())
        .collect();
    let meter = |named: &[PathBuf]| {
        let names = named.iter().map(|folder| {
            let of_driver = text(&folder.join("name"));
            of_driver.unwrap_or_else(|| "iio".to_owned())
        });
        Meter {
            source: MeterSource::Rails,
            name: names.collect::<Vec<_>>().join("+"),
            settle_ns: SETTLE,
        }
    };
    if !counters.is_empty() {
        let folders: Vec<PathBuf> = counters
            .iter()
            .filter_map(|file| Some(file.parent()?.to_owned()))
            .collect();
        let source = EnergyFiles(counters);
        return Ok(Box::new(CounterMeter::of(meter(&folders), source)?));
    }
    let (mut folders, mut rails) = (Vec::new(), Vec::new());
    for folder in devices {
        let of_device = power_files(&folder);
        if !of_device.is_empty() {
            rails.extend(of_device);
            folders.push(folder);
        }
    }
    match rails.is_empty() {
        true => Err(MeterError::Missing {
            what: "meters of power rails",
            place,
        }),
        false => Ok(Box::new(SampledMeter::of(
            meter(&folders),
            PowerFiles(rails),
        )?)),
    }
}

/// Files in which the energy of each rail is counted.
struct EnergyFiles(Vec<PathBuf>);

impl EnergySource for EnergyFiles {
    fn read(&mut self, now: Nanos) -> Result<Counted, MeterError> {
        let mut sum = Counted {
            at: now,
            microjoules: 0,
        };
        for file in &self.0 {
            let refused = |reason: String| MeterError::Read {
                path: file.clone(),
                reason,
                remedy: "choose another --meter",
            };
            let written =
                std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
            let counted = energies(&written).ok_or_else(|| {
                refused("it does not hold a time and energies of rails".to_owned())
            })?;
            // Several meters are read within a few milliseconds; the last one's clock stands for all.
            sum.at = counted.at;
            sum.microjoules += counted.microjoules;
        }
        Ok(sum)
    }
}

/// What a file of energies says: `t=` and a time in milliseconds, then a line for each rail, which ends with its energy in
/// µW·s.
fn energies(written: &str) -> Option<Counted> {
    let mut lines = written.lines().filter(|line| !line.trim().is_empty());
    let time = lines.next()?.trim().strip_prefix("t=")?;
    let mut microjoules = 0_u64;
    let mut rails = 0;
    for line in lines {
        let (rail, energy) = line.rsplit_once(',')?;
        if !rail.contains('[') {
            return None;
        }
        microjoules = microjoules.checked_add(energy.trim().parse().ok()?)?;
        rails += 1;
    }
    (rails > 0).then_some(Counted {
        at: Nanos::from_millis(time.parse().ok()?),
        microjoules,
    })
}

/// The power of one rail.
struct PowerFile {
    file: PathBuf,
    /// What its numbers are in µW.
    unit_uw: f64,
}

/// The power of each rail.
struct PowerFiles(Vec<PowerFile>);

/// The files of a device that hold a power: in milliwatts, or in steps of so many.
fn power_files(folder: &Path) -> Vec<PowerFile> {
    let mut found: Vec<(String, PathBuf)> = entries(folder, "in_power").collect();
    found.sort();
    let of_input = |(name, file): &(String, PathBuf)| {
        let in_milliwatts = name.ends_with("_input").then_some(1_000.0);
        let in_steps = || {
            let channel = name.strip_suffix("_raw")?;
            let scale: Option<f64> = number(&folder.join(format!("{channel}_scale")));
            let scale = scale.or_else(|| number(&folder.join("in_power_scale")));
            Some(scale? * 1_000.0)
        };
        Some(PowerFile {
            file: file.clone(),
            unit_uw: in_milliwatts.or_else(in_steps)?,
        })
    };
    found.iter().filter_map(of_input).collect()
}

impl PowerSource for PowerFiles {
    fn read(&mut self) -> Result<(i64, f64), MeterError> {
        let mut sum_uw = 0.0;
        for PowerFile { file, unit_uw } in &self.0 {
            let value: Option<f64> = number(file);
            let value = value.ok_or_else(|| MeterError::Read {
                path: file.clone(),
                reason: "it holds no number that this user may read".to_owned(),
                remedy: "choose another --meter",
            })?;
            sum_uw += value * unit_uw;
        }
        Ok((sum_uw.round() as i64, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(sys: &Path, file: &str, text: &str) {
        let path = sys.join("bus/iio/devices").join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("room");
        fs::write(path, text).expect("room");
    }

    #[test]
    fn rails_that_count_their_energy_are_summed_by_their_own_clock() {
        let sys = tempfile::tempdir().expect("a folder");
        let counted = |time: u64, one: u64, other: u64| {
            let text = format!(
                "t={time}\nCH0(T={time})[VSYS_PWR_DISPLAY], {one}\nCH1(T={time})[S4M_VDD_CPUCL2], {other}\n"
            );
            write(sys.path(), "iio:device0/energy_value", &text);
        };
        write(sys.path(), "iio:device0/name", "s2mpg10-odpm\n");
        counted(5_000, 100, 200);
        let mut meter = open(sys.path()).expect("rails");
        assert_eq!(meter.meter().name, "s2mpg10-odpm");
        meter.begin(Nanos::ZERO).expect("rails");
        // 4 J in two seconds of the meter's clock, which was read a little early: 2 W.
        counted(7_000, 3_000_100, 1_000_200);
        let drawn = meter.end(Nanos::from_millis(2_500)).expect("rails");
        assert_eq!(drawn.energy.as_nanojoules(), 5_000_000_000);
        write(sys.path(), "iio:device0/energy_value", "t=7000\n");
        assert!(matches!(open(sys.path()), Err(MeterError::Read { .. })));
    }

    #[test]
    fn rails_that_tell_their_power_are_summed() {
        let sys = tempfile::tempdir().expect("a folder");
        write(sys.path(), "iio:device0/in_power0_input", "1200\n");
        write(sys.path(), "iio:device1/in_power1_raw", "40\n");
        write(sys.path(), "iio:device1/in_power1_scale", "12.5\n");
        // No power at all.
        write(sys.path(), "iio:device2/in_voltage0_raw", "5\n");
        let mut meter = open(sys.path()).expect("rails");
        meter.begin(Nanos::ZERO).expect("rails");
        let drawn = meter.end(Nanos::from_millis(1_000)).expect("rails");
        assert_eq!(drawn.energy.as_nanojoules(), 1_700_000_000);
    }

    #[test]
    fn a_device_without_rails_says_where_they_were_looked_for() {
        let sys = tempfile::tempdir().expect("a folder");
        let error = open(sys.path()).err().expect("nothing there").to_string();
        assert!(error.contains("bus/iio/devices"), "{error}");
    }
}
