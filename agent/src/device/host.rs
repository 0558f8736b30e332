//! The machine that the agent runs on, a phone or a computer.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_protocol::{self as protocol, Clock, Conditions, MeterChoice};

use super::battery::Battery;
use super::cores::{CoreSet, core_sets};
use super::free_cores::FreeCores;
use super::kernel_throttling::KernelThrottling;
use super::power::{MeterError, Meters, PowerMeter};
use super::temperatures::Temperatures;
use super::thermal_service::{DUMPSYS, ThermalService};
use super::{CoresWait, Device, DeviceIdentity, ProcessorTime, conditions};

/// Where the kernel tells of the machine.
const SYS: &str = "/sys";

/// And of what runs on it.
const PROC: &str = "/proc";

/// How far apart visits of the same begin. On a virtual machine beside others, slow states of vector arithmetic lasted five to
/// ten seconds: of five visits so far apart no such state has more than three. No whole number of seconds, since what runs
/// beside may take turns of such.
const VISITS_APART: Duration = Duration::from_millis(4_500);

/// This machine.
#[derive(Debug)]
pub struct Host {
    start: Instant,
    cores: Vec<CoreSet>,
    free_cores: FreeCores,
    thermal_service: ThermalService,
    kernel_throttling: KernelThrottling,
    battery: Battery,
    meters: Meters,
    /// When the last visit of each began.
    visits: HashMap<String, Instant>,
}

impl Host {
    /// The device; its clock starts now.
    pub fn new() -> Self {
        let start = Instant::now();
        Host {
            start,
            cores: core_sets(Path::new(SYS)),
            free_cores: FreeCores::of(Path::new(PROC)),
            thermal_service: ThermalService::behind(Path::new(DUMPSYS)),
            kernel_throttling: KernelThrottling::told_under(Path::new(SYS)),
            battery: Battery::told_under(Path::new(SYS), Path::new(DUMPSYS)),
            meters: Meters::told_under(Path::new(SYS), start),
            visits: HashMap::new(),
        }
    }

    /// Its cores, all together and by speed.
    pub fn cores(&self) -> &[CoreSet] {
        &self.cores
    }
}

impl Default for Host {
    fn default() -> Self {
        Host::new()
    }
}

impl Device for Host {
    fn identity(&self) -> DeviceIdentity {
        let release = told("osrelease");
        let system = [std::env::consts::OS, &release, std::env::consts::ARCH];
        let name = Some(told("hostname")).filter(|name| !name.is_empty());
        DeviceIdentity {
            device: protocol::Device {
                name: name.unwrap_or_else(|| "localhost".to_owned()),
                simulated: false,
                clock: Clock::Monotonic,
            },
            system: system
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    fn now(&self) -> Nanos {
        self.start.elapsed().into()
    }

    fn idle(&mut self, gap: Nanos) {
        std::thread::sleep(gap.into());
    }

    fn wait_for_cores(&mut self, threads: u32) -> Option<CoresWait> {
        self.free_cores.wait_for(threads)
    }

    fn part_visits(&mut self, what: &str) {
        if let Some(last) = self.visits.get(what) {
            std::thread::sleep(VISITS_APART.saturating_sub(last.elapsed()));
        }
        self.visits.insert(what.to_owned(), Instant::now());
    }

    fn processor_time(&mut self) -> Option<ProcessorTime> {
        ProcessorTime::read(Path::new(PROC))
    }

    fn power_meter(&mut self, choice: &MeterChoice) -> Result<Box<dyn PowerMeter>, MeterError> {
        self.meters.open(choice, self.battery.charge().charging)
    }

    /// Whether it throttles, and how hot it is, is Android's to say; where Android does not, the kernel's.
    fn conditions(&mut self) -> Conditions {
        let told = self.thermal_service.ask();
        let zones = Temperatures::by_zones(&Path::new(SYS).join("class/thermal"));
        let charge = self.battery.charge();
        Conditions {
            thermal_status: told.status.or_else(|| self.kernel_throttling.status()),
            skin_temperature_millicelsius: told.temperatures.skin.or(zones.skin),
            soc_temperature_millicelsius: told.temperatures.soc.or(zones.soc),
            battery_temperature_millicelsius: charge.temperature,
            battery_percent: charge.percent,
            charging: charge.charging,
            ..conditions::read(Path::new(SYS))
        }
    }
}

/// What the kernel says of itself, on one line; empty if it says nothing.
fn told(name: &str) -> String {
    let text = std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
    let text = text.unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_on_while_the_machine_idles() {
        let mut host = Host::new();
        let before = host.now();
        host.idle(Nanos::from_micros(1_500));
        assert!(host.now() >= before + Nanos::from_micros(1_500));
    }

    #[test]
    fn visits_of_the_same_are_apart() {
        let mut host = Host::new();
        let begin = host.now();
        for what in ["one", "other", "one"] {
            host.part_visits(what);
        }
        let apart: Nanos = VISITS_APART.into();
        assert!(host.now() >= begin + apart);
    }

    #[test]
    fn a_real_machine_says_that_it_is_none_that_is_simulated() {
        let identity = Host::new().identity();
        assert!(!identity.device.simulated && !identity.device.name.is_empty());
        assert!(
            identity.system.starts_with(std::env::consts::OS),
            "{identity:?}"
        );
    }
}
