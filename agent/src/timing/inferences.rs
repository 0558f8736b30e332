//! The inferences of an order, one after the other: each after its gap, announced to the device and begun by its
//! clock.

use std::borrow::Cow;
use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Conditions, Event, Order, TimingSettings, WarmUp};

use super::loaded::LoadedSegment;
use crate::ModelWithTwin;
use crate::device::{CoresWait, Device, Invocation, ProcessorTime};
use crate::ended::Ended;
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes, Session, Tensor};

/// The longest the loop sleeps before it looks whether its order is still wanted.
const NAP: Nanos = Nanos::from_millis(1_000);

/// What runs the inferences of one order.
pub(super) struct Inferences<'a> {
    pub(super) task: &'a Task,
    /// How the order has segments timed.
    pub(super) settings: TimingSettings,
    pub(super) queue: &'a Queue,
    pub(super) device: &'a mut dyn Device,
    pub(super) runtimes: &'a mut Runtimes,
    pub(super) model: ModelWithTwin,
}

/// An inference, and when it was asked for.
pub(super) struct TimedInference {
    /// The reading of the device's clock. The runtime may still have copied the inputs before it began.
    pub(super) started: Nanos,
    pub(super) duration: Nanos,
}

impl Inferences<'_> {
    /// The order that they belong to.
    pub(super) fn order(&self) -> &Order {
        &self.task.order
    }

    /// Different for each order of a run, the same whenever the order is worked on.
    pub(super) fn seed(&self) -> u64 {
        self.task.order.seed ^ (u64::from(self.task.order.number) << 32)
    }

    /// Writes it into the journal.
    pub(super) fn record(&self, event: Event) -> Result<(), Ended> {
        Ok(self.queue.record(self.task, event)?)
    }

    /// The state of the device.
    pub(super) fn conditions(&mut self) -> Conditions {
        self.device.conditions()
    }

    /// The reading of the device's clock.
    pub(super) fn now(&mut self) -> Nanos {
        self.device.now()
    }

    /// Whether anybody still wants the order done.
    pub(super) fn is_wanted(&self) -> bool {
        self.queue.wants(self.task)
    }

    /// Idles for the order's gap, and then until the processor's threads have cores of their own. How that ended, where
    /// the device tells.
    pub(super) fn gap(&mut self) -> Result<Option<CoresWait>, Ended> {
        self.idle(self.settings.gap_ns)?;
        let processor = self.runtimes.processor(&self.task.order.processor);
        // One that computes elsewhere has a thread here that waits for it.
        let threads = processor.and_then(|processor| processor.threads);
        Ok(self.device.wait_for_cores(threads.unwrap_or(1)))
    }

    /// The time of all the device's cores until now, where it is told.
    pub(super) fn processor_time(&mut self) -> Option<ProcessorTime> {
        self.device.processor_time()
    }

    /// Idles, and notices when the order is not wanted any more.
    pub(super) fn idle(&mut self, time: Nanos) -> Result<(), Ended> {
        let mut left = time;
        while left > NAP {
            self.device.idle(NAP);
            left = left - NAP;
            if !self.queue.wants(self.task) {
                return Err(Ended::Abandoned);
            }
        }
        self.device.idle(left);
        Ok(())
    }

    /// Runs a segment from its timing input.
    pub(super) fn run(
        &mut self,
        loaded: &mut LoadedSegment,
        invocation: Invocation,
    ) -> Result<TimedInference, Ended> {
        let inputs = Arc::clone(&loaded.inputs);
        let time = |session: &mut dyn Session| Ok((session.time(&inputs)?, ()));
        Ok(self.infer(loaded, invocation, time)?.0)
    }

    /// Runs `group` in order, each from the outputs before it, as far as these are what it takes, else from its timing input.
    pub(super) fn pass(
        &mut self,
        group: &mut [LoadedSegment],
        invocation: Invocation,
    ) -> Result<Vec<TimedInference>, Ended> {
        if let [alone] = group {
            return Ok(vec![self.run(alone, invocation)?]);
        }
        let mut timed = Vec::with_capacity(group.len());
        let mut before: Option<(Segment, Vec<Tensor>)> = None;
        for (step, loaded) in group.iter_mut().enumerate() {
            let (segment, own) = (loaded.segment, Arc::clone(&loaded.inputs));
            let inputs = match &before {
                Some((before, given)) => {
                    inputs_from(self.model.model(), (*before, given), (segment, &own))
                }
                None => Cow::Borrowed(&*own),
            };
            let (this, given) = self.infer(loaded, invocation.step(step), |session| {
                let inference = session.run(&inputs)?;
                Ok((inference.duration, inference.outputs))
            })?;
            timed.push(this);
            before = Some((segment, given));
        }
        Ok(timed)
    }

    /// How long a pass over `group` takes in all.
    pub(super) fn pass_time(
        &mut self,
        group: &mut [LoadedSegment],
        invocation: Invocation,
    ) -> Result<Nanos, Ended> {
        let timed = self.pass(group, invocation)?;
        Ok(timed.iter().map(|timed| timed.duration).sum())
    }

    /// Runs `group` as a chain until a fast and a slow exponential average of its time agree. `place` names the
    /// group among those that the order warms up.
    pub(super) fn warm_up(
        &mut self,
        group: &mut [LoadedSegment],
        place: usize,
    ) -> Result<(), Ended> {
        let WarmUp {
            min_runs,
            max_runs,
            agreement_percent,
        } = self.settings.warm_up;
        let agreement = f64::from(agreement_percent) / 100.0;
        let mut averages: Option<(f64, f64)> = None;
        let mut runs = 0;
        while runs < max_runs {
            self.gap()?;
            let invocation = Invocation::warm_up(self.seed(), place, runs);
            let time = self.pass_time(group, invocation)?.as_nanos() as f64;
            let (fast, slow) = averages.unwrap_or((time, time));
            let (fast, slow) = (fast + (time - fast) / 2.0, slow + (time - slow) / 5.0);
            averages = Some((fast, slow));
            runs += 1;
            if runs >= min_runs && (fast - slow).abs() <= agreement * slow {
                break;
            }
        }
        for loaded in group {
            self.record(Event::Warm {
                segment: loaded.segment,
                runs,
            })?;
        }
        Ok(())
    }

    /// Has a segment run, which says how long that took, and what else it gave. One without a session is loaded for it, which
    /// is part of its time, and unloaded after it.
    fn infer<T>(
        &mut self,
        loaded: &mut LoadedSegment,
        invocation: Invocation,
        run: impl FnOnce(&mut dyn Session) -> Result<(Nanos, T), RuntimeError>,
    ) -> Result<(TimedInference, T), Ended> {
        let started = self.device.now();
        let Some(session) = loaded.session.as_deref_mut() else {
            let segment = loaded.segment;
            let processor = self.task.order.processor_of(segment);
            let mut session = self.runtimes.load_timed(processor, &self.model, segment)?;
            self.device.announce(invocation);
            let (ran, given) = run(session.as_mut())?;
            let duration = ran + session.load_time();
            return Ok((TimedInference { started, duration }, given));
        };
        self.device.announce(invocation);
        let started = self.device.now();
        let (duration, given) = run(session)?;
        Ok((TimedInference { started, duration }, given))
    }
}

/// What a segment takes of what the one before it gave, and of its own timing input what that did not give: the network's own
/// inputs.
fn inputs_from<'a>(
    network: &Network,
    (before, given): (Segment, &'a [Tensor]),
    (segment, own): (Segment, &[Tensor]),
) -> Cow<'a, [Tensor]> {
    let (gives, takes) = (network.gives(before), network.takes(segment));
    if gives == takes {
        return Cow::Borrowed(given);
    }
    let inputs = takes.iter().zip(own).map(|(wanted, own)| {
        let place = gives.iter().position(|spec| spec.name == wanted.name);
        place.and_then(|place| given.get(place)).unwrap_or(own)
    });
    Cow::Owned(inputs.cloned().collect())
}
