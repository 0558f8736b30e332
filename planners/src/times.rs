//! T(L) of any placement, and what moving one layer changes of it (mlmp §4.2.2; docs/method.md §2).

use layerlab_profiles::SignedNanos;
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::Fit;
use layerlab_profiles::time_model::PredictedTime;

use crate::interval;
use crate::placement::{LayerCountError, Placement};

/// Layer times that make no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// There are no layers, or more than planners take.
    #[error(transparent)]
    LayerCount(#[from] LayerCountError),
    /// The two processors' tables are of different models.
    #[error("the CPU's table has {cpu} layers and the NPU's {npu}; both must be of one model")]
    Different {
        /// Layers in the CPU's table.
        cpu: usize,
        /// Layers in the NPU's table.
        npu: usize,
    },
    /// A transfer is neither published nor part of a compute time.
    #[error(
        "layer {layer} has no transfer time on the NPU, and its compute time does not include it"
    )]
    MissingTransfer {
        /// The layer, counted from 1.
        layer: usize,
    },
}

/// What each layer costs on the CPU and the NPU, and its transfers, in whole nanoseconds as published.
#[derive(Clone, Debug)]
pub struct TimeTable {
    /// t_q of each layer.
    cpu: Vec<i64>,
    /// t_p of each layer, with what transfers it includes.
    npu: Vec<i64>,
    /// t_d of each layer; 0 where `npu` includes it.
    enter: Vec<i64>,
    /// t_r of each layer; 0 where `npu` includes it.
    leave: Vec<i64>,
    published: Published,
}

/// What intervals of T(L) are calculated from.
#[derive(Clone, Debug)]
struct Published {
    cpu: Vec<LayerTime>,
    npu: Vec<LayerTime>,
    fit: Option<Fit>,
}

impl TimeTable {
    /// The table of the layer times of a CPU and an NPU, layer 1 first. `fit`, where the NPU's times come
    /// from least squares, gives T(L) its exact interval; without it the interval is a bound.
    pub fn new(
        cpu: Vec<LayerTime>,
        npu: Vec<LayerTime>,
        fit: Option<Fit>,
    ) -> Result<TimeTable, TimesError> {
        if cpu.len() != npu.len() {
            return Err(TimesError::Different {
                cpu: cpu.len(),
                npu: npu.len(),
            });
        }
        Placement::all_cpu(cpu.len())?;
        let compute = |times: &[LayerTime]| -> Vec<i64> {
            times
                .iter()
                .map(|time| time.compute.value.as_nanos())
                .collect()
        };
        let transfer = |separate: Option<i64>, included: bool, index: usize| {
            separate
                .or(included.then_some(0))
                .ok_or(TimesError::MissingTransfer { layer: index + 1 })
        };
        let mut enter = Vec::with_capacity(npu.len());
        let mut leave = Vec::with_capacity(npu.len());
        for (index, time) in npu.iter().enumerate() {
            let (to, from) = (time.to_processor, time.from_processor);
            let includes = time.compute_includes;
            let nanos = |estimate: layerlab_profiles::summary::Estimate| estimate.value.as_nanos();
            enter.push(transfer(to.map(nanos), includes.to_processor, index)?);
            leave.push(transfer(from.map(nanos), includes.from_processor, index)?);
        }
        Ok(TimeTable {
            cpu: compute(&cpu),
            npu: compute(&npu),
            enter,
            leave,
            published: Published { cpu, npu, fit },
        })
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.cpu.len()
    }

    /// T(L), split into computing on the CPU, on the NPU, and moving between the two.
    ///
    /// A transfer is paid wherever neighbours run on different processors and, on the NPU, at the model's
    /// ends (mlmp §4.2.2).
    pub fn time(&self, placement: &Placement) -> PredictedTime {
        let (mut cpu, mut npu, mut transfer) = (0, 0, 0);
        for index in 0..self.layers() {
            if placement.on_npu(index) {
                npu += self.npu[index];
                if !before(placement, index) {
                    transfer += self.enter[index];
                }
                if !placement.on_npu(index + 1) {
                    transfer += self.leave[index];
                }
            } else {
                cpu += self.cpu[index];
            }
        }
        PredictedTime {
            cpu: SignedNanos::from_nanos(cpu),
            npu: SignedNanos::from_nanos(npu),
            transfer: SignedNanos::from_nanos(transfer),
        }
    }

    /// T(L) in nanoseconds.
    pub(crate) fn total(&self, placement: &Placement) -> i64 {
        self.time(placement).total().as_nanos()
    }

    /// By how many nanoseconds T(L) changes when the layer at `index` moves to the other processor.
    pub(crate) fn change(&self, placement: &Placement, index: usize) -> i64 {
        let mut to_npu = self.npu[index] - self.cpu[index];
        to_npu += if before(placement, index) {
            -self.leave[index - 1]
        } else {
            self.enter[index]
        };
        to_npu += if placement.on_npu(index + 1) {
            -self.enter[index + 1]
        } else {
            self.leave[index]
        };
        if placement.on_npu(index) {
            -to_npu
        } else {
            to_npu
        }
    }

    /// t_q of the layer at `index`, counted from 0, in nanoseconds.
    pub(crate) fn on_cpu(&self, index: usize) -> i64 {
        self.cpu[index]
    }

    /// What the NPU's layer at `index` costs in nanoseconds: (t_d, t_p, t_r).
    pub(crate) fn on_npu(&self, index: usize) -> (i64, i64, i64) {
        (self.enter[index], self.npu[index], self.leave[index])
    }

    /// The 95 % interval of T(L); nothing where a published time has none.
    pub fn interval(&self, placement: &Placement) -> Option<(SignedNanos, SignedNanos)> {
        let combination = placement.combination();
        let Published { cpu, npu, fit } = &self.published;
        match fit {
            // The fit knows how its times err together.
            Some(fit) => fit.combination(cpu, &combination).ok()?.ci95,
            None => interval::bound(self.time(placement).total(), cpu, npu, &combination),
        }
    }
}

/// Whether the layer before the one at `index` runs on the NPU.
fn before(placement: &Placement, index: usize) -> bool {
    index > 0 && placement.on_npu(index - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::derive::Includes;
    use layerlab_profiles::summary::Estimate;
    use proptest::prelude::*;

    fn layer_time(nanos: &[i64; 3]) -> LayerTime {
        let estimate = |nanos| Estimate {
            value: SignedNanos::from_nanos(nanos),
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
            nanos in prop::collection::vec((any::<[i16; 3]>(), any::<[i16; 3]>(), any::<bool>()), 1..80),
        ) {
            let times = |cpu: bool| -> Vec<LayerTime> {
                let pick = |row: &([i16; 3], [i16; 3], bool)| if cpu { row.0 } else { row.1 };
                nanos.iter().map(|row| layer_time(&pick(row).map(i64::from))).collect()
            };
            let table = TimeTable::new(times(true), times(false), None).expect("all transfers");
            let bits = nanos.iter().map(|row| row.2).collect();
            let placement = Placement::of(&layerlab_profiles::Combination::new(bits)).expect("few");
            for index in 0..nanos.len() {
                let moved = placement.flipped(index);
                let change = table.total(&moved) - table.total(&placement);
                prop_assert_eq!(table.change(&placement, index), change);
            }
            prop_assert_eq!(table.interval(&placement), None);
        }
    }
}
