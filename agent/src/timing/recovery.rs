//! What a device does when it is not fit to be measured: it rests until it is cool, or is kept busy until it is hot again.

use layerlab_profiles::Nanos;
use layerlab_profiles::moved::differs_by_loading;
use layerlab_protocol::{Event, FailureKind, Rejection};

use super::block::{Blocks, Occasion, Turns, sentinel_of};
use super::loaded::LoadedSegment;
use crate::device::Invocation;
use crate::ended::{Ended, failed};
use crate::hygiene::{self, End};

impl Blocks<'_> {
    /// Makes the device fit again after a block that was rejected. Whether what is loaded is measured again; else it is to be
    /// loaded anew.
    pub(super) fn recover(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        rejection: Rejection,
    ) -> Result<bool, Ended> {
        // One that only became faster is fit.
        if !self.inferences.settings.hygiene.steady && !rejection.is_slower() {
            return Ok(true);
        }
        Ok(self.become_fit(group, turns, rejection)?.is_some())
    }

    /// Rests until the device is fit to be measured, or keeps it busy where it is to be hot. `None` where what is loaded is to be
    /// loaded anew.
    pub(super) fn become_fit(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        why: Rejection,
    ) -> Result<Option<End>, Ended> {
        match self.inferences.settings.hygiene.steady {
            true => self.heat_up(group, turns, &why).map(Some),
            false => self.cool_down(group, turns, why),
        }
    }

    /// Keeps the device busy until it is as steady as it was, or it is clear that it will not be.
    fn heat_up(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        why: &Rejection,
    ) -> Result<End, Ended> {
        let hygiene = self.inferences.settings.hygiene;
        let begin = self.inferences.now();
        loop {
            let now = self.inferences.now();
            if now >= begin + hygiene.cool_down_deadline_ns {
                return Err(self.throttled(why, "however long it was kept busy"));
            }
            self.keep_busy(group, turns, now + hygiene.cool_down_poll_ns)?;
            self.polls += 1;
            let poll = Occasion::Poll { number: self.polls };
            let state = self.end(group, turns, poll, &[])?;
            if hygiene::unfit(&hygiene, &self.baseline, &state).is_none() {
                return Ok(state);
            }
        }
    }

    /// Runs the sentinel over and over until this time.
    fn keep_busy(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        until: Nanos,
    ) -> Result<(), Ended> {
        let sentinel = sentinel_of(group, turns);
        while self.inferences.now() < until {
            self.busy_runs += 1;
            let invocation = Invocation::soak(self.inferences.seed(), self.busy_runs);
            self.inferences.pass_time(sentinel, invocation)?;
            if !self.inferences.is_wanted() {
                return Err(Ended::Abandoned);
            }
        }
        Ok(())
    }

    /// Rests until the device is fit to be measured, or it is clear that it will not be. `None` where it has rested twice
    /// as long as when it was last loaded anew, and is no faster: then it is time to do that again. Where loadings differ as
    /// far as all of them are slower than the first, that was a fast one, and the others count from now on.
    pub(super) fn cool_down(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        why: Rejection,
    ) -> Result<Option<End>, Ended> {
        let hygiene = self.inferences.settings.hygiene;
        let may_rest = match self.rested {
            Nanos::ZERO => hygiene.cool_down_poll_ns,
            rested => rested + rested,
        };
        loop {
            if self.rested >= hygiene.cool_down_deadline_ns {
                let loadings = std::mem::take(&mut self.slow_loadings);
                if !differs_by_loading(&loadings, &self.baseline) {
                    let however = format!(
                        "also after {} s of rest",
                        self.rested.as_nanos() / 1_000_000_000
                    );
                    return Err(self.throttled(&why, &however));
                }
                let both_ends = loadings.into_iter().flat_map(|sentinel| [sentinel; 2]);
                self.baseline.extend(both_ends);
                return Ok(None);
            }
            self.inferences.idle(hygiene.cool_down_poll_ns)?;
            self.rested = self.rested + hygiene.cool_down_poll_ns;
            self.polls += 1;
            let poll = Occasion::Poll { number: self.polls };
            let state = self.end(group, turns, poll, &[])?;
            if hygiene::unfit(&hygiene, &self.baseline, &state).is_none() {
                return Ok(Some(self.fit(state)?));
            }
            if self.rested >= may_rest {
                self.slow_loadings.push(state.sentinel);
                return Ok(None);
            }
        }
    }

    /// Journals how long the device rested until it was in this state, if it did.
    pub(super) fn fit(&mut self, state: End) -> Result<End, Ended> {
        let rested_ns = std::mem::take(&mut self.rested);
        self.slow_loadings.clear();
        if rested_ns > Nanos::ZERO {
            self.inferences.record(Event::CooledDown {
                rested_ns,
                conditions: state.conditions.clone(),
            })?;
        }
        Ok(state)
    }

    pub(super) fn throttled(&self, rejection: &Rejection, however: &str) -> Ended {
        let remedy = match self.inferences.device.identity().device.simulated {
            true => {
                "its file says how warm it becomes; give it more rest (--gap-us), or choose another simulated device"
            }
            false => {
                "cool the device, close what else runs on it, or give it longer to rest (--cool-down, in a lab's job \
                 cool-down), and run again"
            }
        };
        let message = format!("throttled: {rejection}, {however}; nothing is published: {remedy}");
        failed(FailureKind::Throttled, message)
    }
}
