//! Where a machine is faster or slower for moments, and inferences that follow each other with it, that is taken out of their
//! times: what is left errs by less, and intervals still hold the truth.

use std::collections::BTreeSet;

use layerlab_profiles::derive::graph::{Fit, Observations, Visit, VisitSamples, observe_visits};
use layerlab_profiles::design::Design;
use layerlab_profiles::{Nanos, Segment};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

const LAYERS: u32 = 8;
const RUNS: u64 = 200;
const VISITS: u32 = 5;
const ROUNDS: u32 = 8;

/// How a machine's speed changes, as the logarithm of what everything takes, and how else inferences scatter.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Its standard deviation where it wanders.
    wanders: f64,
    /// How much of that stays from one inference to the next.
    stays: f64,
    /// By how much it is slower while a neighbour is busy: for 17 inferences out of 67.
    disturbed: f64,
    /// The standard deviation of what an inference has for itself.
    inference: f64,
    /// By how much the two inferences after one of the whole model are slower: it leaves caches in which nothing of theirs is.
    after_whole: f64,
}

/// A neighbour comes, and goes.
const COMES: f64 = 0.02;
const GOES: f64 = 0.06;

const WANDERS: Machine = Machine {
    wanders: 0.05,
    stays: 0.9,
    disturbed: 0.0,
    inference: 0.01,
    after_whole: 0.0,
};

const DISTURBED: Machine = Machine {
    wanders: 0.0,
    stays: 0.0,
    disturbed: 0.1,
    inference: 0.005,
    after_whole: 0.0,
};

/// The planted time of a segment in ns: a fixed cost, and layers that take more each.
fn truth(segment: Segment) -> f64 {
    let layers = (segment.first()..=segment.last()).map(|layer| 200_000.0 * f64::from(layer));
    300_000.0 + layers.sum::<f64>()
}

/// One run in which all segments take turns in each visit.
fn run(machine: Machine, seed: u64) -> VisitSamples {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let normal = |random: &mut ChaCha8Rng| -> f64 { random.sample(StandardNormal) };
    let mut segments = Design::Local.segments(LAYERS);
    let mut samples = VisitSamples::default();
    for order in 0..VISITS {
        let visit = Visit { order, block: 0 };
        let mut speed = machine.wanders * normal(&mut random);
        let mut is_busy = false;
        let mut since_whole = usize::MAX;
        for _ in 0..ROUNDS {
            segments.shuffle(&mut random);
            for &segment in &segments {
                let fresh = machine.wanders * (1.0 - machine.stays.powi(2)).sqrt();
                speed = machine.stays * speed + fresh * normal(&mut random);
                is_busy ^= random.random_bool(if is_busy { GOES } else { COMES });
                let busy = f64::from(u8::from(is_busy)) * machine.disturbed;
                let own = machine.inference * normal(&mut random);
                since_whole = match segment == Segment::whole(LAYERS) {
                    true => 0,
                    false => since_whole.saturating_add(1),
                };
                let is_after = (1..=2).contains(&since_whole);
                let after = f64::from(u8::from(is_after)) * machine.after_whole;
                let time = truth(segment) * (speed + busy + after + own).exp();
                samples.push(segment, visit, Nanos::from_nanos(time.round() as u64));
            }
        }
    }
    samples
}

/// The same samples as if those of a segment had been taken one after the other: nothing is known of moments.
fn without_turns(samples: &VisitSamples) -> VisitSamples {
    let mut again = VisitSamples::default();
    for (&segment, visits) in &samples.segments {
        for (&visit, durations) in visits {
            for &duration in durations {
                again.push(segment, visit, duration);
            }
        }
    }
    again
}

fn fit(observations: &Observations) -> Fit {
    Fit::new(LAYERS, observations, &BTreeSet::new()).expect("connected")
}

/// Layer times without moving: what a layer adds to a segment, and at the ends half of the fixed cost.
fn computing(layer: u32) -> f64 {
    let ends = u32::from(layer == 1) + u32::from(layer == LAYERS);
    200_000.0 * f64::from(layer) + 150_000.0 * f64::from(ends)
}

/// The sum of the squares of all layers' errors, as shares, beside what all have in common.
fn squares(samples: &VisitSamples) -> f64 {
    let times = fit(&observe_visits(samples)).layer_times();
    let found = times
        .iter()
        .map(|time| time.compute.value.as_nanos() as f64);
    let found: Vec<f64> = found.collect();
    let common = found.iter().sum::<f64>() / (1..=LAYERS).map(computing).sum::<f64>();
    let errors = (1..)
        .zip(found)
        .map(|(layer, found)| found / common / computing(layer) - 1.0);
    errors.map(|error| error * error).sum()
}

#[test]
fn times_err_by_less_than_half_where_moments_are_known() {
    let (mut known, mut unknown) = (0.0, 0.0);
    for seed in 0..RUNS {
        let samples = run(DISTURBED, seed);
        known += squares(&samples);
        unknown += squares(&without_turns(&samples));
    }
    let less = (known / unknown).sqrt();
    assert!(less < 0.5, "{less:.3} times as much");
}

#[test]
fn what_a_segment_does_to_those_after_it_is_not_the_speed_of_its_moment() {
    let machine = Machine {
        after_whole: 0.15,
        ..WANDERS
    };
    let (whole, other) = (Segment::whole(LAYERS), Segment::single(4));
    let ratio = |samples: &VisitSamples| {
        let observed = observe_visits(samples);
        let time_ns = |segment| observed.of(segment).expect("timed").time_ns;
        time_ns(whole) / time_ns(other)
    };
    let mut difference = 0.0;
    for seed in 0..RUNS {
        let samples = run(machine, seed);
        difference += (ratio(&samples) / ratio(&without_turns(&samples))).ln();
    }
    let mean = difference / RUNS as f64;
    assert!(mean.abs() < 0.01, "the whole's time changes by {mean:.4}");
}

#[test]
fn intervals_hold_the_truth_where_moments_are_taken_out() {
    let slow = Machine {
        stays: 0.98,
        ..WANDERS
    };
    let noisy = Machine {
        inference: 0.03,
        ..WANDERS
    };
    for machine in [WANDERS, slow, noisy] {
        let (mut held, mut all) = (0, 0);
        for seed in 0..RUNS {
            let times = fit(&observe_visits(&run(machine, seed))).layer_times();
            for (layer, time) in (1..).zip(times) {
                let (low, high) = time.compute.ci95.expect("five visits");
                let interval = low.as_nanos() as f64..=high.as_nanos() as f64;
                held += u32::from(interval.contains(&computing(layer)));
                all += 1;
            }
        }
        let percent = 100.0 * f64::from(held) / f64::from(all);
        assert!(
            (92.0..=98.0).contains(&percent),
            "{machine:?}: {percent:.1} %"
        );
    }
}

#[test]
fn where_inferences_have_nothing_in_common_nothing_is_taken_out() {
    let machine = Machine {
        disturbed: 0.0,
        inference: 0.03,
        ..DISTURBED
    };
    for seed in 0..RUNS {
        let samples = run(machine, seed);
        let times = |samples: &VisitSamples| -> Vec<f64> {
            let segments = observe_visits(samples).segments.into_iter();
            segments.map(|one| one.time_ns).collect()
        };
        assert_eq!(times(&samples), times(&without_turns(&samples)), "{seed}");
    }
}

#[test]
fn medians_stay_those_of_the_samples_as_they_are() {
    let samples = run(DISTURBED, 1);
    let (known, unknown) = (
        observe_visits(&samples),
        observe_visits(&without_turns(&samples)),
    );
    assert_eq!(known.visits.of_medians, unknown.visits.of_medians);
    for (one, other) in known.segments.iter().zip(&unknown.segments) {
        assert_ne!(one.time_ns, other.time_ns);
        assert_eq!(one.median, other.median);
    }
}
