//! T(L): how long a placement takes (mlmp §4.2.2; docs/method.md §2).

use crate::layer_time::LayerTime;
use crate::placement::{MOST_PROCESSORS, Placement};
use crate::processor_kind::ProcessorKind;
use crate::summary::Estimate;
use crate::units::SignedNanos;

/// The time of any placement of one model's layers on some processors.
#[derive(Clone, Debug)]
pub struct TimeModel {
    processors: Vec<ProcessorTimes>,
    layers: usize,
}

/// What the layers of a model cost on one processor.
#[derive(Clone, Debug)]
pub struct ProcessorTimes {
    /// A CPU computes in main memory: nothing is moved into it or out of it.
    pub kind: ProcessorKind,
    /// The times of the layers, layer 1 first; none of those that the processor cannot run.
    pub times: Vec<Option<LayerTime>>,
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
    /// The tables of several processors are of different models.
    #[error(
        "the table of processor {processor} has {given} layers and that of processor 0 {expected}; all must be of one model"
    )]
    Tables {
        /// The processor, counted from 0.
        processor: usize,
        /// Layers in its table.
        given: usize,
        /// Layers in the table of processor 0.
        expected: usize,
    },
    /// The placement is of another model.
    #[error("the combination has {given} layers, the model {expected}")]
    CombinationLength {
        /// Layers in the placement.
        given: usize,
        /// Layers in the model.
        expected: usize,
    },
    /// The placement names a processor that there is not.
    #[error("the placement names processor {processor}, of which there are no times")]
    NoSuchProcessor {
        /// The processor, counted from 0.
        processor: u8,
    },
    /// A placement has a layer on a processor that cannot run it.
    #[error("the placement has layer {layer} on processor {processor}, which cannot run it")]
    Unsupported {
        /// The layer, counted from 1.
        layer: usize,
        /// The processor, counted from 0.
        processor: u8,
    },
    /// A placement needs a transfer that was neither published nor merged into a compute time.
    #[error("the combination moves data at layer {layer}, whose transfer time the profile lacks")]
    MissingTransfer {
        /// The layer, counted from 1.
        layer: usize,
    },
}

/// Where the time of a placement goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedTime {
    /// Computing on each processor, with the transfers that the design could not separate from it; 0 on
    /// processors that run nothing and on those that there are not.
    pub compute: [SignedNanos; MOST_PROCESSORS],
    /// Moving data into accelerators and out of them.
    pub transfer: SignedNanos,
    /// Loading the runs of accelerators, where each is loaded when it is needed; a [`TimeModel`] has them loaded before.
    pub loading: SignedNanos,
}

impl PredictedTime {
    /// Computing on one processor, counted from 0.
    ///
    /// # Panics
    /// When the processor has no digit.
    pub fn on(self, processor: usize) -> SignedNanos {
        self.compute[processor]
    }

    /// Computing on all processors but the first: with two, on the NPU.
    pub fn off_cpu(self) -> SignedNanos {
        sum(&self.compute[1..])
    }

    /// T(L).
    pub fn total(self) -> SignedNanos {
        sum(&self.compute) + self.transfer + self.loading
    }
}

fn sum(times: &[SignedNanos]) -> SignedNanos {
    times
        .iter()
        .fold(SignedNanos::ZERO, |sum, &time| sum + time)
}

impl TimeModel {
    /// The model of the two processors of the papers: a CPU and an NPU, layer 1 first.
    pub fn new<T: Copy + Into<Option<LayerTime>>>(
        cpu: &[T],
        npu: &[T],
    ) -> Result<Self, TimeModelError> {
        if cpu.len() != npu.len() {
            return Err(TimeModelError::LayerCounts {
                cpu: cpu.len(),
                npu: npu.len(),
            });
        }
        TimeModel::of(vec![
            ProcessorTimes::new(ProcessorKind::Cpu, cpu),
            ProcessorTimes::new(ProcessorKind::Accelerator, npu),
        ])
    }

    /// The model of any processors, processor 0 first.
    pub fn of(processors: Vec<ProcessorTimes>) -> Result<Self, TimeModelError> {
        let layers = processors.first().map_or(0, |first| first.times.len());
        let other = processors
            .iter()
            .position(|processor| processor.times.len() != layers);
        match other {
            None => Ok(TimeModel { processors, layers }),
            Some(processor) => Err(TimeModelError::Tables {
                processor,
                given: processors[processor].times.len(),
                expected: layers,
            }),
        }
    }

    /// T(L): the compute time of each layer where it runs, and for each maximal run of layers on an accelerator
    /// the transfer into it before the first and out of it after the last.
    ///
    /// Everything that leaves a processor passes through main memory: from the accelerator p to the
    /// accelerator q after layer i costs t_r(i) on p and t_d(i+1) on q. Under differencing
    /// t_d(i) = t_r(i-1), which makes this the papers' formula where there is one accelerator.
    pub fn predict(&self, placement: &Placement) -> Result<PredictedTime, TimeModelError> {
        if placement.layers() != self.layers {
            return Err(TimeModelError::CombinationLength {
                given: placement.layers(),
                expected: self.layers,
            });
        }
        let mut time = PredictedTime::default();
        for (run, processor) in placement.runs() {
            let place = usize::from(processor);
            let there = self
                .processors
                .get(place)
                .ok_or(TimeModelError::NoSuchProcessor { processor })?;
            let (first, last) = (run.first() as usize, run.last() as usize);
            let at = |layer: usize| {
                there.times[layer - 1].ok_or(TimeModelError::Unsupported { layer, processor })
            };
            for layer in first..=last {
                time.compute[place] = time.compute[place] + at(layer)?.compute.value;
            }
            if there.kind == ProcessorKind::Accelerator {
                let (entering, leaving) = (entering(at(first)?), leaving(at(last)?));
                let missing = |layer| TimeModelError::MissingTransfer { layer };
                time.transfer = time.transfer
                    + entering.ok_or(missing(first))?
                    + leaving.ok_or(missing(last))?;
            }
        }
        Ok(time)
    }
}

impl ProcessorTimes {
    /// The times of a processor of this kind, layer 1 first.
    pub fn new<T: Copy + Into<Option<LayerTime>>>(kind: ProcessorKind, times: &[T]) -> Self {
        ProcessorTimes {
            kind,
            times: times.iter().map(|&time| time.into()).collect(),
        }
    }

    /// What each run of layers takes that begins with layer `first`, counted from 1, and comes from main memory and goes back
    /// there: the run of that layer alone first. It is nothing where a transfer was neither published nor merged into a
    /// compute time. Runs end before the first layer that the processor cannot run.
    pub fn runs_from(&self, first: usize) -> Vec<Option<SignedNanos>> {
        let layers = self.times.get(first.wrapping_sub(1)..).unwrap_or_default();
        let runs = layers.iter().map_while(|time| *time);
        let (mut computed, mut enters) = (SignedNanos::ZERO, None);
        let moved = |transfer: Option<SignedNanos>| match self.kind {
            ProcessorKind::Cpu => Some(SignedNanos::ZERO),
            ProcessorKind::Accelerator => transfer,
        };
        runs.map(|time| {
            computed = computed + time.compute.value;
            let entering = *enters.get_or_insert_with(|| moved(entering(time)));
            Some(entering? + computed + moved(leaving(time))?)
        })
        .collect()
    }
}

fn entering(time: LayerTime) -> Option<SignedNanos> {
    transfer(time.to_processor, time.compute_includes.to_processor)
}

fn leaving(time: LayerTime) -> Option<SignedNanos> {
    transfer(time.from_processor, time.compute_includes.from_processor)
}

/// The separate transfer, or nothing if the compute time already contains it.
fn transfer(separate: Option<Estimate>, is_included: bool) -> Option<SignedNanos> {
    separate
        .map(|estimate| estimate.value)
        .or(is_included.then_some(SignedNanos::ZERO))
}
