//! Tensors that pass through segments cost something else than moving in and out: what, follows from the segments, and the
//! times of layers and of the whole do not err by it.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::derive::graph::{
    AdditivityTest, Fit, Observations, additivity, observe, whole_against_parts,
};
use layerlab_profiles::design::Design;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Nanos, Segment, Shortcut, Shortcuts};
use proptest::prelude::*;

use crate::plant::{Plant, any_plant, phone, proportional};

const LAYERS: u32 = 16;

/// What a block's shortcut holds.
const SHORTCUT_BYTES: u64 = 1_000_000;

/// Planted in most tests: passing is cheaper than moving in and out by so much for each byte. Layers take milliseconds.
const NS_PER_BYTE: f64 = -0.2;

/// Layer `from` gives so many bytes to layer `to`, which is beyond the next.
fn shortcut((from, to_layer, bytes): (u32, u32, u64)) -> (u32, Shortcut) {
    let bytes = Bytes::from_bytes(bytes);
    (from, Shortcut { to_layer, bytes })
}

/// Residual blocks of three layers, whose shortcuts hold half as much from one to the next.
fn residual() -> Shortcuts {
    let blocks = (0..5).map(|block| (3 * block + 1, 3 * block + 4, SHORTCUT_BYTES >> block));
    blocks.map(shortcut).collect()
}

/// `count` samples of each segment where each byte that passes costs `ns_per_byte`.
fn measure(
    plant: &Plant,
    shortcuts: &Shortcuts,
    ns_per_byte: f64,
    segments: impl IntoIterator<Item = Segment>,
    count: usize,
    mut noise: impl FnMut(f64) -> f64,
) -> BTreeMap<Segment, Vec<Nanos>> {
    let mut samples = plant.measure(segments, count, |time| time);
    for (segment, times) in &mut samples {
        let passing = ns_per_byte * shortcuts.passing(*segment).as_bytes() as f64;
        for time in times {
            let really = time.as_nanos() as f64 + passing;
            *time = Nanos::from_nanos(noise(really).round() as u64);
        }
    }
    samples
}

/// The segments of the local design, and all of three to six layers.
fn segments(layers: u32) -> impl Iterator<Item = Segment> {
    let longer = Design::Grouped.iter(layers);
    let longer = longer.filter(|segment| (3..=6).contains(&segment.layers()));
    Design::Local.iter(layers).chain(longer)
}

fn fit(observations: &Observations) -> Fit {
    Fit::new(LAYERS, observations, &BTreeSet::new()).expect("connected")
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    let (low, high) = estimate.ci95.expect("an interval");
    (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&truth)
}

/// t_p of a layer with half of what neighbours save and of what differs between in and out (docs/method.md §3).
fn computing(plant: &Plant, layer: u32) -> f64 {
    let cuts = plant.cuts();
    let half = |cut: u32| match cut {
        0 => 0.0,
        cut => cuts
            .get(cut as usize - 1)
            .map_or(0.0, |&cost| cost as f64 / 2.0),
    };
    let alone = plant.segment(Segment::single(layer)) as f64;
    alone - half(layer - 1) - half(layer)
}

proptest! {
    #[test]
    fn without_noise_every_segment_is_exact_whatever_passes_through(
        plant in any_plant(14),
        lives in prop::collection::vec((1..14_u32, 2..8_u32, 1..160_000_u64), 0..5),
        ns_per_64_bytes in 0..32_u32,
    ) {
        // What passes costs whole nanoseconds, so that no sample is rounded.
        let ns_per_byte = f64::from(ns_per_64_bytes) / 64.0;
        let count = plant.layers();
        let lives = lives.into_iter().map(|(from, length, blocks)| (from, from + length, 64 * blocks));
        let lives: Vec<_> = lives.filter(|&(_, to, _)| to <= count).collect();
        let shortcuts: Shortcuts = lives.iter().copied().map(shortcut).collect();
        let samples = measure(&plant, &shortcuts, ns_per_byte, segments(count), 3, |time| time);
        let observed = observe(&samples).with_shortcuts(shortcuts.clone());
        let fit = Fit::new(count, &observed, &BTreeSet::new()).expect("connected");
        for segment in Design::Grouped.iter(count) {
            let passing = ns_per_byte * shortcuts.passing(segment).as_bytes() as f64;
            let truth = plant.segment(segment) as f64 + passing;
            let error = fit.segment(segment).value.as_nanos() as f64 - truth;
            prop_assert!(error.abs() <= 1.0, "{segment}: {error} ns");
        }
        if let Some(found) = fit.ns_per_passing_byte() {
            let most = lives.iter().map(|&(_, _, bytes)| bytes).max().unwrap_or(1);
            prop_assert!((found.value - ns_per_byte).abs() <= 1.0 / most as f64 + 1e-9, "{found:?}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_whether_passing_costs_something_or_nothing() {
    let shortcuts = residual();
    for ns_per_byte in [NS_PER_BYTE, 0.0, 0.3] {
        let (mut held, mut all, mut cost_held) = (0, 0, 0);
        for seed in 0..200 {
            let plant = phone(LAYERS as usize, seed % 10);
            let noise = proportional(0.02, seed);
            let samples = measure(&plant, &shortcuts, ns_per_byte, segments(LAYERS), 20, noise);
            let fit = fit(&observe(&samples).with_shortcuts(shortcuts.clone()));
            for (layer, time) in (1..).zip(fit.layer_times()) {
                held += u32::from(holds(time.compute, computing(&plant, layer)));
                all += 1;
            }
            let cost = fit.ns_per_passing_byte().expect("five shortcuts");
            let half_width = cost.half_width.expect("20 samples");
            cost_held += u32::from((cost.value - ns_per_byte).abs() <= half_width);
        }
        let percent = 100.0 * f64::from(held) / f64::from(all);
        assert!(
            (93.0..=97.0).contains(&percent),
            "{ns_per_byte}: {percent:.1} % of layers"
        );
        assert!(
            (183..=198).contains(&cost_held),
            "{ns_per_byte}: {cost_held} of 200"
        );
    }
}

/// What a network of residual blocks adds up to, and whether times are said to add up.
#[test]
fn the_whole_is_the_sum_of_its_parts_where_shortcuts_are_known() {
    let shortcuts = residual();
    let plant = phone(LAYERS as usize, 3);
    let whole = Segment::whole(LAYERS);
    let held_back: BTreeSet<Segment> = [(2, 9), (5, 14), (1, 10)]
        .map(|(first, last)| Segment::new(first, last).expect("in order"))
        .into();
    let all = segments(LAYERS).chain(held_back.iter().copied());
    let samples = measure(
        &plant,
        &shortcuts,
        3.0 * NS_PER_BYTE,
        all,
        20,
        proportional(0.01, 7),
    );
    let unknown = observe(&samples);
    let known = unknown.clone().with_shortcuts(shortcuts);
    let test = |observations: &Observations| -> (AdditivityTest, f64) {
        let test = additivity(LAYERS, observations, &held_back).expect("connected");
        let sum = whole_against_parts(LAYERS, whole, observations, &held_back).expect("timed");
        (test.expect("measured"), sum.p_value)
    };
    let (adds_up, sum) = test(&known);
    assert!(
        adds_up.p_value.expect("p") > 0.01 && sum > 0.01,
        "{adds_up:?}, {sum}"
    );
    assert!(adds_up.ns_per_passing_byte.is_some());
    let (bent, sum) = test(&unknown);
    assert!(
        bent.p_value.expect("p") < 1e-6 || sum < 1e-6,
        "{bent:?}, {sum}"
    );
    assert_eq!(bent.ns_per_passing_byte, None);
}

/// Single layers and pairs determine a and b alone, and all that pass is explained by them.
#[test]
fn what_the_segments_do_not_tell_is_not_said() {
    let shortcuts = residual();
    let plant = phone(LAYERS as usize, 1);
    let short = Design::Local
        .iter(LAYERS)
        .filter(|segment| segment.layers() < 3);
    let samples = measure(
        &plant,
        &shortcuts,
        NS_PER_BYTE,
        short,
        5,
        proportional(0.02, 1),
    );
    let fit = fit(&observe(&samples).with_shortcuts(shortcuts));
    assert_eq!(fit.ns_per_passing_byte(), None);
}
