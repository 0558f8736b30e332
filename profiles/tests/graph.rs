//! Least squares on the segment graph: exact without noise, honest with it, unmoved by what is wrong.

use crate::plant;

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::derive::graph::{Fit, GraphError, Observations, additivity, observe};
use layerlab_profiles::derive::{LayerTime, differencing};
use layerlab_profiles::design::Design;
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::{Nanos, Placement, Segment};
use plant::{any_plant, phone, proportional};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn fit(layers: u32, observations: &Observations) -> Fit {
    Fit::new(layers, observations, &BTreeSet::new()).expect("connected")
}

fn segment(first: u32, last: u32) -> Segment {
    Segment::new(first, last).expect("a segment")
}

/// The half width of an interval in ns.
fn half_width(estimate: Estimate) -> f64 {
    let (low, high) = estimate.ci95.expect("an interval");
    (high - low).as_nanos() as f64 / 2.0
}

fn numbers(times: &[LayerTime]) -> Vec<Estimate> {
    times
        .iter()
        .flat_map(|time| [Some(time.compute), time.to_processor, time.from_processor])
        .flatten()
        .collect()
}

fn contains(estimate: Estimate, truth: i64) -> bool {
    let (low, high) = estimate.ci95.expect("an interval");
    (low.as_nanos()..=high.as_nanos()).contains(&truth)
}

proptest! {
    /// What differencing makes of exact times is what least squares makes of them, from any design.
    #[test]
    fn without_noise_every_design_gives_what_the_papers_formulas_give(plant in any_plant(40)) {
        let layers = plant.layers();
        let exact: BTreeMap<Segment, Summary> = plant
            .measure(Design::PrefixSuffix.iter(layers), 1, |time| time)
            .into_iter()
            .map(|(segment, samples)| (segment, Summary::of(&samples).expect("one")))
            .collect();
        let expected = differencing(layers, &exact).expect("complete");
        for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
            for count in [1, 4] {
                let samples = plant.measure(design.iter(layers), count, |time| time);
                let fit = fit(layers, &observe(&samples));
                prop_assert!(fit.suspects().is_empty(), "{:?}", fit.suspects());
                for (found, expected) in fit.layer_times().iter().zip(&expected) {
                    prop_assert_eq!(found.compute_includes, expected.compute_includes);
                    let (found, expected) = (numbers(&[*found]), numbers(&[*expected]));
                    prop_assert_eq!(found.len(), expected.len());
                    for (found, expected) in found.iter().zip(&expected) {
                        let error = (found.value - expected.value).as_nanos();
                        // The papers' halves are rounded, several to a compute time.
                        prop_assert!(error.abs() <= 2, "{design}: {error} ns");
                        prop_assert_eq!(found.ci95.is_some(), count > 1);
                    }
                }
                for (found, planted) in fit.cuts().iter().zip(plant.cuts()) {
                    let error = found.value.as_nanos() - planted;
                    prop_assert!(error.abs() <= 1, "{design}: cut off by {error} ns");
                }
            }
        }
    }

    #[test]
    fn without_noise_every_segment_and_combination_is_exact(
        plant in any_plant(30),
        bits in prop::collection::vec(any::<bool>(), 30),
    ) {
        let layers = plant.layers();
        let samples = plant.measure(Design::Local.iter(layers), 3, |time| time);
        let fit = fit(layers, &observe(&samples));
        for segment in Design::Grouped.iter(layers) {
            let error = fit.segment(segment).value.as_nanos() - plant.segment(segment);
            prop_assert!(error.abs() <= 1, "{segment}: {error} ns");
        }
        let cpu: Vec<LayerTime> = cpu(layers, 7_000_000, 1_000.0);
        let combination = Placement::new(bits[..layers as usize].to_vec());
        let on_npu: i64 = combination.npu_runs().map(|run| plant.segment(run)).sum();
        let on_cpu = combination.processors().iter().filter(|&&p| p == 0).count() as i64 * 7_000_000;
        let predicted = fit.combination(&cpu, &combination).expect("one model");
        let error = predicted.value.as_nanos() - on_npu - on_cpu;
        prop_assert!(error.abs() <= 1, "{error} ns");
    }

    /// A fifth of one segment's samples ten times too long moves nothing by more than its interval.
    #[test]
    fn one_disturbed_segment_moves_no_number_by_more_than_its_interval(
        seed in any::<u64>(),
        sigma in 0.005..0.05,
        place in any::<prop::sample::Index>(),
    ) {
        let plant = phone(12, seed);
        let layers = plant.layers();
        let clean = plant.measure(Design::Local.iter(layers), 30, proportional(sigma, seed));
        let mut disturbed = clean.clone();
        let segments: Vec<Segment> = clean.keys().copied().collect();
        let samples = disturbed.get_mut(place.get(&segments)).expect("measured");
        for sample in samples.iter_mut().step_by(5) {
            *sample = Nanos::from_nanos(10 * sample.as_nanos());
        }
        let (clean, disturbed) = (fit(layers, &observe(&clean)), fit(layers, &observe(&disturbed)));
        let before = numbers(&clean.layer_times());
        for (before, after) in before.iter().zip(numbers(&disturbed.layer_times())) {
            let moved = (before.value - after.value).as_nanos().abs() as f64;
            prop_assert!(moved <= half_width(*before), "{before:?} became {after:?}");
        }
    }

    /// Four times the samples halve the intervals.
    #[test]
    fn intervals_shrink_with_samples(seed in any::<u64>()) {
        let plant = phone(10, seed);
        let widths = |count| {
            let noise = proportional(0.02, seed);
            let samples = plant.measure(Design::Local.iter(10), count, noise);
            let widths = numbers(&fit(10, &observe(&samples)).layer_times());
            widths.into_iter().map(half_width).sum::<f64>()
        };
        let ratio = widths(20) / widths(80);
        prop_assert!((1.7..2.4).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_order_of_samples_does_not_matter(seed in any::<u64>()) {
        let plant = phone(6, seed);
        let samples = plant.measure(Design::Local.iter(6), 9, proportional(0.02, seed));
        let mut reversed = samples.clone();
        reversed.values_mut().for_each(|times| times.reverse());
        let values = |samples| numbers(&fit(6, &observe(samples)).layer_times());
        for (one, other) in values(&samples).iter().zip(values(&reversed)) {
            // Sums of floating point numbers may differ in their last digit.
            prop_assert!((one.value - other.value).as_nanos().abs() <= 1);
        }
    }
}

/// A CPU on which every layer takes as long.
fn cpu(layers: u32, nanos: i64, standard_error_ns: f64) -> Vec<LayerTime> {
    use layerlab_profiles::SignedNanos;
    use layerlab_profiles::derive::Includes;
    let compute = Estimate::normal(SignedNanos::from_nanos(nanos), Some(standard_error_ns));
    let time = LayerTime {
        compute,
        compute_includes: Includes::default(),
        to_processor: None,
        from_processor: None,
    };
    vec![time; layers as usize]
}

/// The share of intervals that hold the truth, over many runs of a small model.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let (mut held, mut all) = (0, 0);
    for seed in 0..150 {
        let plant = phone(8, seed % 10);
        let samples = plant.measure(Design::Local.iter(8), 10, proportional(0.03, seed));
        let fit = fit(8, &observe(&samples));
        for (cut, planted) in fit.cuts().iter().zip(plant.cuts()) {
            held += usize::from(contains(*cut, planted));
            all += 1;
        }
        for segment in Design::Grouped.iter(8) {
            held += usize::from(contains(fit.segment(segment), plant.segment(segment)));
            all += 1;
        }
    }
    let share = held as f64 / all as f64;
    assert!((0.92..0.98).contains(&share), "{share}");
}

/// The variance of a combination on both processors is the sum of both parts.
#[test]
fn the_interval_of_a_combination_includes_the_cpus() {
    let plant = phone(6, 3);
    let samples = plant.measure(Design::Local.iter(6), 200, proportional(0.01, 3));
    let fit = fit(6, &observe(&samples));
    let width = |text: &str, error| {
        let combination: Placement = text.parse().expect("bits");
        half_width(
            fit.combination(&cpu(6, 9_000_000, error), &combination)
                .expect("fits"),
        )
    };
    let on_npu = width("011110", 0.0);
    let on_cpu = 1.96 * 50_000.0 * 2.0_f64.sqrt();
    assert!((width("011110", 50_000.0) / on_npu.hypot(on_cpu) - 1.0).abs() < 0.01);
    assert!((width("000000", 50_000.0) / (1.96 * 50_000.0 * 6.0_f64.sqrt()) - 1.0).abs() < 0.01);
    assert!((width("111111", 1e9) / half_width(fit.segment(Segment::whole(6))) - 1.0).abs() < 0.01);
}

/// One segment half as long again as it should be, consistently: where others check it, it is found out.
#[test]
fn a_segment_that_contradicts_the_others_is_suspected_and_loses_its_weight() {
    let plant = phone(10, 5);
    let mut samples = plant.measure(Design::Grouped.iter(10), 20, proportional(0.02, 5));
    let clean = fit(10, &observe(&samples));
    for wrong in [Segment::single(4), segment(3, 4), segment(2, 8)] {
        let right = samples[&wrong].clone();
        let longer = |time: &Nanos| Nanos::from_nanos(time.as_nanos() * 3 / 2);
        samples.insert(wrong, right.iter().map(longer).collect());
        let disturbed = fit(10, &observe(&samples));
        assert_eq!(disturbed.suspects(), [wrong]);
        let pairs = numbers(&clean.layer_times());
        for (before, after) in pairs.iter().zip(numbers(&disturbed.layer_times())) {
            let moved = (before.value - after.value).as_nanos().abs() as f64;
            assert!(
                moved <= half_width(*before),
                "{wrong}: {before:?} became {after:?}"
            );
        }
        samples.insert(wrong, right);
    }
}

/// In the one cycle of the local design nobody can say who is wrong; then it is the long one.
#[test]
fn in_doubt_the_longest_segment_is_suspected() {
    let plant = phone(10, 6);
    let mut samples = plant.measure(Design::Local.iter(10), 30, proportional(0.02, 6));
    let whole = samples.get_mut(&Segment::whole(10)).expect("measured");
    for time in whole {
        *time = Nanos::from_nanos(time.as_nanos() * 6 / 5);
    }
    assert_eq!(fit(10, &observe(&samples)).suspects(), [Segment::whole(10)]);
}

#[test]
fn additivity_is_rejected_where_long_segments_take_longer_than_their_parts() {
    let held_back: BTreeSet<Segment> = [segment(1, 7), segment(3, 9), segment(4, 12)].into();
    let tested = |extra: f64, seed| {
        let plant = phone(12, seed);
        let segments = Design::Local.iter(12).chain(held_back.iter().copied());
        let mut samples = plant.measure(segments, 20, proportional(0.02, seed));
        for (segment, times) in &mut samples {
            let factor = 1.0 + extra * f64::from(segment.layers() - 1) / 11.0;
            for time in times {
                *time = Nanos::from_nanos((time.as_nanos() as f64 * factor).round() as u64);
            }
        }
        additivity(12, &observe(&samples), &held_back)
            .expect("connected")
            .expect("measured")
    };
    let p_values: Vec<f64> = (0..200)
        .map(|seed| tested(0.0, seed).p_value.expect("p"))
        .collect();
    let below = |limit: f64| p_values.iter().filter(|p| **p < limit).count();
    assert!((2..=22).contains(&below(0.05)), "{}", below(0.05));
    assert!((75..=125).contains(&below(0.5)), "{}", below(0.5));
    let bent = tested(0.3, 1);
    assert!(
        bent.p_value.expect("p") < 1e-6 && bent.misfit_percent > 5.0,
        "{bent:?}"
    );
    assert_eq!(bent.held_back.len(), 3);
    assert!(
        bent.held_back
            .iter()
            .all(|held| held.measured.signed() > held.predicted.value)
    );
}

#[test]
fn nothing_is_tested_where_nothing_was_held_back() {
    let plant = phone(4, 1);
    let samples = plant.measure(Design::Local.iter(4), 5, |time| time);
    let tested = additivity(4, &observe(&samples), &BTreeSet::from([segment(1, 3)]));
    assert_eq!(tested, Ok(None));
}

#[test]
fn segments_that_do_not_determine_the_times_are_refused_by_name() {
    let plant = phone(4, 1);
    let fit = |segments: &[(u32, u32)], layers| {
        let segments = segments.iter().map(|&(first, last)| segment(first, last));
        let samples = plant.measure(segments, 3, |time| time);
        Fit::new(layers, &observe(&samples), &BTreeSet::new()).map(|_| ())
    };
    let local = [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4)];
    assert_eq!(fit(&local, 4), Ok(()));
    assert_eq!(fit(&local, 0), Err(GraphError::NoLayers));
    let beyond = GraphError::UnknownLayer {
        segment: segment(3, 4),
        layers: 3,
    };
    assert_eq!(fit(&local, 3), Err(beyond));
    assert_eq!(
        fit(&local[..6], 4),
        Err(GraphError::NoneBegins { layer: 4 })
    );
    assert_eq!(
        fit(&[(1, 2), (2, 2)], 2),
        Err(GraphError::NoneEnds { layer: 1 })
    );
    let apart = GraphError::Disconnected {
        one: segment(1, 1),
        other: segment(4, 4),
    };
    assert_eq!(
        fit(&[(1, 1), (2, 2), (3, 3), (4, 4), (1, 2), (2, 3)], 4),
        Err(apart)
    );
}

#[test]
fn spread_is_known_from_all_segments_together() {
    // Two samples of each: alone they say nothing about the noise, twenty of them do.
    let plant = phone(10, 2);
    let samples = plant.measure(Design::Local.iter(10), 2, proportional(0.02, 2));
    let observations = observe(&samples);
    let sigma = observations.noise.proportional;
    assert!((0.012..0.03).contains(&sigma), "{sigma}");
    assert!(observations.segments.iter().all(|o| o.freedom > 3.0));
}

#[test]
fn a_segment_that_scatters_more_than_the_others_has_a_wider_interval() {
    let plant = phone(8, 4);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut samples = plant.measure(Design::Local.iter(8), 40, proportional(0.01, 4));
    let wild = samples.get_mut(&Segment::single(5)).expect("measured");
    for time in wild {
        let factor = (0.1 * plant::standard_normal(&mut random)).exp();
        *time = Nanos::from_nanos((time.as_nanos() as f64 * factor) as u64);
    }
    let observations = observe(&samples);
    let excess = |of| {
        let found = observations.segments.iter().find(|o| o.segment == of);
        found.expect("observed").excess_variance
    };
    assert!(excess(Segment::single(5)) > 30.0 * excess(Segment::single(4)));
    let _: u8 = random.random();
}
