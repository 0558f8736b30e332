//! The memory of accelerators: what runs need of it, and what loading them when they are needed costs.

use std::collections::BTreeMap;
use std::fmt;

use layerlab_profiles::loading::{LoadTimes, MemoryNeeds};
use layerlab_profiles::{Bytes, Segment};

use crate::placement::PackedPlacement;

/// How the runs of a placement share the memory of their accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryMode {
    /// All of them stay loaded, and have to fit together.
    #[default]
    Resident,
    /// Each is loaded when it is needed, in every inference, and has to fit alone; loading it is part of T(L).
    Reload,
}

impl MemoryMode {
    /// The name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            MemoryMode::Resident => "resident",
            MemoryMode::Reload => "reload",
        }
    }
}

impl fmt::Display for MemoryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is published of an accelerator's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorMemory {
    /// How much memory it has for loaded segments; `None` where nothing is known to limit them.
    pub capacity: Option<Bytes>,
    /// What each segment that was loaded takes of it.
    pub loaded: BTreeMap<Segment, Bytes>,
    /// How long loading takes; `None` where the profile does not tell.
    pub load_times: Option<LoadTimes>,
    /// How the runs of a placement share it.
    pub mode: MemoryMode,
}

/// What the runs of a placement need of an accelerator's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What plans call the accelerator.
    pub processor: String,
    /// How the runs share its memory.
    pub mode: MemoryMode,
    /// What all runs need together, or, where each is loaded when it is needed, the largest.
    pub needed: Bytes,
    /// How much memory there is.
    pub capacity: Bytes,
}

impl MemoryUse {
    /// Whether there is enough.
    pub fn fits(&self) -> bool {
        self.needed <= self.capacity
    }
}

/// Of one that does not fit: why.
impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryUse {
            processor,
            mode,
            needed,
            capacity,
        } = self;
        let what = match mode {
            MemoryMode::Resident => "its runs there need",
            MemoryMode::Reload => "its largest run there needs",
        };
        write!(
            f,
            "{what} {needed} of the memory of the {processor}, which has {capacity}"
        )
    }
}

/// The limit that an accelerator's memory sets to placements.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLimit {
    needs: MemoryNeeds,
    pub(crate) capacity: u64,
    mode: MemoryMode,
}

impl MemoryLimit {
    /// The limit of a memory that is known, in a model of `layers` layers.
    pub(crate) fn of(layers: usize, memory: &AcceleratorMemory) -> Option<MemoryLimit> {
        let capacity = memory.capacity?;
        (!memory.loaded.is_empty()).then(|| MemoryLimit {
            needs: MemoryNeeds::of(layers as u32, &memory.loaded),
            capacity: capacity.as_bytes(),
            mode: memory.mode,
        })
    }

    /// What the layers from one index to another, both counted from 0, need as one run. What nothing tells is taken to
    /// fit nowhere.
    pub(crate) fn need(&self, first: usize, last: usize) -> u64 {
        let segment = Segment::new(first as u32 + 1, last as u32 + 1).ok();
        let need = segment.and_then(|segment| self.needs.need(segment));
        need.map_or(u64::MAX, Bytes::as_bytes)
    }

    /// What runs that are over leave of what is loaded for the next, where they need so much: all of it stays, or nothing.
    pub(crate) fn stays(&self, need: u64) -> u64 {
        match self.mode {
            MemoryMode::Resident => need,
            MemoryMode::Reload => 0,
        }
    }

    /// What the runs of a placement on `processor`, counted from 0, need: together, or the largest of them.
    pub(crate) fn needed(&self, placement: &PackedPlacement, processor: usize) -> u64 {
        let (mut needed, mut first) = (0_u64, None);
        for index in 0..=placement.layers() {
            let is_here = index < placement.layers() && placement.processor(index) == processor;
            match (first, is_here) {
                (None, true) => first = Some(index),
                (Some(begin), false) => {
                    let need = self.need(begin, index - 1);
                    needed = match self.mode {
                        MemoryMode::Resident => needed.saturating_add(need),
                        MemoryMode::Reload => needed.max(need),
                    };
                    first = None;
                }
                _ => {}
            }
        }
        needed
    }

    /// The same with what it is needed of.
    pub(crate) fn memory_use(
        &self,
        placement: &PackedPlacement,
        processor: usize,
        name: &str,
    ) -> MemoryUse {
        MemoryUse {
            processor: name.to_owned(),
            mode: self.mode,
            needed: Bytes::from_bytes(self.needed(placement, processor)),
            capacity: Bytes::from_bytes(self.capacity),
        }
    }
}
