//! An agent that is killed is started anew and goes on with the block by a clock that begins anew: honest profiles of that are
//! sound, however the times of both agents lie.

use crate::common;

use std::collections::BTreeMap;

use common::{NPU, good_profile, header, layers, measured, samples};
use layerlab_profiles::Nanos;
use layerlab_profiles::check::{Rule, check};
use layerlab_profiles::document::{Clock, Profile, Sample};

fn rules(profile: &Profile) -> Vec<Rule> {
    check(profile).iter().map(|finding| finding.rule).collect()
}

fn simulated(mut profile: Profile) -> Profile {
    profile.header.simulated = true;
    profile.header.device.simulated = true;
    profile.header.device.clock = Clock::SimulatedExact;
    profile
}

/// The profile whose agent was killed after so many samples of an order's only block, and whose next one timed the rest from
/// so many microseconds after the block's first sample on, or before it.
fn restarted(mut profile: Profile, order: u32, samples: usize, from_us: i64) -> Profile {
    let block = profile.samples.iter_mut();
    let mut block: Vec<&mut Sample> = block.filter(|sample| sample.order == order).collect();
    block.sort_by_key(|sample| sample.started);
    let begin = block[0].started.as_nanos() as i64 + 1_000 * from_us;
    let shift = begin - block[samples].started.as_nanos() as i64;
    for sample in &mut block[samples..] {
        sample.started = Nanos::from_nanos((sample.started.as_nanos() as i64 + shift) as u64);
    }
    profile
}

/// Orders 0 (passes over three layers) and 2 (five segments in turns) have five rounds.
const ROWS: [(u32, usize); 2] = [(0, 15), (2, 25)];

#[test]
fn a_block_may_be_of_two_agents_whose_times_interleave() {
    for (order, rows) in ROWS {
        for (killed_after, from_us) in [
            (1, -7_000),
            (1, -50_000),
            (7, -7_000),
            (7, 21_000),
            (rows - 1, -2_000),
            (rows - 1, 40_000),
        ] {
            let profile = restarted(good_profile(), order, killed_after, from_us);
            assert_eq!(rules(&profile), [], "{order}: {killed_after}, {from_us} us");
        }
    }
}

/// The later agent has less behind it when it comes to the block, and an exact clock tells so.
#[test]
fn the_same_by_an_exact_clock() {
    for (killed_after, from_us) in [(1, -7_000), (1, -900_000), (7, -7_000), (24, -2_000)] {
        let profile = restarted(simulated(good_profile()), 2, killed_after, from_us);
        assert_eq!(rules(&profile), [], "{killed_after}, {from_us} us");
    }
    for (killed_after, from_us) in [(24, 3_000_000), (24, 40_000)] {
        let profile = restarted(simulated(good_profile()), 2, killed_after, from_us);
        let expected = [Rule::ClockContradiction];
        assert_eq!(rules(&profile), expected, "{killed_after}, {from_us} us");
    }
}

/// The profile with an order of its own for each round, as visits with one sample each have.
fn one_sample_per_block() -> Profile {
    let header = header();
    let mut samples = samples(&header);
    samples.sort_by_key(|sample| sample.started);
    let mut taken: BTreeMap<_, u32> = BTreeMap::new();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in &mut samples {
        let round = taken
            .entry((sample.processor.clone(), sample.segment))
            .or_default();
        sample.order = 100 * u32::from(sample.processor == NPU) + *round;
        *round += 1;
        let next = last.entry(sample.order).or_default();
        sample.index = *next;
        *next += 1;
    }
    Profile::build(header, layers(), measured(samples)).expect("every segment has samples")
}

#[test]
fn a_block_of_one_sample_of_each_segment_may_be_of_two_agents() {
    assert_eq!(rules(&one_sample_per_block()), []);
    for (killed_after, from_us) in [(1, -7_000), (2, 3_000), (3, -1_000), (4, 7_000)] {
        let profile = restarted(one_sample_per_block(), 104, killed_after, from_us);
        assert_eq!(rules(&profile), [], "{killed_after}, {from_us} us");
    }
}

/// What explains one block explains not most of them.
#[test]
fn a_gap_that_all_blocks_contradict_is_wrong() {
    let mut profile = one_sample_per_block();
    profile.header.measurements[1].gap_ns = Nanos::from_nanos(5_000_001);
    assert_eq!(rules(&profile), [Rule::ClockContradiction]);
}

#[test]
fn one_sample_of_a_round_in_the_middle_is_of_no_agent_of_its_own() {
    let mut profile = good_profile();
    let samples = profile.samples.iter_mut();
    let mut block: Vec<&mut Sample> = samples.filter(|sample| sample.order == 2).collect();
    block.sort_by_key(|sample| sample.started);
    block[12].started = Nanos::from_nanos(block[3].started.as_nanos() + 1_000_000);
    assert_eq!(rules(&profile), [Rule::ClockContradiction]);
}
