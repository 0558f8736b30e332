//! What a process has used, as Linux tells it.

use std::fs::read_to_string;

/// The kernel counts processor time in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

/// What a process has used since it began.
#[derive(Clone, Copy, Debug)]
pub struct ProcessUsage {
    /// The process that started it.
    pub parent: u32,
    /// Processor time, in seconds.
    pub cpu_s: f64,
    /// The processor time of its children that have ended, in seconds.
    pub ended_children_cpu_s: f64,
    /// Its memory now, in bytes.
    pub memory_bytes: u64,
    /// The most memory that it ever had, in bytes.
    pub peak_bytes: u64,
}

impl ProcessUsage {
    /// Of this process.
    pub fn own() -> ProcessUsage {
        ProcessUsage::of("self").expect("this process runs, on Linux")
    }

    /// Of the process of this number; none if it has ended.
    pub fn of(process: &str) -> Option<ProcessUsage> {
        let read = |name: &str| read_to_string(format!("/proc/{process}/{name}")).ok();
        let (stat, status) = (read("stat")?, read("status")?);
        // The program's name, in parentheses, may contain anything. The parent is the second field after it, and processor times
        // are the twelfth to the fifteenth: its own by itself and in the kernel, and its children's.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        let bytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
            Some(kib * 1024)
        };
        Some(ProcessUsage {
            parent: fields.get(1)?.parse().ok()?,
            cpu_s: (ticks(11)? + ticks(12)?) / TICKS_PER_S,
            ended_children_cpu_s: (ticks(13)? + ticks(14)?) / TICKS_PER_S,
            memory_bytes: bytes("VmRSS:")?,
            peak_bytes: bytes("VmHWM:")?,
        })
    }
}
