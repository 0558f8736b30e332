//! What Linux says of throttling, where there is no service to ask: cooling devices that hold processors back, and
//! counters of processors that held themselves back.
//!
//! Neither says how badly. A processor that is held back is given as Android's status 1, light throttling, which is
//! enough to reject a block.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::kernel_files::{entries, number, text};

/// Android's thermal status of a device that does not throttle.
const NONE: u8 = 0;

/// Android's thermal status of a device that throttles lightly.
const LIGHT: u8 = 1;

/// The throttling that the kernel tells of.
#[derive(Debug)]
pub(super) struct KernelThrottling {
    sys: PathBuf,
    /// How often each core had throttled when it was last asked, by the core's name.
    counted: BTreeMap<String, u64>,
}

impl KernelThrottling {
    /// The kernel whose files are under `sys`.
    pub(super) fn told_under(sys: &Path) -> Self {
        KernelThrottling {
            sys: sys.to_owned(),
            counted: BTreeMap::new(),
        }
    }

    /// 1 if a processor is being held back now, or has been since this was last asked; 0 if none is; `None` where the
    /// kernel does not tell.
    pub(super) fn status(&mut self) -> Option<u8> {
        let told = [self.cooling(), self.counting()];
        let throttles = told.into_iter().flatten().reduce(|a, b| a || b)?;
        Some(if throttles { LIGHT } else { NONE })
    }

    /// Whether a cooling device holds a processor back: state 0 is none, each further one means less speed.
    fn cooling(&self) -> Option<bool> {
        entries(&self.sys.join("class/thermal"), "cooling_device")
            .filter(|(_, device)| {
                text(&device.join("type")).is_some_and(|kind| is_of_processors(&kind))
            })
            .filter_map(|(_, device)| number::<i64>(&device.join("cur_state")))
            .map(|state| state > 0)
            .reduce(|a, b| a || b)
    }

    /// Whether a core's own counter grew. What was counted before this was first asked says nothing.
    fn counting(&mut self) -> Option<bool> {
        let counted: BTreeMap<String, u64> = entries(&self.sys.join("devices/system/cpu"), "cpu")
            .filter_map(|(core, folder)| {
                let counter = folder.join("thermal_throttle/core_throttle_count");
                Some((core, number(&counter)?))
            })
            .collect();
        let before = std::mem::replace(&mut self.counted, counted);
        before
            .iter()
            .filter_map(|(core, before)| Some(self.counted.get(core)? > before))
            .reduce(|a, b| a || b)
    }
}

/// Whether cooling devices of this type slow processors down, rather than turn fans or dim screens: by their clock
/// (ACPI, cpufreq), or by forcing them to idle.
fn is_of_processors(kind: &str) -> bool {
    kind == "Processor"
        || kind == "intel_powerclamp"
        || ["cpufreq-", "thermal-cpufreq-", "idle-", "thermal-idle-"]
            .iter()
            .any(|prefix| kind.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(sys: &Path, file: &str, content: &str) {
        let path = sys.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("room");
        fs::write(path, content).expect("room");
    }

    fn cooling_device(sys: &Path, number: u32, kind: &str, state: &str) {
        let folder = format!("class/thermal/cooling_device{number}");
        write(sys, &format!("{folder}/type"), &format!("{kind}\n"));
        write(sys, &format!("{folder}/cur_state"), &format!("{state}\n"));
    }

    fn count(sys: &Path, core: u32, times: u64) {
        let file = format!("devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count");
        write(sys, &file, &format!("{times}\n"));
    }

    #[test]
    fn a_kernel_that_tells_nothing_has_no_status() {
        let sys = tempfile::tempdir().expect("a folder");
        let mut kernel = KernelThrottling::told_under(sys.path());
        assert_eq!(kernel.status(), None);
        // A fan that turns is no processor that is held back.
        cooling_device(sys.path(), 0, "Fan", "3");
        cooling_device(sys.path(), 1, "LCD", "7");
        assert_eq!(kernel.status(), None);
    }

    #[test]
    fn a_processor_that_is_held_back_throttles_until_it_is_let_go() {
        for kind in [
            "Processor",
            "intel_powerclamp",
            "thermal-cpufreq-4",
            "cpufreq-cpu0",
            "thermal-idle-2",
        ] {
            let sys = tempfile::tempdir().expect("a folder");
            let mut kernel = KernelThrottling::told_under(sys.path());
            cooling_device(sys.path(), 0, "Processor", "0");
            // What powerclamp says when it is off.
            cooling_device(sys.path(), 7, kind, "-1");
            assert_eq!(kernel.status(), Some(0), "{kind}");
            cooling_device(sys.path(), 7, kind, "2");
            assert_eq!(kernel.status(), Some(1), "{kind}");
            assert_eq!(kernel.status(), Some(1), "{kind}: it is still so");
            cooling_device(sys.path(), 7, kind, "0");
            assert_eq!(kernel.status(), Some(0), "{kind}");
        }
    }

    #[test]
    fn a_core_that_throttled_since_it_was_last_asked_has_throttled() {
        let sys = tempfile::tempdir().expect("a folder");
        let mut kernel = KernelThrottling::told_under(sys.path());
        count(sys.path(), 0, 0);
        count(sys.path(), 1, 4_711);
        assert_eq!(kernel.status(), None, "when it counted is not known yet");
        assert_eq!(kernel.status(), Some(0));
        count(sys.path(), 1, 4_712);
        assert_eq!(kernel.status(), Some(1));
        assert_eq!(kernel.status(), Some(0), "that was before");
    }

    #[test]
    fn one_that_throttles_is_enough() {
        let sys = tempfile::tempdir().expect("a folder");
        let mut kernel = KernelThrottling::told_under(sys.path());
        cooling_device(sys.path(), 0, "Processor", "0");
        count(sys.path(), 0, 1);
        assert_eq!(kernel.status(), Some(0));
        count(sys.path(), 0, 2);
        assert_eq!(kernel.status(), Some(1));
    }
}
