//! What a profile says of one processor.

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::Fit;
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::loading::LoadTimes;

use crate::memory::{AcceleratorMemory, MemoryMode};
use crate::unsupported::UnsupportedSegment;

/// The layer times of one processor, as published.
#[derive(Clone, Debug)]
pub struct ProcessorTable {
    /// What plans call it.
    pub name: String,
    /// A CPU computes in main memory: nothing is moved into it or out of it.
    pub kind: ProcessorKind,
    /// The times of the layers, layer 1 first; none of those that it cannot run.
    pub times: Vec<Option<LayerTime>>,
    /// What it cannot run. A layer without a time is one of them by itself.
    pub unsupported: Vec<UnsupportedSegment>,
    /// Where the times come from least squares, what gives T(L) its exact interval; without it the interval
    /// is a bound.
    pub fit: Option<Fit>,
    /// The standard deviation of the relative error that all times have in common, beside those of their own, as wide as
    /// a normal 95 % interval makes it.
    pub shared_error: f64,
    /// What is known of an accelerator's memory; `None` where it limits nothing and loading is not asked about.
    pub memory: Option<AcceleratorMemory>,
}

impl ProcessorTable {
    /// Whether its runs are loaded when they are needed.
    pub(crate) fn is_reloaded(&self) -> bool {
        let is_accelerator = self.kind == ProcessorKind::Accelerator;
        let mode = self.memory.as_ref().map(|memory| memory.mode);
        is_accelerator && mode == Some(MemoryMode::Reload)
    }

    /// What loading runs takes, where that is part of T(L).
    pub(crate) fn charged(&self) -> Option<&LoadTimes> {
        let memory = self.memory.as_ref().filter(|_| self.is_reloaded());
        memory?.load_times.as_ref()
    }
}
