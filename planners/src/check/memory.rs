//! What a placement needs of memories, and what loading its runs takes, the slow and plain way (docs/method.md §11).

use std::collections::BTreeMap;

use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::{Bytes, Placement, Segment, SignedNanos};

use super::Evidence;
use crate::memory::{AcceleratorMemory, MemoryMode, MemoryUse};
use crate::times::ProcessorTable;

/// What the placement needs of the memory of each processor that has a limit.
pub(super) fn uses(combination: &Placement, evidence: &Evidence) -> Vec<MemoryUse> {
    let limited = (0..)
        .zip(evidence.processors)
        .filter_map(|(on, processor)| {
            let memory = processor.memory.as_ref()?;
            let capacity = memory.capacity.filter(|_| !memory.loaded.is_empty())?;
            let needs = runs(combination, on).map(|run| need(run, memory));
            let needed = match memory.mode {
                MemoryMode::Resident => needs.fold(0, u64::saturating_add),
                MemoryMode::Reload => needs.max().unwrap_or(0),
            };
            Some(MemoryUse {
                processor: processor.name.clone(),
                mode: memory.mode,
                needed: Bytes::from_bytes(needed),
                capacity,
            })
        });
    limited.collect()
}

/// What the placement needs more of than there is, if it does.
pub(super) fn shortage(combination: &Placement, evidence: &Evidence) -> Option<MemoryUse> {
    let mut uses = uses(combination, evidence).into_iter();
    uses.find(|used| used.needed > used.capacity)
}

/// What loading the runs takes that are loaded when they are needed.
pub(super) fn loading(combination: &Placement, evidence: &Evidence) -> SignedNanos {
    let mut sum = SignedNanos::ZERO;
    for (on, processor) in (0..).zip(evidence.processors) {
        if let Some(load_times) = reloaded(processor).and_then(|memory| memory.load_times.as_ref())
        {
            for run in runs(combination, on) {
                sum = sum + load_times.fixed();
                for layer in run.first()..=run.last() {
                    sum = sum + load_times.layer(layer);
                }
            }
        }
    }
    sum
}

/// The square of half the width, in ns, of the interval of the same on one processor; `None` where it is not known.
pub(super) fn loading_square(
    combination: &Placement,
    on: u8,
    processor: &ProcessorTable,
) -> Option<f64> {
    let Some(memory) = reloaded(processor) else {
        return Some(0.0);
    };
    let half_width = memory
        .load_times
        .as_ref()?
        .half_width_ns(runs(combination, on))?;
    Some(half_width * half_width)
}

/// The memory of an accelerator whose runs are loaded when they are needed.
fn reloaded(processor: &ProcessorTable) -> Option<&AcceleratorMemory> {
    let memory = processor.memory.as_ref()?;
    let is_reloaded =
        processor.kind == ProcessorKind::Accelerator && memory.mode == MemoryMode::Reload;
    is_reloaded.then_some(memory)
}

/// The runs on a processor, layer by layer.
fn runs(combination: &Placement, on: u8) -> impl Iterator<Item = Segment> + '_ {
    let all = combination.processors();
    (0..all.len())
        .filter(move |&index| all[index] == on && (index == 0 || all[index - 1] != on))
        .filter_map(move |first| {
            let length = all[first..]
                .iter()
                .take_while(|&&there| there == on)
                .count();
            Segment::new(first as u32 + 1, (first + length) as u32).ok()
        })
}

/// The least sum of loaded segments that have all layers of a run: forward from its first layer, by each loaded segment that
/// has the next one.
fn need(run: Segment, memory: &AcceleratorMemory) -> u64 {
    // What all layers before a layer need.
    let mut before: BTreeMap<u32, u64> = BTreeMap::from([(run.first(), 0)]);
    for next in run.first()..=run.last() {
        let Some(&so_far) = before.get(&next) else {
            continue;
        };
        for (segment, bytes) in &memory.loaded {
            if segment.first() <= next && next <= segment.last() {
                let then = before
                    .entry(segment.last().min(run.last()) + 1)
                    .or_insert(u64::MAX);
                *then = (*then).min(so_far.saturating_add(bytes.as_bytes()));
            }
        }
    }
    before.get(&(run.last() + 1)).copied().unwrap_or(u64::MAX)
}
