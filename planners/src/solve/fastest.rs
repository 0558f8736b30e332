//! The fastest of all placements, whatever its accuracy: exact, because T(L) looks no further than from a
//! layer to the next. It proves that a time limit cannot be met.

use crate::placement::Placement;
use crate::times::TimeTable;

/// The shortest time to have run some layers, with the last of them on one processor.
#[derive(Clone, Copy)]
struct Path {
    time: i64,
    placement: Placement,
}

/// The placement of the least T(L), by dynamic programming over layers and the processor of the last one.
pub(super) fn fastest(times: &TimeTable, all_cpu: Placement) -> Placement {
    let start = |time| Path {
        time,
        placement: all_cpu,
    };
    // Before the first layer everything is in main memory.
    let (mut on_cpu, mut on_npu) = (start(0), None::<Path>);
    for index in 0..times.layers() {
        let (enter, compute, _) = times.on_npu(index);
        let leave_before = |path: Path| Path {
            time: path.time + times.on_npu(index - 1).2,
            ..path
        };
        let from_cpu = on_cpu.after(enter + compute).on_npu(index);
        let stayed = on_npu.map(|path| path.after(compute).on_npu(index));
        let left = on_npu.map(leave_before);
        on_cpu = on_cpu.or_faster(left).after(times.on_cpu(index));
        on_npu = Some(from_cpu.or_faster(stayed));
    }
    let last = times.layers() - 1;
    let left = on_npu.map(|path| path.after(times.on_npu(last).2));
    on_cpu.or_faster(left).placement
}

impl Path {
    fn after(mut self, time: i64) -> Path {
        self.time += time;
        self
    }

    fn on_npu(mut self, index: usize) -> Path {
        self.placement = self.placement.flipped(index);
        self
    }

    fn or_faster(self, other: Option<Path>) -> Path {
        other.filter(|other| other.time < self.time).unwrap_or(self)
    }
}
