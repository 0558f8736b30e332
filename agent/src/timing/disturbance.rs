//! What else ran on the device while a block was measured.

use layerlab_protocol::{Disturbance, Event, Rejection};

use super::block::Blocks;
use crate::device::ProcessorTime;
use crate::ended::Ended;

/// So many blocks of a run are measured again because of what else runs on the device. Where it never rests, the next ones count as
/// they are.
const MOST_AGAIN: u32 = 3;

/// What was seen since a block began.
#[derive(Default)]
pub(super) struct Watch {
    samples: u64,
    /// How many of them began without cores of their own; `None` until the device told of any.
    crowded: Option<u64>,
    began: Option<ProcessorTime>,
}

impl Watch {
    /// The next inference begins, which gives so many samples, with or without cores of its own.
    pub(super) fn saw(&mut self, has_cores: Option<bool>, samples: usize) {
        let samples = samples as u64;
        self.samples += samples;
        if let Some(has_cores) = has_cores {
            let crowded = if has_cores { 0 } else { samples };
            *self.crowded.get_or_insert(0) += crowded;
        }
    }
}

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
    pub(super) fn watched_gap(&mut self, samples: usize) -> Result<(), Ended> {
        let has_cores = self.inferences.gap()?;
        self.watch.saw(has_cores, samples);
        Ok(())
    }
}

/// How many blocks of these were measured again because of what else ran.
pub(crate) fn disturbed<'a>(events: impl Iterator<Item = &'a Event>) -> u32 {
    let is_disturbed = |event: &&Event| {
        matches!(
            event,
            Event::BlockEnded {
                rejection: Some(Rejection::Disturbed { .. }),
                ..
            }
        )
    };
    events.filter(is_disturbed).count() as u32
}
