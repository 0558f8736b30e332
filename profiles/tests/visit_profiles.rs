//! Profiles of measurements in several visits: states, and a whole that contradicts its parts.

use crate::common;

use std::collections::BTreeMap;

use common::visits::{SAMPLES_OF_VISIT, profile_of_visits, run_of_visits};
use common::{CPU, NPU, layers};
use layerlab_profiles::check::{Rule, Severity, check};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Block, BuildError, Header, LayerTimeRow, Measured, Method, Profile, Rejected, Sample,
};
use layerlab_profiles::{Nanos, Segment, SignedNanos};

/// A profile of visits at these speeds, on whose accelerator the whole takes `whole` times as long as its parts say.
fn profile(speeds: &[f64], whole: f64) -> Result<Profile, BuildError> {
    profile_of_visits(speeds, whole, Method::Graph, Vec::new())
}

/// The orders whose blocks do not count because of the processor's state.
fn of_other_state(profile: &Profile) -> Vec<u32> {
    let blocks = profile.blocks.iter();
    blocks
        .filter(|block| block.rejection == Some(Rejected::OtherState))
        .map(|block| block.order)
        .collect()
}

fn errors(profile: &Profile) -> Vec<Rule> {
    let findings = check(profile).into_iter();
    findings
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn a_profile_of_several_visits_is_sound_and_has_intervals() {
    let profile = profile(&[1.0, 1.01, 0.99, 1.0, 1.02], 1.0).expect("a profile");
    assert_eq!(errors(&profile), []);
    assert!(profile.rejected.is_empty());
    assert!(
        profile
            .times
            .iter()
            .all(|row| row.time.compute.ci95.is_some())
    );
    assert!(
        profile
            .segments
            .iter()
            .all(|row| row.summary.median_ci95.is_some())
    );
    for row in &profile.times {
        let (low, high) = row.time.compute.ci95.expect("an interval");
        let width = (high - low).as_nanos() as f64 / row.time.compute.value.as_nanos() as f64;
        assert!(width > 0.01, "speeds that differ by 1 % are in it: {width}");
    }
}

#[test]
fn blocks_of_the_less_usual_state_do_not_count() {
    let two = profile(&[1.0, 1.01, 1.5, 0.99, 1.51], 1.0).expect("three visits in one state");
    assert_eq!(errors(&two), []);
    let other = of_other_state(&two);
    assert_eq!(other, [5, 6, 9, 10]);
    assert!(
        two.rejected
            .iter()
            .all(|sample| other.contains(&sample.order))
    );
    assert_eq!(two.rejected.len(), 2 * 4 * (3 + 6));
    let layer = two
        .times
        .iter()
        .find(|row| row.processor == CPU)
        .expect("a row");
    let ratio = layer.time.compute.value.as_nanos() as f64 / 10e6;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn states_are_told_apart_until_one_is_left() {
    let one = profile(&[1.0, 1.001, 1.002, 1.06, 2.0], 1.0).expect("three visits in one state");
    assert_eq!(of_other_state(&one), [7, 8, 9, 10]);
    assert_eq!(errors(&one), []);
    let again = one.rederive(Method::Graph).expect("what it was built from");
    assert_eq!(again, one);
}

/// What the adaptive design measures first may all fall in one state, and what it measures later in the other.
#[test]
fn a_state_in_which_alone_a_layer_was_timed_counts_and_the_profile_says_so() {
    let (mut header, mut measured) = run_of_visits(&[1.0, 1.01, 0.99, 1.5, 1.51], 1.0);
    let measurement = &mut header.measurements[1];
    measurement.design = Design::Adaptive;
    (measurement.visits, measurement.samples_per_segment) = (Some(2), 2 * SAMPLES_OF_VISIT);
    measurement.target = Some(0.02);
    measurement.budget_ns = Some(Nanos::from_millis(1_000));
    let is_last = |sample: &Sample| sample.processor == NPU && sample.segment == Segment::single(3);
    measured
        .samples
        .retain(|sample| !is_last(sample) || sample.order > 6);
    let both = Profile::build(header, layers(), measured).expect("all layers");
    assert_eq!(of_other_state(&both), [7, 9], "the CPU's");
    assert_eq!(errors(&both), []);
    let findings = check(&both);
    let found = findings
        .iter()
        .find(|finding| finding.rule == Rule::TwoStates)
        .expect("a finding");
    assert!(
        found
            .sentence
            .starts_with("`npu` was in two states: 3 visits in one, 2 in the other"),
        "{found}"
    );
    let again = both.rederive(Method::Graph).expect("all layers");
    assert_eq!(again, both);
}

#[test]
fn where_no_state_has_three_visits_the_states_are_named_and_nothing_is_built() {
    let error = profile(&[1.0, 1.01, 1.5, 1.51], 1.0).expect_err("two visits in each state");
    let expected = format!(
        "`{CPU}` was in two states: 2 visits in one, 2 in the other, in which everything takes 50 % more"
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn a_whole_that_contradicts_its_parts_is_an_error() {
    let sound = profile(&[1.0, 1.01, 0.99, 1.0, 1.02], 1.005).expect("a profile");
    assert_eq!(
        errors(&sound),
        [],
        "half a per cent is a property of the device"
    );
    let wrong = profile(&[1.0, 1.01, 0.99, 1.0, 1.02], 1.1).expect("a profile");
    assert_eq!(errors(&wrong), [Rule::SumContradiction]);
}

#[test]
fn passes_that_contradict_their_layers_are_an_error() {
    let mut wrong = profile(&[1.0, 1.01, 0.99, 1.0, 1.02], 1.0).expect("a profile");
    for block in wrong
        .blocks
        .iter_mut()
        .filter(|block| block.processor == CPU)
    {
        for end in [&mut block.before, &mut block.after] {
            end.sentinel = Nanos::from_nanos(end.sentinel.as_nanos() * 3 / 2);
        }
    }
    assert_eq!(errors(&wrong), [Rule::SumContradiction]);
}

#[test]
fn blocks_that_differ_by_more_than_their_ends_explain_are_unsteady() {
    let is_unsteady = |speeds: &[f64]| {
        let profile = profile(speeds, 1.0).expect("a profile");
        check(&profile)
            .iter()
            .any(|finding| finding.rule == Rule::Unsteady)
    };
    assert!(!is_unsteady(&[1.0, 1.01, 0.99, 1.0, 1.02]));
    assert!(is_unsteady(&[1.0, 1.05, 0.95, 1.02, 0.98, 1.06]));
}

/// Five visits in which segments take turns. From the third turn of order 4, the second visit of
/// the accelerator, on everything takes `longer` times as long; the sentinels do not see it.
fn stepped(longer: f64) -> (Header, Measured) {
    let (header, mut measured) = run_of_visits(&[1.0, 1.01, 0.99, 1.0, 1.02], 1.0);
    let mut turns: BTreeMap<(u32, Segment), u64> = BTreeMap::new();
    for sample in &mut measured.samples {
        let turn = turns.entry((sample.order, sample.segment)).or_default();
        // After all that was measured before, and the shorter segments of the same turn.
        let place =
            1_000 * u64::from(sample.order) + 100 * *turn + 10 * u64::from(sample.segment.first());
        sample.started = Nanos::from_millis(place + u64::from(sample.segment.last()));
        if sample.order == 4 && *turn >= 2 {
            sample.duration =
                Nanos::from_nanos((sample.duration.as_nanos() as f64 * longer) as u64);
        }
        *turn += 1;
    }
    (header, measured)
}

fn speed_steps(profile: &Profile) -> Option<String> {
    let findings = check(profile).into_iter();
    let mut of_steps = findings.filter(|finding| finding.rule == Rule::SpeedSteps);
    of_steps.next().map(|finding| finding.sentence)
}

#[test]
fn a_speed_that_changed_within_a_block_is_found() {
    let build = |(header, measured)| Profile::build(header, layers(), measured).expect("a profile");
    assert_eq!(speed_steps(&build(stepped(1.0))), None);
    assert_eq!(speed_steps(&build(stepped(1.04))), None, "less than 5 %");
    for (longer, told) in [(1.15, "15 % more"), (0.85, "15 % less")] {
        let expected = format!(
            "in 1 of 5 blocks on `{NPU}`, 1 of which count, everything took more or less from one inference to the next \
             (most: {told} in block 0 of order 4)"
        );
        assert_eq!(speed_steps(&build(stepped(longer))), Some(expected));
    }
}

/// The block was measured again, as block 1, and nothing happened.
#[test]
fn a_speed_that_changed_within_a_block_that_does_not_count_is_found() {
    let with = |rejection| {
        let (header, mut measured) = stepped(1.15);
        let is_stepped = |sample: &Sample| sample.order == 4;
        measured.rejected = measured
            .samples
            .extract_if(.., |sample| is_stepped(sample))
            .collect();
        let (_, steady) = stepped(1.0);
        let again = steady.samples.into_iter().filter(is_stepped);
        measured
            .samples
            .extend(again.map(|sample| Sample { block: 1, ..sample }));
        let mut blocks = measured.blocks.iter_mut();
        let block = blocks.find(|block| block.order == 4).expect("a block");
        let again = Block {
            number: 1,
            ..block.clone()
        };
        block.rejection = Some(rejection);
        measured.blocks.push(again);
        speed_steps(&Profile::build(header, layers(), measured).expect("a profile"))
    };
    let found = with(Rejected::SentinelMoved).expect("a finding");
    assert!(
        found.starts_with(&format!("in 1 of 6 blocks on `{NPU}`, 0 of which count,")),
        "{found}"
    );
    assert_eq!(with(Rejected::Throttling), None, "that says so itself");
}

/// A profile of five visits in which one inference in three of each layer on the CPU takes a tenth longer, and the passes at
/// their ends as long as all that comes to.
fn skewed(method: Method) -> Profile {
    let (mut header, mut measured) = run_of_visits(&[1.0, 1.01, 0.99, 1.0, 1.0], 1.0);
    header.measurements[0].method = method;
    let longer = |time: Nanos, by: f64| Nanos::from_nanos((time.as_nanos() as f64 * by) as u64);
    let of_cpu = |sample: &&mut Sample| sample.processor == CPU;
    let mut turns = vec![0_u64; layers().len() + 1];
    for sample in measured.samples.iter_mut().filter(of_cpu) {
        let turn = &mut turns[sample.segment.first() as usize];
        // Each layer at another time, so that most passes have one such inference.
        if (*turn + u64::from(sample.segment.first())).is_multiple_of(3) {
            sample.duration = longer(sample.duration, 1.1);
        }
        *turn += 1;
    }
    for block in measured
        .blocks
        .iter_mut()
        .filter(|block| block.processor == CPU)
    {
        for end in [&mut block.before.sentinel, &mut block.after.sentinel] {
            *end = longer(*end, 1.0 + 0.1 / 3.0);
        }
    }
    Profile::build(header, layers(), measured).expect("a profile")
}

#[test]
fn robust_times_of_skewed_layers_add_up_and_their_medians_do_not() {
    let misfit = |method| {
        let profile = skewed(method);
        let of_cpu = |row: &&LayerTimeRow| row.processor == CPU;
        let times = profile.times.iter().filter(of_cpu);
        let sum: i64 = times.map(|row| row.time.compute.value.as_nanos()).sum();
        let ends = profile.blocks.iter().filter(|block| block.processor == CPU);
        let logarithms = ends.flat_map(|block| [block.before.sentinel, block.after.sentinel]);
        let logarithms: Vec<f64> = logarithms.map(|end| (end.as_nanos() as f64).ln()).collect();
        let whole = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        sum as f64 / whole - 1.0
    };
    let (robust, of_medians) = (misfit(Method::Robust), misfit(Method::Median));
    assert!(robust.abs() < 0.005, "{robust}");
    assert!(of_medians < -0.02, "{of_medians}");
    assert_eq!(errors(&skewed(Method::Robust)), []);
}

#[test]
fn robust_times_are_made_again_from_their_samples() {
    let profile = skewed(Method::Robust);
    assert!(profile.times.iter().any(|row| row.method == Method::Robust));
    let again = profile.rederive(Method::Graph).expect("all layers");
    assert_eq!(again.times, profile.times);
    let mut changed = profile.clone();
    changed.times[0].time.compute.value =
        changed.times[0].time.compute.value + SignedNanos::from_nanos(1);
    assert_eq!(errors(&changed), [Rule::TimeContradiction]);
}
