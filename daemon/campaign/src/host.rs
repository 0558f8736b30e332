//! The machine that the daemon runs on, for the provenance.

use layerlab_profiles::Bytes;
use layerlab_profiles::document::Host;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// What this machine is. What the system does not tell is `unknown`.
pub fn host() -> Host {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let unknown = || "unknown".to_owned();
    let name = System::long_os_version().unwrap_or_else(unknown);
    let kernel = System::kernel_version().unwrap_or_else(unknown);
    Host {
        system: format!("{name}, kernel {kernel}, {}", System::cpu_arch()),
        cpu: system
            .cpus()
            .first()
            .map_or_else(unknown, |cpu| cpu.brand().trim().to_owned()),
        logical_cores: u32::try_from(system.cpus().len()).unwrap_or(u32::MAX),
        memory_bytes: Bytes::from_bytes(system.total_memory()),
    }
}
