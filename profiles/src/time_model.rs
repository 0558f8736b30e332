//! T(L): how long a combination of layers takes (mlmp §4.2.2; docs/method.md §2).

use crate::derive::{Includes, LayerTime};
use crate::segment::Combination;
use crate::units::SignedNanos;

/// The time of any combination of one model's layers on a CPU and one accelerator.
#[derive(Clone, Debug)]
pub struct TimeModel<'a> {
    cpu: &'a [LayerTime],
    npu: &'a [LayerTime],
}

/// Layer times that make no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeModelError {
    /// The two processors' tables are of different models.
    #[error("the CPU table has {cpu} layers and the NPU table {npu}; both must be of one model")]
    LayerCounts {
        /// Layers in the CPU's table.
        cpu: usize,
        /// Layers in the NPU's table.
        npu: usize,
    },
    /// The combination is of another model.
    #[error("the combination has {given} layers, the model {expected}")]
    CombinationLength {
        /// Layers in the combination.
        given: usize,
        /// Layers in the model.
        expected: usize,
    },
    /// A combination needs a transfer that was neither published nor merged into a compute time.
    #[error("the combination moves data at layer {layer}, whose transfer time the profile lacks")]
    MissingTransfer {
        /// The layer, counted from 1.
        layer: usize,
    },
}

/// Where the time of a combination goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedTime {
    /// Computing on the CPU.
    pub cpu: SignedNanos,
    /// Computing on the NPU, with the transfers that the design could not separate from it.
    pub npu: SignedNanos,
    /// Moving data between the two.
    pub transfer: SignedNanos,
}

impl PredictedTime {
    /// T(L).
    pub fn total(self) -> SignedNanos {
        self.cpu + self.npu + self.transfer
    }
}

impl<'a> TimeModel<'a> {
    /// The model of these layer times, layer 1 first.
    pub fn new(cpu: &'a [LayerTime], npu: &'a [LayerTime]) -> Result<Self, TimeModelError> {
        if cpu.len() != npu.len() {
            return Err(TimeModelError::LayerCounts {
                cpu: cpu.len(),
                npu: npu.len(),
            });
        }
        Ok(TimeModel { cpu, npu })
    }

    /// T(L): the compute time of each layer where it runs, and a transfer wherever neighbours run on
    /// different processors, at the model's input and at its output.
    ///
    /// Entering the NPU before layer i costs t_d(i), leaving it after layer i costs t_r(i); under
    /// differencing t_d(i) = t_r(i-1), which makes this the papers' formula.
    pub fn predict(&self, combination: &Combination) -> Result<PredictedTime, TimeModelError> {
        if combination.layers() != self.npu.len() {
            return Err(TimeModelError::CombinationLength {
                given: combination.layers(),
                expected: self.npu.len(),
            });
        }
        let mut time = PredictedTime::default();
        for (index, &on_npu) in combination.on_npu().iter().enumerate() {
            if on_npu {
                time.npu = time.npu + self.npu[index].compute.value;
            } else {
                time.cpu = time.cpu + self.cpu[index].compute.value;
            }
        }
        for run in combination.npu_runs() {
            let (first, last) = (run.first() as usize, run.last() as usize);
            time.transfer = time.transfer + self.entering(first)? + self.leaving(last)?;
        }
        Ok(time)
    }

    fn entering(&self, layer: usize) -> Result<SignedNanos, TimeModelError> {
        let time = &self.npu[layer - 1];
        transfer(time.to_processor, time.compute_includes, |merged| {
            merged.to_processor
        })
        .ok_or(TimeModelError::MissingTransfer { layer })
    }

    fn leaving(&self, layer: usize) -> Result<SignedNanos, TimeModelError> {
        let time = &self.npu[layer - 1];
        transfer(time.from_processor, time.compute_includes, |merged| {
            merged.from_processor
        })
        .ok_or(TimeModelError::MissingTransfer { layer })
    }
}

/// The separate transfer, or nothing if the compute time already contains it.
fn transfer(
    separate: Option<crate::summary::Estimate>,
    includes: Includes,
    merged: impl Fn(Includes) -> bool,
) -> Option<SignedNanos> {
    separate
        .map(|estimate| estimate.value)
        .or(merged(includes).then_some(SignedNanos::ZERO))
}
