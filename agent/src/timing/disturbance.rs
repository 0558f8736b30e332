//! What else ran on the device while a block was measured.

use layerlab_profiles::Nanos;
use layerlab_protocol::{Disturbance, Rejection};

use super::block::{Blocks, Turns};
use super::loaded::LoadedSegment;
use super::watch::Watch;
use crate::device::CoresWait;
use crate::ended::Ended;

/// So many blocks of a run are measured again because of what else runs on the device. Where it never rests, the next ones count as
/// they are.
const MOST_AGAIN: u32 = 3;

/// After so long a wait caches and clocks are those of others: inferences were then a third slower at first, and less so for the
/// next tenth of a second.
const COLD_AFTER: Nanos = Nanos::from_millis(20);

/// Settling takes a while, in which others may come again; where they do each time, it is measured as it is.
const MOST_SETTLINGS: u32 = 3;

impl Blocks<'_> {
    /// From now on is watched what else runs. So many samples of the block were taken by an agent that was killed.
    pub(super) fn begin_to_watch(&mut self, samples: usize) {
        self.watch = Watch {
            samples: samples as u64,
            crowded: None,
            began: self.inferences.processor_time(),
        };
    }

    /// What else ran on the device since then, and why the block does not count if that was too much.
    pub(super) fn disturbance(&mut self) -> (Option<Disturbance>, Option<Rejection>) {
        let watch = std::mem::take(&mut self.watch);
        let stolen = self.inferences.processor_time().zip(watch.began);
        let Some(crowded_samples) = watch.crowded else {
            return (None, None);
        };
        let disturbance = Disturbance {
            crowded_samples,
            stolen_percent: stolen.map_or(0, |(now, began)| now.stolen_percent_since(began)),
        };
        let is_too_much = disturbance.is_too_much(watch.samples);
        let rejection =
            (is_too_much && self.disturbed < MOST_AGAIN).then_some(Rejection::Disturbed {
                crowded_samples,
                samples: watch.samples,
                stolen_percent: disturbance.stolen_percent,
            });
        self.disturbed += u32::from(rejection.is_some());
        (Some(disturbance), rejection)
    }

    /// Idles for the gap before an inference that gives so many samples, and notes whether it begins with cores of its own.
    pub(super) fn watched_gap(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        samples: usize,
    ) -> Result<(), Ended> {
        let cores = self.settled_gap(group, turns)?;
        self.watch.saw(cores.map(|cores| cores.has_cores), samples);
        Ok(())
    }

    /// Idles for the gap before an inference. Where cores had to be waited for then, what is loaded settles anew.
    pub(super) fn settled_gap(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<Option<CoresWait>, Ended> {
        let mut cores = self.inferences.gap()?;
        for _ in 0..MOST_SETTLINGS {
            if cores.is_none_or(|cores| cores.waited < COLD_AFTER) {
                break;
            }
            self.settle(group, turns)?;
            cores = self.inferences.gap()?;
        }
        Ok(cores)
    }
}
