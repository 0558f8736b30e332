//! T(L) of any placement, and what moving one layer changes of it (mlmp §4.2.2; docs/method.md §2).

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::Fit;
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::PredictedTime;
use layerlab_profiles::{Segment, SignedNanos};

use crate::confidence::Confidence;
use crate::interval;
use crate::memory::{MemoryLimit, MemoryMode, MemoryUse};
use crate::placement::{PackedPlacement, PlacementLimitError};
use crate::unsupported::UnsupportedSegment;

pub use crate::processor_table::ProcessorTable;

/// Layer times that make no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// There are more layers or processors than planners take, or too few.
    #[error(transparent)]
    Limit(#[from] PlacementLimitError),
    /// The tables of two processors are of different models.
    #[error(
        "the {first}'s table has {expected} layers and the {other}'s {given}; both must be of one model"
    )]
    Different {
        /// The name of processor 0.
        first: String,
        /// Layers in its table.
        expected: usize,
        /// The name of the other processor.
        other: String,
        /// Layers in its table.
        given: usize,
    },
    /// A transfer is neither published nor part of a compute time.
    #[error(
        "layer {layer} has no transfer time on the {processor}, and its compute time does not include it"
    )]
    MissingTransfer {
        /// The layer, counted from 1.
        layer: usize,
        /// The name of the processor.
        processor: String,
    },
    /// A layer has no time, and nothing says that the processor cannot run it.
    #[error(
        "layer {layer} has no time on the {processor}, and nothing says that it cannot run there; run `layerlab \
         check` on the profile"
    )]
    MissingTime {
        /// The layer, counted from 1.
        layer: usize,
        /// The name of the processor.
        processor: String,
    },
    /// Processor 0 cannot run every layer, so that there is nothing to compare plans with.
    #[error(
        "the {processor} cannot run layers {segment}: {reason}; plan with a first processor that runs every layer"
    )]
    FirstLacks {
        /// The name of processor 0.
        processor: String,
        /// What it cannot run.
        segment: Segment,
        /// Why it cannot.
        reason: String,
    },
    /// Runs are to be loaded when they are needed, and nothing says how long that takes.
    #[error(
        "the profile does not tell how long loading layers on the {processor} takes, so that plans cannot charge it; profile \
         the model again, or plan with --memory resident"
    )]
    NoLoadTimes {
        /// The name of the processor.
        processor: String,
    },
}

/// Why a placement is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// A processor, counted from 0, cannot run some of its layers.
    Unsupported(usize, &'a UnsupportedSegment),
    /// The memory of an accelerator does not hold its runs.
    Memory(MemoryUse),
}

/// What each layer costs on each processor, and its transfers, in whole nanoseconds as published.
#[derive(Clone, Debug)]
pub struct TimeTable {
    /// With what loading costs, where runs are loaded when they are needed.
    costs: Vec<Vec<LayerCost>>,
    /// What the memory of each processor limits.
    limits: Vec<Option<MemoryLimit>>,
    /// What intervals of T(L) are calculated from.
    published: Vec<ProcessorTable>,
}

/// What one layer costs on one processor, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerCost {
    /// t_d; 0 where `compute` includes it, and on a CPU. With what is fixed of loading a run, where each is loaded when
    /// it is needed.
    pub(crate) enter: i64,
    /// t_p or t_q, with what transfers it includes; with the layer's part of loading likewise.
    pub(crate) compute: i64,
    /// t_r; 0 where `compute` includes it, and on a CPU.
    pub(crate) leave: i64,
}

impl TimeTable {
    /// The table of the two processors of the papers, layer 1 first. `fit` is the NPU's.
    pub fn new(
        cpu: Vec<LayerTime>,
        npu: Vec<LayerTime>,
        fit: Option<Fit>,
    ) -> Result<TimeTable, TimesError> {
        TimeTable::of(vec![
            ProcessorTable {
                name: "CPU".to_owned(),
                kind: ProcessorKind::Cpu,
                times: cpu.into_iter().map(Some).collect(),
                unsupported: Vec::new(),
                fit: None,
                shared_error: 0.0,
                memory: None,
            },
            ProcessorTable {
                name: "NPU".to_owned(),
                kind: ProcessorKind::Accelerator,
                times: npu.into_iter().map(Some).collect(),
                unsupported: Vec::new(),
                fit,
                shared_error: 0.0,
                memory: None,
            },
        ])
    }

    /// The table of two processors or more, processor 0 first.
    pub fn of(processors: Vec<ProcessorTable>) -> Result<TimeTable, TimesError> {
        PlacementLimitError::refuse_processors(processors.len())?;
        let first = &processors[0];
        let layers = first.times.len();
        if let Some(other) = processors.iter().find(|other| other.times.len() != layers) {
            return Err(TimesError::Different {
                first: first.name.clone(),
                expected: layers,
                other: other.name.clone(),
                given: other.times.len(),
            });
        }
        PackedPlacement::all_cpu(layers)?;
        if let Some(lacked) = first.unsupported.first() {
            return Err(TimesError::FirstLacks {
                processor: first.name.clone(),
                segment: lacked.segment,
                reason: lacked.reason.clone(),
            });
        }
        let costs = processors.iter().map(costs).collect::<Result<_, _>>()?;
        let limit = |processor: &ProcessorTable| {
            let memory = processor.memory.as_ref()?;
            MemoryLimit::of(layers, memory)
        };
        Ok(TimeTable {
            costs,
            limits: processors.iter().map(limit).collect(),
            published: processors,
        })
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.costs[0].len()
    }

    /// How many processors there are.
    pub fn processors(&self) -> usize {
        self.costs.len()
    }

    /// What plans call the processors, processor 0 first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.published
            .iter()
            .map(|processor| processor.name.as_str())
    }

    /// The same where the runs of accelerators share memory so.
    pub fn in_memory(self, mode: MemoryMode) -> Result<TimeTable, TimesError> {
        let mut processors = self.published;
        for memory in processors.iter_mut().filter_map(|one| one.memory.as_mut()) {
            memory.mode = mode;
        }
        TimeTable::of(processors)
    }

    /// How the runs of accelerators share memory.
    pub fn mode(&self) -> MemoryMode {
        let mut memories = self.published.iter().filter_map(|one| one.memory.as_ref());
        memories
            .next()
            .map(|memory| memory.mode)
            .unwrap_or_default()
    }

    /// What is published of the processors, processor 0 first.
    pub fn published(&self) -> &[ProcessorTable] {
        &self.published
    }

    /// Why the placement is not possible: what of it a processor cannot run, or whose memory does not hold it; `None` if
    /// it is.
    pub fn refusal(&self, placement: &PackedPlacement) -> Option<Refusal<'_>> {
        let lacked = self.lacked(placement);
        let lacked = lacked.map(|(on, one)| Refusal::Unsupported(on, one));
        lacked.or_else(|| {
            let mut uses = self.memory_uses(placement);
            uses.find(|one| !one.fits()).map(Refusal::Memory)
        })
    }

    /// What of the placement a processor cannot run, and that processor, counted from 0.
    fn lacked(&self, placement: &PackedPlacement) -> Option<(usize, &UnsupportedSegment)> {
        let processors = self.published.iter().enumerate();
        processors
            .flat_map(|(on, processor)| processor.unsupported.iter().map(move |one| (on, one)))
            .find(|(on, one)| one.is_on(placement, *on))
    }

    /// Whether every processor can run what the placement has on it, and its memory holds that.
    pub fn allows(&self, placement: &PackedPlacement) -> bool {
        self.can_run(placement) && self.holds(placement)
    }

    /// Whether every processor can run what the placement has on it, whatever its memory holds.
    pub(crate) fn can_run(&self, placement: &PackedPlacement) -> bool {
        self.lacked(placement).is_none()
    }

    fn holds(&self, placement: &PackedPlacement) -> bool {
        let mut limits = self.limits.iter().enumerate();
        limits.all(|(on, limit)| {
            let needed = |limit: &MemoryLimit| limit.needed(placement, on) <= limit.capacity;
            limit.as_ref().is_none_or(needed)
        })
    }

    /// What the placement needs of the memory of each accelerator that has a limit.
    pub fn memory_uses(&self, placement: &PackedPlacement) -> impl Iterator<Item = MemoryUse> {
        let limits = self.limits.iter().zip(self.names()).enumerate();
        limits
            .filter_map(|(on, (limit, name))| Some(limit.as_ref()?.memory_use(placement, on, name)))
    }

    /// What the memory of a processor, counted from 0, limits.
    pub(crate) fn limit(&self, processor: usize) -> Option<&MemoryLimit> {
        self.limits[processor].as_ref()
    }

    /// The same without the limits of memory, whatever loading costs.
    pub(crate) fn without_limits(&self) -> TimeTable {
        TimeTable {
            limits: vec![None; self.limits.len()],
            ..self.clone()
        }
    }

    /// Why a processor cannot run the layer at `index` by itself, both counted from 0; `None` if it can.
    pub fn why_not(&self, processor: usize, index: usize) -> Option<&UnsupportedSegment> {
        let mut unsupported = self.published[processor].unsupported.iter();
        unsupported.find(|one| one.is_layer(index))
    }

    /// What a processor, counted from 0, cannot run.
    pub fn unsupported(&self, processor: usize) -> &[UnsupportedSegment] {
        &self.published[processor].unsupported
    }

    /// T(L), split into computing on each processor, moving between them and loading, of a placement that is
    /// [possible](TimeTable::allows).
    ///
    /// Transfers are paid on each accelerator wherever its neighbour runs elsewhere and at the model's ends
    /// (mlmp §4.2.2).
    pub fn time(&self, placement: &PackedPlacement) -> PredictedTime {
        let mut time = PredictedTime::default();
        self.walk(placement, |processor, compute, transfer| {
            let compute = SignedNanos::from_nanos(compute);
            time.compute[processor] = time.compute[processor] + compute;
            time.transfer = time.transfer + SignedNanos::from_nanos(transfer);
        });
        for (run, processor) in placement.combination().runs() {
            let place = usize::from(processor);
            if let Some(load_times) = self.published[place].charged() {
                let loading = load_times.segment(run);
                time.loading = time.loading + loading;
                time.transfer = time.transfer - load_times.fixed();
                time.compute[place] = time.compute[place] - (loading - load_times.fixed());
            }
        }
        time
    }

    /// T(L) in nanoseconds.
    pub(crate) fn total(&self, placement: &PackedPlacement) -> i64 {
        let mut total = 0;
        self.walk(placement, |_, compute, transfer| {
            total += compute + transfer
        });
        total
    }

    /// What each layer pays in order: its processor, for computing, and for its transfers.
    fn walk(&self, placement: &PackedPlacement, mut pay: impl FnMut(usize, i64, i64)) {
        let layers = self.layers();
        let mut before = None;
        let mut here = placement.processor(0);
        for index in 0..layers {
            let after = (index + 1 < layers).then(|| placement.processor(index + 1));
            let cost = &self.costs[here][index];
            let mut transfer = 0;
            if before != Some(here) {
                transfer += cost.enter;
            }
            if after != Some(here) {
                transfer += cost.leave;
            }
            pay(here, cost.compute, transfer);
            before = Some(here);
            here = after.unwrap_or(here);
        }
    }

    /// By how many nanoseconds T(L) changes when the layer at `index` moves to the processor `to`.
    pub(crate) fn change(&self, placement: &PackedPlacement, index: usize, to: usize) -> i64 {
        let before = (index > 0).then(|| placement.processor(index - 1));
        let after = (index + 1 < self.layers()).then(|| placement.processor(index + 1));
        // What the layer costs on a processor, with the cuts on both sides of it.
        let there = |processor: usize| {
            let cost = &self.costs[processor][index];
            let mut sum = cost.compute;
            if before != Some(processor) {
                sum += cost.enter + before.map_or(0, |p| self.costs[p][index - 1].leave);
            }
            if after != Some(processor) {
                sum += cost.leave + after.map_or(0, |p| self.costs[p][index + 1].enter);
            }
            sum
        };
        there(to) - there(placement.processor(index))
    }

    /// What the layer at `index` costs on a processor, both counted from 0; nothing where it cannot run.
    pub(crate) fn cost(&self, processor: usize, index: usize) -> LayerCost {
        self.costs[processor][index]
    }

    /// The 95 % interval of T(L); nothing where a published time has none.
    pub fn interval(&self, placement: &PackedPlacement) -> Option<(SignedNanos, SignedNanos)> {
        let time = self.time(placement);
        let placement = placement.combination();
        let resident = interval::of(time.total() - time.loading, &self.published, &placement)?;
        interval::with_loading(resident, &self.published, &placement)
    }

    /// The time in ns that a placement takes at most, with this confidence; T(L) where a published time has no interval.
    pub(crate) fn longest(&self, placement: &PackedPlacement, confidence: Confidence) -> i64 {
        let total = self.total(placement);
        let interval = self.interval(placement);
        interval.map_or(total, |(low, high)| {
            let half_width = (high - low).as_nanos() as f64 / 2.0;
            let more = half_width * (confidence.stretch() - 1.0);
            total.max(high.as_nanos() + more.ceil() as i64)
        })
    }
}

/// What each layer costs on the processor.
fn costs(processor: &ProcessorTable) -> Result<Vec<LayerCost>, TimesError> {
    let is_cpu = processor.kind == ProcessorKind::Cpu;
    let (mut fixed, mut of_layers) = (0, vec![0; processor.times.len()]);
    if processor.is_reloaded() {
        let load_times = processor.charged().ok_or_else(|| TimesError::NoLoadTimes {
            processor: processor.name.clone(),
        })?;
        fixed = load_times.fixed().as_nanos();
        for (layer, load) in (1..).zip(&mut of_layers) {
            *load = load_times.layer(layer).as_nanos();
        }
    }
    let places = processor.times.iter().enumerate();
    places
        .map(|(index, time)| {
            let Some(time) = time else {
                let is_known = |one: &UnsupportedSegment| one.is_layer(index);
                return match processor.unsupported.iter().any(is_known) {
                    true => Ok(LayerCost::default()),
                    false => Err(TimesError::MissingTime {
                        layer: index + 1,
                        processor: processor.name.clone(),
                    }),
                };
            };
            let transfer = |separate: Option<Estimate>, included: bool| match separate {
                _ if is_cpu => Ok(0),
                Some(estimate) => Ok(estimate.value.as_nanos()),
                None if included => Ok(0),
                None => Err(TimesError::MissingTransfer {
                    layer: index + 1,
                    processor: processor.name.clone(),
                }),
            };
            let includes = time.compute_includes;
            Ok(LayerCost {
                enter: fixed + transfer(time.to_processor, includes.to_processor)?,
                compute: of_layers[index] + time.compute.value.as_nanos(),
                leave: transfer(time.from_processor, includes.from_processor)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::derive::Includes;
    use proptest::prelude::*;

    fn layer_time(nanos: &[i16; 3]) -> LayerTime {
        let estimate = |nanos| Estimate {
            value: SignedNanos::from_nanos(i64::from(nanos)),
            ci95: None,
        };
        LayerTime {
            compute: estimate(nanos[0]),
            compute_includes: Includes::default(),
            to_processor: Some(estimate(nanos[1])),
            from_processor: Some(estimate(nanos[2])),
        }
    }

    proptest! {
        #[test]
        fn moving_a_layer_changes_the_time_by_what_is_said(
            rows in prop::collection::vec((any::<[[i16; 3]; 4]>(), 0..4_usize), 1..80),
            count in 2..=4_usize,
        ) {
            let processors = (0..count).map(|place| ProcessorTable {
                name: String::new(),
                kind: [ProcessorKind::Cpu, ProcessorKind::Accelerator][place.min(1)],
                times: rows.iter().map(|row| Some(layer_time(&row.0[place]))).collect(),
                unsupported: Vec::new(),
                fit: None,
                shared_error: 0.0,
            memory: None,
            });
            let table = TimeTable::of(processors.collect()).expect("all transfers");
            let mut placement = PackedPlacement::all_cpu(rows.len()).expect("few");
            for (index, row) in rows.iter().enumerate() {
                placement = placement.placed(index, row.1 % count);
            }
            prop_assert_eq!(table.time(&placement).total().as_nanos(), table.total(&placement));
            for index in 0..rows.len() {
                for to in 0..count {
                    let moved = placement.placed(index, to);
                    let change = table.total(&moved) - table.total(&placement);
                    prop_assert_eq!(table.change(&placement, index, to), change);
                }
            }
            prop_assert_eq!(table.interval(&placement), None);
        }
    }
}
