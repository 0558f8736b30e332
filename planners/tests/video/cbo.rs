//! Confidence-based offloading against every set of frames, resolutions and orders there is.

use layerlab_planners::video::cbo::{
    AnsweredFrame, EdgeConditions, OffloadPlan, SendingOrder, optimal, plan_offloads,
    server_resolution,
};
use layerlab_planners::video::{Uplink, VideoError};
use layerlab_profiles::{Bytes, Nanos};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const INSTANCES: u64 = 300;
const MILLISECOND: i128 = 1_000_000;

/// An instance of the problem, in the units of the formulas: nanoseconds, bytes, bits per second.
struct Instance {
    bandwidth: i128,
    round_trip: i128,
    server_time: i128,
    within: i128,
    preprocessing: i128,
    accuracies: Vec<f64>,
    frames: Vec<(i128, f64, Vec<i128>)>,
    now: i128,
}

impl Instance {
    fn new(seed: u64, most_frames: usize) -> Instance {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let resolutions = random.random_range(1..=3);
        let accuracies: Vec<f64> = (0..resolutions)
            .map(|_| random.random_range(0.3..0.9))
            .collect();
        let frames = random.random_range(1..=most_frames) as i128;
        let gap = random.random_range(15..60) * MILLISECOND;
        let frames = (0..frames).map(|index| {
            let sizes = (0..resolutions).map(|_| random.random_range(1_000..40_000));
            let sizes = sizes.collect();
            (index * gap, random.random_range(0.0..1.0), sizes)
        });
        let frames: Vec<_> = frames.collect();
        Instance {
            bandwidth: random.random_range(1_000_000..12_000_000),
            round_trip: random.random_range(0..110) * MILLISECOND,
            server_time: 37 * MILLISECOND,
            within: 200 * MILLISECOND,
            preprocessing: if seed.is_multiple_of(2) {
                28 * MILLISECOND
            } else {
                0
            },
            accuracies,
            now: random.random_range(0..120) * MILLISECOND,
            frames,
        }
    }

    fn conditions(&self) -> EdgeConditions {
        let uplink = Uplink::new(self.bandwidth as u64, nanos(self.round_trip));
        let accuracies = self.accuracies.clone();
        EdgeConditions::new(
            uplink,
            nanos(self.server_time),
            nanos(self.within),
            accuracies,
        )
        .expect("sensible")
        .with_preprocessing(nanos(self.preprocessing))
    }

    fn answered(&self) -> Vec<AnsweredFrame> {
        let frames = self.frames.iter();
        let frame = |(arrival, confidence, sizes): &(i128, f64, Vec<i128>)| AnsweredFrame {
            arrival: nanos(*arrival),
            confidence: *confidence,
            sizes: sizes
                .iter()
                .map(|&size| Bytes::from_bytes(size as u64))
                .collect(),
            server: None,
        };
        frames.map(frame).collect()
    }

    /// When the link is free after sending frames in resolutions in this order from `now` on; none if an answer is late.
    fn send(&self, sendings: &[(usize, usize)], now: i128) -> Option<i128> {
        let mut free = now;
        for &(frame, resolution) in sendings {
            let (arrival, _, sizes) = &self.frames[frame];
            let bits = sizes[resolution] * 8 * 1_000_000_000;
            free = free.max(arrival + self.preprocessing)
                + (bits + self.bandwidth - 1) / self.bandwidth;
            if free + self.server_time + self.round_trip > arrival + self.within {
                return None;
            }
        }
        Some(free)
    }

    fn improvement(&self, sendings: &[(usize, usize)]) -> f64 {
        let gain = |&(frame, resolution): &(usize, usize)| {
            self.accuracies[resolution] - self.frames[frame].1
        };
        sendings.iter().map(gain).sum()
    }

    /// The largest improvement of any set of frames, sent in the order of `order` from `now` on.
    fn best(&self, order: &[usize], now: i128) -> f64 {
        let options = self.accuracies.len() + 1;
        let mut best: f64 = 0.0;
        for code in 0..options.pow(order.len() as u32) {
            let choice = |place: usize| code / options.pow(place as u32) % options;
            let chosen = order.iter().enumerate();
            let chosen =
                chosen.filter_map(|(place, &frame)| Some((frame, choice(place).checked_sub(1)?)));
            let chosen: Vec<(usize, usize)> = chosen.collect();
            if self.send(&chosen, now).is_some() {
                best = best.max(self.improvement(&chosen));
            }
        }
        best
    }

    /// Panics where the plan's times, improvement or threshold are not what its sendings give.
    fn assert_sound(&self, plan: &OffloadPlan, now: i128) {
        let sendings: Vec<(usize, usize)> = plan
            .sent()
            .iter()
            .map(|one| (one.frame, one.resolution))
            .collect();
        for end in 1..=sendings.len() {
            let free = self.send(&sendings[..end], now).expect("in time");
            assert_eq!(plan.sent()[end - 1].sent, nanos(free));
            assert!(plan.sent()[end - 1].start < plan.sent()[end - 1].sent);
        }
        assert!((plan.improvement() - self.improvement(&sendings)).abs() < 1e-12);
        let confidences = sendings.iter().map(|sending| self.frames[sending.0].1);
        assert_eq!(plan.threshold(), confidences.reduce(f64::max));
    }
}

fn nanos(value: i128) -> Nanos {
    Nanos::from_nanos(value as u64)
}

/// All orders of 0..count.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let insert = |shorter: Vec<usize>| {
        (0..count).map(move |place| {
            let mut longer = shorter.clone();
            longer.insert(place, last);
            longer
        })
    };
    permutations(last).into_iter().flat_map(insert).collect()
}

#[test]
fn the_papers_order_has_the_best_set_in_that_order() {
    let mut offloaded = 0;
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 6);
        let mut order: Vec<usize> = (0..instance.frames.len()).collect();
        order.sort_by(|&a, &b| instance.frames[b].1.total_cmp(&instance.frames[a].1));
        let answered = instance.answered();
        let now = nanos(instance.now);
        let plan = plan_offloads(&instance.conditions(), &answered, now, SendingOrder::Paper)
            .expect("sensible");
        instance.assert_sound(&plan, instance.now);
        let best = instance.best(&order, instance.now);
        assert!(
            (plan.improvement() - best).abs() < 1e-9,
            "seed {seed}: {plan:?} {best}"
        );
        offloaded += plan.sent().len();
    }
    assert!(offloaded > 300, "{offloaded}");
}

#[test]
fn the_earliest_deadline_first_has_the_best_set_in_any_order() {
    let mut better_than_paper = 0;
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 5);
        let (conditions, answered) = (instance.conditions(), instance.answered());
        let plan = |order| {
            plan_offloads(&conditions, &answered, nanos(instance.now), order).expect("sensible")
        };
        let found = plan(SendingOrder::EarliestDeadline);
        instance.assert_sound(&found, instance.now);
        let orders = permutations(answered.len());
        let orders = orders
            .iter()
            .map(|order| instance.best(order, instance.now));
        let best = orders.fold(0.0, f64::max);
        assert!(
            (found.improvement() - best).abs() < 1e-9,
            "seed {seed}: {found:?} {best}"
        );
        let paper = plan(SendingOrder::Paper).improvement();
        assert!(paper <= found.improvement() + 1e-12);
        better_than_paper += u32::from(paper < found.improvement() - 1e-12);
    }
    assert!(better_than_paper > 0);
}

#[test]
fn the_optimum_is_found_and_no_threshold_is_better() {
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 7);
        let order: Vec<usize> = (0..instance.frames.len()).collect();
        let plan = optimal(&instance.conditions(), &instance.answered()).expect("sensible");
        instance.assert_sound(&plan, 0);
        let best = instance.best(&order, 0);
        assert!(
            (plan.improvement() - best).abs() < 1e-9,
            "seed {seed}: {plan:?} {best}"
        );
        for &(_, threshold, _) in &instance.frames {
            let below = order
                .iter()
                .filter(|&&frame| instance.frames[frame].1 <= threshold);
            let below: Vec<usize> = below.copied().collect();
            let all_sent = |code: usize| -> Vec<(usize, usize)> {
                let options = instance.accuracies.len();
                let place = below.iter().enumerate();
                place
                    .map(|(p, &frame)| (frame, code / options.pow(p as u32) % options))
                    .collect()
            };
            for code in 0..instance.accuracies.len().pow(below.len() as u32) {
                let sendings = all_sent(code);
                if instance.send(&sendings, 0).is_some() {
                    assert!(instance.improvement(&sendings) <= best + 1e-9);
                }
            }
        }
    }
}

#[test]
fn the_server_is_sent_the_best_resolution_that_leaves_before_the_next_frame() {
    let mut unanswered = 0;
    for seed in 0..INSTANCES {
        let mut instance = Instance::new(seed, 1);
        instance.preprocessing = 0;
        let interval = 30 * MILLISECOND;
        let sizes = instance.answered()[0].sizes.clone();
        let found = server_resolution(&instance.conditions(), nanos(interval), &sizes);
        let fits = (0..sizes.len()).filter(|&resolution| {
            let sent = instance.send(&[(0, resolution)], 0);
            sent.is_some_and(|sent| sent <= interval)
        });
        let accuracy = |&resolution: &usize| instance.accuracies[resolution];
        let best = fits.max_by(|one, other| accuracy(one).total_cmp(&accuracy(other)));
        assert_eq!(found, Ok(best), "seed {seed}");
        unanswered += u32::from(best.is_none());
    }
    assert!((1..INSTANCES as u32).contains(&unanswered));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let instance = Instance::new(1, 3);
    let uplink = Uplink::new(1, Nanos::ZERO);
    let conditions =
        |within, accuracy| EdgeConditions::new(uplink, Nanos::ZERO, within, vec![accuracy]);
    assert_eq!(conditions(Nanos::ZERO, 0.5), Err(VideoError::NoTimeLimit));
    for odd in [f64::NAN, -0.1, 1.1] {
        let refused = conditions(Nanos::from_nanos(1), odd).expect_err("no fraction");
        assert!(
            refused
                .to_string()
                .starts_with("the server's accuracy in resolution 0 is")
        );
        let mut frames = instance.answered();
        frames[0].confidence = odd;
        let order = SendingOrder::Paper;
        let refused = plan_offloads(&instance.conditions(), &frames, Nanos::ZERO, order);
        assert!(matches!(refused, Err(VideoError::NoFraction { .. })));
    }
    let mut frames = instance.answered();
    frames[0].sizes.push(Bytes::from_bytes(1));
    let refused = optimal(&instance.conditions(), &frames).expect_err("four sizes");
    assert!(matches!(refused, VideoError::Resolutions { .. }));
    let mut frames = Instance::new(4, 6).answered();
    frames.reverse();
    assert!(frames.len() > 1);
    let refused = optimal(&Instance::new(4, 6).conditions(), &frames);
    assert_eq!(refused, Err(VideoError::Order { frame: 1 }));
}

proptest! {
    #[test]
    fn any_frames_have_a_plan(
        rows in prop::collection::vec((any::<u64>(), 0.0..=1.0_f64, any::<u64>()), 0..12),
        (bandwidth, times, accuracy) in (any::<u64>(), any::<[u64; 5]>(), 0.0..=1.0_f64),
    ) {
        let [round_trip, server_time, within, preprocessing, now] = times.map(Nanos::from_nanos);
        let uplink = Uplink::new(bandwidth, round_trip);
        let conditions = EdgeConditions::new(uplink, server_time, within.max(Nanos::from_nanos(1)), vec![accuracy]);
        let conditions = conditions.expect("sensible").with_preprocessing(preprocessing);
        let frame = |(arrival, confidence, size)| AnsweredFrame {
            arrival: Nanos::from_nanos(arrival),
            confidence,
            sizes: vec![Bytes::from_bytes(size)],
            server: None,
        };
        let frames: Vec<AnsweredFrame> = rows.into_iter().map(frame).collect();
        for order in [SendingOrder::Paper, SendingOrder::EarliestDeadline] {
            let plan = plan_offloads(&conditions, &frames, now, order).expect("sensible");
            prop_assert!(plan.improvement() >= 0.0 && plan.sent().len() <= frames.len());
        }
    }
}
