//! Layers that are timed in passes add up to them, also where times are skewed, and intervals hold that.

use layerlab_profiles::derive::graph::{
    ErrorVariance, Observation, Observations, Visit, VisitSamples, observe_passes, observe_visits,
    pass_times,
};
use layerlab_profiles::{Nanos, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

const LAYERS: u32 = 30;
const VISITS: u32 = 5;
const PASSES_OF_VISIT: usize = 6;
const RUNS: u64 = 300;
/// The inflation where visits of one run differ as much as those of several.
const ALIKE: f64 = 1.0;
/// By how much visits differ in speed.
const SPEEDS: f64 = 0.01;

/// How often something happens in a layer's inference, and by what share the inference then takes longer.
#[derive(Clone, Copy)]
struct Skew {
    chance: f64,
    longer: f64,
}

const NONE: Skew = Skew {
    chance: 0.0,
    longer: 0.0,
};
/// In two of three passes it happens somewhere.
const SKEWED: Skew = Skew {
    chance: 0.04,
    longer: 0.3,
};

fn truth(layer: u32) -> f64 {
    100_000.0 + 10_000.0 * f64::from(layer)
}

fn draw(deviation: f64, random: &mut ChaCha8Rng) -> f64 {
    1.0 + deviation * Normal::standard().inverse_cdf(random.random_range(1e-12..1.0))
}

/// What each layer takes in one pass, in ns, on a machine of this speed.
fn pass(skew: Skew, speed: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
    let layer = |layer| {
        let happens = random.random_bool(skew.chance);
        let longer = 1.0 + f64::from(u8::from(happens)) * skew.longer;
        truth(layer) * speed * longer * draw(0.01, random)
    };
    (1..=LAYERS).map(layer).collect()
}

fn run(skew: Skew, seed: u64) -> VisitSamples {
    run_at(1.0, skew, seed)
}

/// A run all of whose visits share this speed, beside those of their own.
fn run_at(speed_of_run: f64, skew: Skew, seed: u64) -> VisitSamples {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = VisitSamples::default();
    for block in 0..VISITS {
        let visit = Visit { order: 1, block };
        let speed = speed_of_run * draw(SPEEDS, &mut random);
        for _ in 0..PASSES_OF_VISIT {
            for (layer, time) in (1..).zip(pass(skew, speed, &mut random)) {
                let time = Nanos::from_nanos(time.round() as u64);
                samples.push(Segment::single(layer), visit, time);
            }
        }
    }
    samples
}

/// The median pass at the average speed, in ns.
fn median_pass(skew: Skew) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(u64::MAX);
    let mut totals: Vec<f64> = (0..20_001)
        .map(|_| pass(skew, 1.0, &mut random).iter().sum())
        .collect();
    totals.sort_by(f64::total_cmp);
    totals[totals.len() / 2]
}

/// The sum of all layers, in ns.
fn sum(observations: &Observations) -> f64 {
    observations.segments.iter().map(|one| one.time_ns).sum()
}

/// The mean over the visits of the logarithm of what their passes take, as a time in ns.
fn passes(samples: &VisitSamples) -> f64 {
    let times = pass_times(samples);
    let logarithms: f64 = times.values().map(|time| time.ln()).sum();
    (logarithms / times.len() as f64).exp()
}

#[test]
fn skewed_layers_add_up_to_their_passes() {
    let samples = run(SKEWED, 1);
    let apart = sum(&observe_visits(&samples)) / passes(&samples);
    assert!(apart < 0.995, "there is something to see: {apart}");
    let together = sum(&observe_passes(&samples, ALIKE)) / passes(&samples);
    assert!((together - 1.0).abs() < 1e-3, "{together}");
}

#[test]
fn all_layers_bear_the_same_share_of_what_passes_take_beyond_them() {
    let samples = run(SKEWED, 2);
    let (apart, together) = (observe_visits(&samples), observe_passes(&samples, ALIKE));
    let shares = apart.segments.iter().zip(&together.segments);
    let shares: Vec<f64> = shares
        .map(|(apart, together)| together.time_ns / apart.time_ns)
        .collect();
    for share in &shares {
        assert!((share / shares[0] - 1.0).abs() < 1e-12, "{shares:?}");
    }
    let more = together.visits.of_times.variance > apart.visits.of_times.variance;
    assert!(more, "that share is known with an error of its own");
}

#[test]
fn where_layers_lack_passes_they_are_left_as_they_are() {
    let mut samples = run(SKEWED, 3);
    for times in samples.segments.values_mut().skip(1) {
        for durations in times.values_mut() {
            durations.pop();
        }
    }
    assert!(pass_times(&samples).is_empty());
    assert_eq!(observe_passes(&samples, ALIKE), observe_visits(&samples));
}

#[test]
fn intervals_of_layers_and_of_the_whole_hold_the_truth() {
    for (skew, name) in [(NONE, "even"), (SKEWED, "skewed")] {
        let whole = median_pass(skew);
        let (mut layers_held, mut whole_held) = (0, 0);
        for seed in 0..RUNS {
            let observations = observe_passes(&run(skew, seed), ALIKE);
            let own = own_errors(&observations);
            for (one, error) in observations.segments.iter().zip(&own) {
                let truth = truth(one.segment.first());
                let shared = observations.visits.of_times;
                layers_held += u64::from(holds(one.time_ns, &[*error], shared, truth));
            }
            whole_held += u64::from(whole_holds(&observations, whole));
        }
        let whole = percent(whole_held, RUNS);
        assert!(
            (92.0..=99.5).contains(&whole),
            "{name}: the whole {whole} %"
        );
        if skew.chance == 0.0 {
            let layers = percent(layers_held, RUNS * u64::from(LAYERS));
            assert!((92.0..=98.0).contains(&layers), "{name}: layers {layers} %");
        }
    }
}

#[test]
fn intervals_hold_what_a_run_has_to_itself() {
    let whole = median_pass(NONE);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    // The visits' mean scatters with the variance SPEEDS² / VISITS, the run adds half of that.
    let of_run = SPEEDS * (0.5 / f64::from(VISITS)).sqrt();
    let runs: Vec<VisitSamples> = (0..3 * RUNS)
        .map(|seed| run_at(draw(of_run, &mut random), NONE, seed))
        .collect();
    let held = |inflation| {
        let observed = runs.iter().map(|run| observe_passes(run, inflation));
        let held = observed.filter(|observations| whole_holds(observations, whole));
        percent(held.count() as u64, 3 * RUNS)
    };
    let (alike, inflated) = (held(ALIKE), held(1.5));
    assert!(alike < 93.0, "there is something to hold: {alike} %");
    assert!((93.5..=97.0).contains(&inflated), "{inflated} %");
}

#[test]
fn inflation_moves_no_time() {
    let samples = run(SKEWED, 4);
    let (alike, inflated) = (
        observe_passes(&samples, ALIKE),
        observe_passes(&samples, 1.5),
    );
    let times = |observations: &Observations| -> Vec<f64> {
        let segments = observations.segments.iter();
        segments.map(|one| one.time_ns).collect()
    };
    assert_eq!(times(&alike), times(&inflated));
    for (alike, inflated) in alike.segments.iter().zip(&inflated.segments) {
        assert_eq!(inflated.visit_variance, 1.5 * alike.visit_variance);
    }
}

fn percent(held: u64, all: u64) -> f64 {
    100.0 * held as f64 / all as f64
}

/// What each layer's time is wrong by on its own.
fn own_errors(observations: &Observations) -> Vec<ErrorVariance> {
    let error = |one: &Observation| {
        let deviation = observations.noise.standard_deviation_ns(one.time_ns);
        ErrorVariance {
            variance: deviation.powi(2) * one.excess_variance / one.count
                + one.visit_variance * one.time_ns.powi(2),
            freedom: one.freedom,
        }
    };
    observations.segments.iter().map(error).collect()
}

/// Whether the interval of the sum of all layers holds the truth.
fn whole_holds(observations: &Observations, truth: f64) -> bool {
    let shared = observations.visits.of_times;
    holds(sum(observations), &own_errors(observations), shared, truth)
}

/// Whether the 95 % interval of a number with these errors of its own, and the shared one, holds the truth.
fn holds(value: f64, own: &[ErrorVariance], shared: ErrorVariance, truth: f64) -> bool {
    let variance = own.iter().map(|error| error.variance).sum::<f64>();
    let freedom = own.iter().map(|error| error.freedom).sum::<f64>();
    let shared = shared.variance * value * value;
    let all = variance + shared;
    // Satterthwaite's degrees of freedom; those of the shared part are one less than there are visits.
    let freedom = all * all
        / (variance * variance / freedom.max(1.0) + shared * shared / f64::from(VISITS - 1));
    let half_width = ErrorVariance {
        variance: all,
        freedom,
    }
    .half_width();
    (value - truth).abs() <= half_width
}
