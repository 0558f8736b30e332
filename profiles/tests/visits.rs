//! Do intervals hold what differs between visits? Times with planted speeds of visits, effects of loading and noise of
//! inferences, over many simulated runs.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::derive::graph::{
    Fit, Observations, Visit, VisitSamples, observe, observe_visits,
};
use layerlab_profiles::derive::{LayerTime, differencing_in_visits};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::agenda::{Agenda, DesignTask, FixedBlock, segments_per_block};
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::supported::StretchLayers;
use layerlab_profiles::{Nanos, Segment};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

const LAYERS: u32 = 8;
const RUNS: u64 = 500;

/// What differs, as standard deviations of shares.
#[derive(Clone, Copy, Debug, Default)]
struct Planted {
    speed: f64,
    /// Of a layer, in all segments of a visit that hold it.
    layer: f64,
    load: f64,
    /// Of the one segment whose loadings differ more than those of others, beyond `load`.
    restless: f64,
    inference: f64,
}

/// Which segment that is.
fn is_restless(segment: Segment) -> bool {
    (segment.first(), segment.last()) == (1, 3)
}

/// One run of the design: visits whose blocks hold so many segments each.
fn run(planted: Planted, visits: u32, block: usize, seed: u64) -> VisitSamples {
    run_of(Design::Local.segments(LAYERS), planted, visits, block, seed)
}

fn run_of(
    mut segments: Vec<Segment>,
    planted: Planted,
    visits: u32,
    block: usize,
    seed: u64,
) -> VisitSamples {
    run_in(planted, visits, seed, |random| {
        segments.shuffle(random);
        segments.chunks(block).map(<[Segment]>::to_vec).collect()
    })
}

/// Likewise where `blocks` gives the segments of each block, anew for each round of visits.
fn run_in(
    planted: Planted,
    visits: u32,
    seed: u64,
    mut blocks: impl FnMut(&mut ChaCha8Rng) -> Vec<Vec<Segment>>,
) -> VisitSamples {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let draw = |deviation: f64, random: &mut ChaCha8Rng| {
        1.0 + deviation * Normal::standard().inverse_cdf(random.random_range(1e-12..1.0))
    };
    let mut samples = VisitSamples::default();
    let mut order = 0;
    for _ in 0..visits {
        for segments in blocks(&mut random) {
            let visit = Visit { order, block: 0 };
            order += 1;
            let speed = draw(planted.speed, &mut random);
            let sentinel_load = draw(planted.load, &mut random);
            let last = segments.iter().map(|segment| segment.last()).max();
            let layers: Vec<f64> = match planted.layer > 0.0 {
                true => (0..last.unwrap_or(0))
                    .map(|_| draw(planted.layer, &mut random))
                    .collect(),
                false => Vec::new(),
            };
            for segment in segments {
                let beyond: f64 = (segment.first()..=segment.last())
                    .zip(layers.iter().skip(segment.first() as usize - 1))
                    .map(|(layer, share)| compute(layer) * (share - 1.0))
                    .sum();
                let restless = f64::from(u8::from(is_restless(segment))) * planted.restless;
                let load = draw(planted.load.hypot(restless), &mut random);
                for _ in 0..6 {
                    let time = (truth(segment) + beyond) * speed * load;
                    let time = time * draw(planted.inference, &mut random);
                    samples.push(segment, visit, Nanos::from_nanos(time.round() as u64));
                }
            }
            let mut end = || {
                let mut times: Vec<f64> = (0..3)
                    .map(|_| {
                        0.97 * truth(Segment::whole(LAYERS))
                            * speed
                            * sentinel_load
                            * draw(planted.inference, &mut random)
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                Nanos::from_nanos(times[1].round() as u64)
            };
            let ends = [end(), end()];
            samples.sentinels.insert(visit, ends);
        }
    }
    samples
}

/// The planted time of a segment in ns: a fixed cost, and layers that take more each.
fn truth(segment: Segment) -> f64 {
    let layers = segment.first()..=segment.last();
    300_000.0 + layers.map(compute).sum::<f64>()
}

/// The planted time of a layer in ns.
fn compute(layer: u32) -> f64 {
    200_000.0 * f64::from(layer)
}

#[derive(Default)]
struct Coverage {
    held: u64,
    all: u64,
}

impl Coverage {
    fn count(&mut self, estimate: Estimate, truth: f64) {
        let (low, high) = estimate.ci95.expect("an interval");
        let within = low.as_nanos() as f64 <= truth && truth <= high.as_nanos() as f64;
        self.held += u64::from(within);
        self.all += 1;
    }

    fn percent(&self) -> f64 {
        100.0 * self.held as f64 / self.all as f64
    }
}

fn fit(observations: &Observations) -> Fit {
    Fit::new(LAYERS, observations, &BTreeSet::new()).expect("connected")
}

/// In how many of so many runs the interval of each kind of number held the truth.
fn coverage(planted: Planted, visits: u32, block: usize) -> BTreeMap<&'static str, Coverage> {
    let mut coverage: BTreeMap<&str, Coverage> = BTreeMap::new();
    for seed in 0..RUNS {
        let observations = observe_visits(&run(planted, visits, block, seed));
        let fit = fit(&observations);
        for (layer, time) in (1..).zip(fit.layer_times()) {
            let ends = u32::from(layer == 1) + u32::from(layer == LAYERS);
            let compute = 200_000.0 * f64::from(layer) + 150_000.0 * f64::from(ends);
            let layers = coverage.entry("layers").or_default();
            layers.count(time.compute, compute);
        }
        for cut in fit.cuts() {
            coverage.entry("cuts").or_default().count(cut, 300_000.0);
        }
        for last in 2..LAYERS {
            let segment = Segment::new(1, last).expect("a segment");
            let whole = coverage.entry("T(L)").or_default();
            whole.count(fit.segment(segment), truth(segment));
        }
    }
    coverage
}

#[test]
fn intervals_hold_the_truth_whatever_differs_between_visits() {
    let planted = |speed, load, inference| Planted {
        speed,
        load,
        inference,
        ..Planted::default()
    };
    for planted in [
        planted(0.0, 0.0, 0.02),
        planted(0.03, 0.0, 0.02),
        planted(0.0, 0.04, 0.02),
        planted(0.05, 0.03, 0.02),
        planted(0.01, 0.01, 0.01),
    ] {
        for (visits, block) in [(5, 6), (5, 16), (3, 6)] {
            for (what, coverage) in coverage(planted, visits, block) {
                let percent = coverage.percent();
                assert!(
                    (92.0..=98.0).contains(&percent),
                    "{planted:?}, {visits} visits of {block}: {percent:.1} % of {what}"
                );
            }
        }
    }
}

#[test]
fn where_visits_differ_in_nothing_intervals_are_as_narrow_as_those_of_samples_that_are_independent()
{
    let planted = Planted {
        inference: 0.02,
        ..Planted::default()
    };
    let width = |times: &[LayerTime]| -> f64 {
        let widths = times
            .iter()
            .map(|time| time.compute.ci95.expect("an interval"));
        widths
            .map(|(low, high)| (high - low).as_nanos() as f64)
            .sum()
    };
    let (mut by_visits, mut as_one) = (0.0, 0.0);
    for seed in 0..RUNS {
        let samples = run(planted, 5, 16, seed);
        by_visits += width(&fit(&observe_visits(&samples)).layer_times());
        as_one += width(&fit(&observe(&samples.pooled())).layer_times());
    }
    let wider = by_visits / as_one;
    assert!((0.95..1.12).contains(&wider), "{wider:.3} times as wide");
}

#[test]
fn two_visits_give_no_interval() {
    let planted = Planted {
        speed: 0.01,
        load: 0.01,
        inference: 0.01,
        ..Planted::default()
    };
    let observations = observe_visits(&run(planted, 2, 16, 1));
    assert_eq!(observations.visits(), 2);
    let times = fit(&observations).layer_times();
    assert!(times.iter().all(|time| time.compute.ci95.is_none()));
    let samples = run(planted, 3, 16, 1);
    let times = fit(&observe_visits(&samples)).layer_times();
    assert!(times.iter().all(|time| time.compute.ci95.is_some()));
}

#[test]
fn what_differs_between_visits_is_told_apart() {
    let planted = Planted {
        speed: 0.05,
        load: 0.03,
        inference: 0.02,
        ..Planted::default()
    };
    let (mut speed, mut load) = (0.0, 0.0);
    for seed in 0..RUNS {
        let observations = observe_visits(&run(planted, 5, 6, seed));
        speed += observations.speed_variance() / RUNS as f64;
        load += observations.visits.load_variance / RUNS as f64;
    }
    assert!((speed.sqrt() / 0.05 - 1.0).abs() < 0.1, "{}", speed.sqrt());
    assert!((load.sqrt() / 0.03 - 1.0).abs() < 0.1, "{}", load.sqrt());
}

/// The papers' method and the medians of single layers, from samples whose visits differ.
#[test]
fn intervals_by_differencing_and_of_medians_hold_the_truth() {
    for (speed, load) in [(0.0, 0.0), (0.03, 0.02)] {
        let planted = Planted {
            speed,
            load,
            inference: 0.02,
            ..Planted::default()
        };
        let (mut by_differencing, mut of_medians) = (Coverage::default(), Coverage::default());
        for seed in 0..RUNS {
            let design = Design::PrefixSuffix.segments(LAYERS);
            let samples = run_of(design, planted, 5, 16, seed);
            let observations = observe_visits(&samples);
            let pooled = samples.pooled();
            let summaries: BTreeMap<Segment, Summary> = pooled
                .iter()
                .map(|(&segment, times)| (segment, Summary::of(times).expect("samples")))
                .collect();
            for (&segment, summary) in &summaries {
                let ci95 = observations.of_median(segment, summary.median);
                let estimate = Estimate {
                    value: summary.median.signed(),
                    ci95: ci95.map(|(low, high)| (low.signed(), high.signed())),
                };
                of_medians.count(estimate, truth(segment));
            }
            let times = differencing_in_visits(LAYERS, &observations).expect("complete");
            for (layer, time) in (1..).zip(&times) {
                let ends = u32::from(layer == 1) + u32::from(layer == LAYERS);
                let with_ends = compute(layer) + 150_000.0 * f64::from(ends);
                by_differencing.count(time.compute, with_ends);
            }
        }
        for coverage in [by_differencing, of_medians] {
            let percent = coverage.percent();
            assert!(
                (92.0..=98.0).contains(&percent),
                "{planted:?}: {percent:.1} %"
            );
        }
    }
}

/// By the blocks that the design has. Shuffled as those of other designs are, prefixes of neighbouring layers would be of different
/// visits.
#[test]
fn what_a_visit_does_to_neighbouring_prefixes_alike_goes_out_of_layer_times() {
    const LAYERS: u32 = 30;
    let task = DesignTask {
        stretch: StretchLayers::held(LAYERS),
        seed: 0,
        gap: Nanos::ZERO,
        target: 0.02,
        budget: Nanos::ZERO,
        over_budget: OverBudget::Extend,
    };
    let in_order = |random: &mut ChaCha8Rng| {
        let Agenda::Fixed(blocks) = Design::PrefixSuffix.agenda(&task, random) else {
            panic!("the design is known from the start");
        };
        let segments = |block| match block {
            FixedBlock::Segments(segments) => segments,
            FixedBlock::LayerPass => panic!("segments take turns"),
        };
        blocks.into_iter().map(segments).collect()
    };
    let block = segments_per_block(LAYERS);
    let segments = Design::PrefixSuffix.segments(LAYERS);
    // Of the inner layers alone: the times of the others have some of moving in and out in them.
    let by_differencing = |samples: &VisitSamples| -> Vec<(u32, LayerTime)> {
        let observations = observe_visits(samples);
        let times = differencing_in_visits(LAYERS, &observations).expect("complete");
        (1..LAYERS).zip(times).skip(1).collect()
    };
    let squares = |times: &[(u32, LayerTime)]| -> f64 {
        let errors = times
            .iter()
            .map(|(layer, time)| time.compute.value.as_nanos() as f64 - compute(*layer));
        errors.map(|error| error * error).sum()
    };
    for (layer, load, inference) in [(0.0, 0.002, 0.005), (0.05, 0.001, 0.002)] {
        let planted = Planted {
            speed: 0.05,
            layer,
            load,
            inference,
            ..Planted::default()
        };
        let (mut in_order_squares, mut shuffled_squares) = (0.0, 0.0);
        let (mut of_differences, mut of_fit) = (Coverage::default(), Coverage::default());
        let mut of_transfers = Coverage::default();
        for seed in 0..RUNS / 5 {
            let shuffled = run_of(segments.clone(), planted, 5, block, seed);
            shuffled_squares += squares(&by_differencing(&shuffled));
            let samples = run_in(planted, 5, seed, in_order);
            let times = by_differencing(&samples);
            in_order_squares += squares(&times);
            for (layer, time) in &times {
                of_differences.count(time.compute, compute(*layer));
                of_transfers.count(time.to_processor.expect("an inner layer"), 150_000.0);
            }
            let observations = observe_visits(&samples);
            let fit = Fit::new(LAYERS, &observations, &BTreeSet::new()).expect("connected");
            for (layer, time) in (1..LAYERS).zip(fit.layer_times()).skip(1) {
                of_fit.count(time.compute, compute(layer));
            }
        }
        let percent = of_differences.percent();
        assert!(
            (92.0..=98.0).contains(&percent),
            "{planted:?}: {percent:.1} % by differencing"
        );
        let percent = of_transfers.percent();
        assert!(percent >= 92.0, "{planted:?}: {percent:.1} % of transfers");
        let percent = of_fit.percent();
        if layer > 0.0 {
            let smaller = (shuffled_squares / in_order_squares).sqrt();
            assert!(smaller > 2.0, "{smaller:.2} times smaller");
            // That the errors of neighbours cancel is not in the intervals of the fit, which are too wide.
            assert!(percent >= 95.0, "{percent:.1} % by the fit");
        } else {
            assert!(
                (92.0..=98.0).contains(&percent),
                "{percent:.1} % by the fit"
            );
        }
    }
}

/// A median is never known better than the robust time of the same samples. Where loadings are alike but for those of one
/// segment, all that is said of these is in how much more it scatters than inferences explain.
#[test]
fn a_median_is_known_no_better_than_the_time_of_which_it_is_the_median() {
    let planted = Planted {
        restless: 0.04,
        inference: 0.02,
        ..Planted::default()
    };
    for seed in 0..RUNS / 5 {
        let design = Design::PrefixSuffix.segments(LAYERS);
        let observations = observe_visits(&run_of(design, planted, 5, 16, seed));
        for one in &observations.segments {
            let inferences = observations
                .noise
                .standard_deviation_ns(one.time_ns)
                .powi(2)
                * one.excess_variance
                / one.count;
            let of_time = inferences + one.visit_variance * one.time_ns * one.time_ns;
            let of_median = one.median.expect("five visits").variance;
            let ratio = of_median / of_time;
            assert!(ratio > 0.999, "{seed}: {ratio} of {}", one.segment);
        }
    }
}
