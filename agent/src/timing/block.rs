//! Blocks: segments that are loaded together take turns until the block counts, or the device is given up. The sentinel is
//! loaded beside them, or, where memory does not hold both, at each end of the block in their place.

use std::collections::HashSet;

use layerlab_profiles::Nanos;
use layerlab_profiles::moved::{Warming, warming};
use layerlab_protocol::{Event, Rejection};

use super::inferences::Inferences;
use super::loaded::LoadedSegment;
use super::long::Long;
use super::progress::Progress;
use super::watch::Watch;
use crate::device::Invocation;
use crate::ended::Ended;
use crate::hygiene::{self, End};

/// Runs of the whole model whose median is a sentinel: one of them may be a spike.
const SENTINEL_RUNS: u32 = 3;

/// So many more where these differ from the baseline: enough to tell a change from noise as large as itself.
const MORE_RUNS: u32 = 12;

/// How long the sentinel is run, and then as long again, to see whether it becomes faster. Until it does not, the time is
/// doubled.
const FIRST_WINDOW: Nanos = Nanos::from_millis(60);

/// Where noise hides for so long whether it becomes faster, it is measured as it is.
const LONG_WINDOW: Nanos = Nanos::from_millis(400);

/// So is what still becomes faster after this.
const LONGEST_WINDOW: Nanos = Nanos::from_millis(1_600);

/// At which end of a block a sentinel is timed.
#[derive(Clone, Copy)]
pub(super) enum Occasion {
    Start {
        block: u32,
    },
    End {
        block: u32,
    },
    /// While the device cools down.
    Poll {
        number: u32,
    },
}

impl Occasion {
    /// Names one run of the sentinel: no two inferences of an order have the same name.
    fn invocation(self, seed: u64, run: u32) -> Invocation {
        // The first runs of both ends come before the others of either.
        let at_end = |end: u32| match run < SENTINEL_RUNS {
            true => end * SENTINEL_RUNS + run,
            false => SENTINEL_RUNS + end * MORE_RUNS + run,
        };
        match self {
            Occasion::Start { block } => Invocation::sentinel(seed, block, at_end(0)),
            Occasion::End { block } => Invocation::sentinel(seed, block, at_end(1)),
            Occasion::Poll { number } => Invocation::poll(seed, number, run),
        }
    }
}

/// The blocks of one order.
pub(super) struct Blocks<'a> {
    pub(super) inferences: Inferences<'a>,
    pub(super) progress: Progress,
    /// The sentinels at both ends of the run's accepted blocks on this processor.
    pub(super) baseline: Vec<Nanos>,
    /// How often the device was looked at while it cooled down.
    pub(super) polls: u32,
    /// How long it has rested since it was last found fit.
    pub(super) rested: Nanos,
    /// What the sentinel took at the end of each of these rests, before what was loaded was loaded anew.
    pub(super) slow_loadings: Vec<Nanos>,
    /// How many inferences kept it busy.
    pub(super) busy_runs: u64,
    /// How many segments the order has. A sentinel that is none of them is warmed up under this number.
    pub(super) segments: usize,
    /// Which of them has few turns.
    pub(super) long: Option<Long>,
    /// What else ran during the block in progress.
    pub(super) watch: Watch,
    /// How many blocks of the run were measured again because of what else ran.
    pub(super) disturbed: u32,
}

/// What became of a block of loaded segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It counts.
    Counts,
    /// Rest does not make the device as fast as it was: another loading may, for each differs.
    LoadAnew,
}

/// Which turns a block consists of.
#[derive(Clone, Copy)]
pub(super) enum Turns {
    /// Every segment by itself, in an order drawn anew for each round. The first one loaded, the whole
    /// model, is the sentinel.
    Mixed,
    /// All segments in order, each fed by the one before. The whole chain is the sentinel.
    Chain,
}

/// What of a group is the sentinel.
pub(super) fn sentinel_of(group: &mut [LoadedSegment], turns: Turns) -> &mut [LoadedSegment] {
    match turns {
        Turns::Mixed => &mut group[..1],
        Turns::Chain => group,
    }
}

impl Blocks<'_> {
    /// Measures a block of loaded segments until it is accepted, or it is time to load them anew.
    pub(super) fn measure(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<Outcome, Ended> {
        self.warm_up(group, turns)?;
        self.settle(group, turns)?;
        loop {
            let open = self.progress.open.take();
            let taken = open.as_ref().map_or(0, |open| open.samples.len());
            let (number, start) = match open {
                Some(open) => (open.number, open.start),
                None => {
                    let Some((number, start)) = self.start(group, turns)? else {
                        return Ok(Outcome::LoadAnew);
                    };
                    self.announce(number, &start, group)?;
                    (number, start)
                }
            };
            self.begin_to_watch(taken);
            self.take_turns(number, group, turns)?;
            let end = self.finish(number, &start, group, turns)?;
            let Some(rejection) = self.judge(number, &start, end)? else {
                return Ok(Outcome::Counts);
            };
            self.forget(group.iter().filter_map(|loaded| loaded.place));
            if !self.recover(group, turns, rejection)? {
                return Ok(Outcome::LoadAnew);
            }
        }
    }

    /// Says whether a block counts, and why not if it does not.
    pub(super) fn judge(
        &mut self,
        number: u32,
        start: &End,
        end: End,
    ) -> Result<Option<Rejection>, Ended> {
        let hygiene = self.inferences.settings.hygiene;
        let (disturbance, disturbed) = self.disturbance();
        let rejection = hygiene::judge(&hygiene, &self.baseline, start, &end).or(disturbed);
        self.inferences.record(Event::BlockEnded {
            block: number,
            sentinel_ns: end.sentinel,
            conditions: end.conditions,
            rejection: rejection.clone(),
            disturbance,
        })?;
        let Some(rejection) = rejection else {
            self.baseline.extend([start.sentinel, end.sentinel]);
            self.progress.rejected = 0;
            return Ok(None);
        };
        if matches!(rejection, Rejection::Disturbed { .. }) {
            return Ok(Some(rejection));
        }
        self.progress.rejected += 1;
        if self.progress.rejected > hygiene.redos {
            return Err(self.throttled(&rejection, "however often it was measured again"));
        }
        Ok(Some(rejection))
    }

    /// The samples of these segments, by their places in the order, are to be taken again.
    pub(super) fn forget(&mut self, places: impl Iterator<Item = usize>) {
        for place in places {
            for index in self.indices(place) {
                self.progress.done.remove(&index);
            }
        }
    }

    /// Whether the segment at this place in the order lacks samples.
    pub(super) fn lacks(&self, place: usize) -> bool {
        let done: &HashSet<u64> = &self.progress.done;
        self.indices(place).any(|index| !done.contains(&index))
    }

    pub(super) fn warm_up(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<(), Ended> {
        let sentinel = self.segments;
        let place = |loaded: &LoadedSegment| loaded.place.unwrap_or(sentinel);
        match turns {
            Turns::Mixed => {
                for loaded in group {
                    let place = place(loaded);
                    let alone = std::slice::from_mut(loaded);
                    self.inferences.warm_up(alone, place)?;
                }
                Ok(())
            }
            Turns::Chain => {
                let place = place(&group[0]);
                self.inferences.warm_up(group, place)
            }
        }
    }

    /// Runs the sentinel until it becomes no faster any more: what was loaded a moment ago, on cores that were idle, is often
    /// slower than it will be.
    pub(super) fn settle(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<(), Ended> {
        let mut runs = 0;
        let mut window = FIRST_WINDOW;
        let mut before = self.window(group, turns, window, &mut runs)?;
        loop {
            let after = self.window(group, turns, window, &mut runs)?;
            let longest = match warming(&after, &before) {
                Warming::Over => return Ok(()),
                Warming::Unknown => LONG_WINDOW,
                Warming::GoesOn => LONGEST_WINDOW,
            };
            if window >= longest {
                return Ok(());
            }
            window = window + window;
            before = after;
        }
    }

    /// What the sentinel takes during so much time, and three times at least.
    fn window(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        window: Nanos,
        runs: &mut u32,
    ) -> Result<Vec<Nanos>, Ended> {
        let sentinel = sentinel_of(group, turns);
        let (mut times, end) = (Vec::new(), self.inferences.now() + window);
        while self.inferences.now() < end || times.len() < SENTINEL_RUNS as usize {
            self.inferences.gap()?;
            let invocation = Invocation::warm_up(self.inferences.seed(), self.segments + 1, *runs);
            times.push(self.inferences.pass_time(sentinel, invocation)?);
            *runs += 1;
        }
        Ok(times)
    }

    /// Times the sentinel at the start of the next block, once the device is fit. The block's number and what was seen;
    /// `None` where what is loaded is to be loaded anew.
    pub(super) fn start(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<Option<(u32, End)>, Ended> {
        let number = self.progress.next_block;
        self.progress.next_block += 1;
        let start = self.end(group, turns, Occasion::Start { block: number }, &[])?;
        let hygiene = self.inferences.settings.hygiene;
        let start = match hygiene::unfit(&hygiene, &self.baseline, &start) {
            Some(unfit) => {
                let again = self.become_fit(group, turns, unfit)?;
                if again.is_none() {
                    // The number is the next block's.
                    self.progress.next_block = number;
                }
                again
            }
            None => Some(self.fit(start)?),
        };
        Ok(start.map(|start| (number, start)))
    }

    /// Journals that a block of these segments begins.
    pub(super) fn announce(
        &self,
        number: u32,
        start: &End,
        group: &[LoadedSegment],
    ) -> Result<(), Ended> {
        let segments = group
            .iter()
            .filter(|loaded| loaded.place.is_some())
            .map(|loaded| loaded.segment);
        self.inferences.record(Event::BlockStarted {
            block: number,
            segments: segments.collect(),
            sentinel_ns: start.sentinel,
            conditions: start.conditions.clone(),
        })
    }

    /// The sentinel and the state of the device at the end of a block that began so.
    pub(super) fn finish(
        &mut self,
        number: u32,
        start: &End,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<End, Ended> {
        let own = [start.sentinel];
        self.end(group, turns, Occasion::End { block: number }, &own)
    }

    /// The sentinel and the state of the device. Where the sentinel differs from the baseline, or from `own`, the
    /// block's start, it is run more often, so that a change can be told from noise.
    pub(super) fn end(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        occasion: Occasion,
        own: &[Nanos],
    ) -> Result<End, Ended> {
        let mut runs = Vec::new();
        let mut sentinel = self.run_sentinel(group, turns, occasion, &mut runs, SENTINEL_RUNS)?;
        let hygiene = self.inferences.settings.hygiene;
        let differs = |from| hygiene::beyond_tolerance(&hygiene, from, sentinel).is_some();
        if differs(&self.baseline) || differs(own) {
            sentinel = self.run_sentinel(group, turns, occasion, &mut runs, MORE_RUNS)?;
        }
        Ok(End {
            sentinel,
            runs,
            conditions: self.inferences.conditions(),
        })
    }

    /// Runs the sentinel so many times more, and returns the median of all its `runs`.
    fn run_sentinel(
        &mut self,
        group: &mut [LoadedSegment],
        turns: Turns,
        occasion: Occasion,
        runs: &mut Vec<Nanos>,
        more: u32,
    ) -> Result<Nanos, Ended> {
        for _ in 0..more {
            self.settled_gap(group, turns)?;
            let sentinel = sentinel_of(group, turns);
            let invocation = occasion.invocation(self.inferences.seed(), runs.len() as u32);
            runs.push(self.inferences.pass_time(sentinel, invocation)?);
        }
        let mut sorted = runs.clone();
        sorted.sort_unstable();
        Ok(sorted[sorted.len() / 2])
    }
}
