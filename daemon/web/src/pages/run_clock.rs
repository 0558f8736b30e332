//! When the blocks of a run were: on one clock, though an agent that is started anew begins at 0 again.

use std::collections::BTreeMap;

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Block, Profile};

/// The blocks of a run in the order of time.
pub(super) struct RunClock<'a> {
    /// Each block.
    pub(super) blocks: Vec<TimedBlock<'a>>,
    /// From the first sample to the end of the last.
    pub(super) length: Nanos,
    /// How often the agent was started anew.
    pub(super) restarts: usize,
}

/// A block, and when it was.
pub(super) struct TimedBlock<'a> {
    /// The block.
    pub(super) block: &'a Block,
    /// When its first sample began and its last ended, since the first sample of the run. None of a block without samples.
    pub(super) period: Option<(Nanos, Nanos)>,
    /// How many samples it has, those of probes among them.
    pub(super) samples: usize,
}

/// What the samples of a block say of its time.
#[derive(Clone, Copy)]
struct Timing {
    begin: Nanos,
    end: Nanos,
    samples: usize,
}

impl RunClock<'_> {
    /// The blocks of a profile. What was between two lives of the agent is left out, as nobody knows how long it was.
    pub(super) fn of(profile: &Profile) -> RunClock<'_> {
        let timings = timings(profile);
        let mut blocks: Vec<&Block> = profile.blocks.iter().collect();
        blocks.sort_by_key(|block| (block.order, block.number));
        let zero = blocks
            .iter()
            .find_map(|block| timings.get(&(block.order, block.number)));
        // What the agent's clock says, and what that is on the clock of the run.
        let mut since = zero.map_or(Nanos::ZERO, |timing| timing.begin);
        let (mut passed, mut last, mut restarts) = (Nanos::ZERO, since, 0);
        let mut length = Nanos::ZERO;
        let timed = blocks.into_iter().map(|block| {
            let timing = timings.get(&(block.order, block.number)).copied();
            let period = timing.map(|timing| {
                if timing.begin < last {
                    (since, passed) = (timing.begin, length);
                    restarts += 1;
                }
                last = timing.end;
                let on_run = |at: Nanos| passed + (at - since);
                length = on_run(timing.end);
                (on_run(timing.begin), length)
            });
            TimedBlock {
                block,
                period,
                samples: timing.map_or(0, |timing| timing.samples),
            }
        });
        let blocks = timed.collect();
        RunClock {
            blocks,
            length,
            restarts,
        }
    }
}

fn timings(profile: &Profile) -> BTreeMap<(u32, u32), Timing> {
    let samples = profile.samples.iter().chain(&profile.rejected);
    let samples = samples.map(|one| ((one.order, one.block), one.started, one.duration));
    let probes = profile.probes.iter();
    let probes = probes.map(|one| ((one.order, one.block), one.started, one.duration));
    let mut timings: BTreeMap<(u32, u32), Timing> = BTreeMap::new();
    for (block, begin, duration) in samples.chain(probes) {
        let end = begin + duration;
        let timing = timings.entry(block).or_insert(Timing {
            begin,
            end,
            samples: 0,
        });
        timing.begin = timing.begin.min(begin);
        timing.end = timing.end.max(end);
        timing.samples += 1;
    }
    timings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_agent_that_was_started_anew_goes_on_where_it_ended() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../profiles/published/oneplus7/vocnet-mini");
        let mut profile = Profile::read(&folder).expect("it ships with the repository");
        let whole = RunClock::of(&profile);
        assert_eq!(
            (whole.restarts, whole.blocks.len()),
            (0, profile.blocks.len())
        );
        let periods: Vec<(Nanos, Nanos)> = whole
            .blocks
            .iter()
            .filter_map(|timed| timed.period)
            .collect();
        assert_eq!(periods[0].0, Nanos::ZERO);
        assert!(periods.is_sorted(), "{periods:?}");
        let samples: usize = whole.blocks.iter().map(|timed| timed.samples).sum();
        assert_eq!(
            samples,
            profile.samples.len() + profile.rejected.len() + profile.probes.len()
        );

        // From the middle on everything was on a new clock, which begins a millisecond before the sample.
        let middle = profile.blocks.len() / 2;
        let (order, block) = (profile.blocks[middle].order, profile.blocks[middle].number);
        let anew = timings(&profile)[&(order, block)].begin - Nanos::from_millis(1);
        let later = profile
            .samples
            .iter_mut()
            .filter(|one| (one.order, one.block) >= (order, block));
        later.for_each(|sample| sample.started = sample.started - anew);
        let cut = RunClock::of(&profile);
        assert_eq!(cut.restarts, 1);
        let (before, after) = (cut.blocks[middle - 1].period, cut.blocks[middle].period);
        assert_eq!(before.expect("samples").1, after.expect("samples").0);
        let long = |(begin, end): (Nanos, Nanos)| end - begin;
        let lengths = cut.blocks.iter().map(|timed| timed.period.map(long));
        assert!(lengths.eq(periods.iter().map(|period| Some(long(*period)))));
    }
}
