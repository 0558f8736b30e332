//! A processor of which everything is known, and samples of it with noise.

use std::collections::BTreeMap;

use layerlab_profiles::derive::graph::{Visit, VisitSamples};
use layerlab_profiles::{Nanos, Segment};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Times in ns.
#[derive(Clone, Debug)]
pub(crate) struct Plant {
    /// t_d of each layer.
    pub(crate) entering: Vec<i64>,
    /// t_p of each layer.
    pub(crate) computing: Vec<i64>,
    /// t_r of each layer.
    pub(crate) leaving: Vec<i64>,
    /// What layer l and the one before it save by running together; the first is unused.
    pub(crate) fusion: Vec<i64>,
}

impl Plant {
    pub(crate) fn layers(&self) -> u32 {
        self.computing.len() as u32
    }

    /// S(i,j).
    pub(crate) fn segment(&self, segment: Segment) -> i64 {
        let (first, last) = (segment.first() as usize - 1, segment.last() as usize - 1);
        let compute: i64 = self.computing[first..=last].iter().sum();
        let saved: i64 = self.fusion[first + 1..=last].iter().sum();
        self.entering[first] + compute - saved + self.leaving[last]
    }

    /// c_l, for the cut after each layer but the last.
    pub(crate) fn cuts(&self) -> Vec<i64> {
        (1..self.computing.len())
            .map(|l| self.leaving[l - 1] + self.entering[l] + self.fusion[l])
            .collect()
    }

    /// `count` samples of each segment, in which `noise` says what becomes of a time.
    pub(crate) fn measure(
        &self,
        segments: impl IntoIterator<Item = Segment>,
        count: usize,
        mut noise: impl FnMut(f64) -> f64,
    ) -> BTreeMap<Segment, Vec<Nanos>> {
        let mut sample = |segment| {
            let nanos = noise(self.segment(segment) as f64);
            Nanos::from_nanos(nanos.round() as u64)
        };
        segments
            .into_iter()
            .map(|segment| (segment, (0..count).map(|_| sample(segment)).collect()))
            .collect()
    }
}

impl Plant {
    /// Adds the visit of order number `order`: so many samples of each segment, and the whole model at both ends as the
    /// sentinel. Returns the time that the samples took.
    pub(crate) fn visit(
        &self,
        samples: &mut VisitSamples,
        order: u32,
        counts: impl IntoIterator<Item = (Segment, u64)>,
        mut noise: impl FnMut(f64) -> f64,
    ) -> Nanos {
        let visit = Visit { order, block: 0 };
        let mut spent = Nanos::ZERO;
        for (segment, count) in counts {
            for &time in &self.measure([segment], count as usize, &mut noise)[&segment] {
                spent = spent + time;
                samples.push(segment, visit, time);
            }
        }
        let whole = Segment::whole(self.layers());
        let mut end = || {
            let mut times = self.measure([whole], 3, &mut noise)[&whole].clone();
            times.sort_unstable();
            times[1]
        };
        samples.sentinels.insert(visit, [end(), end()]);
        spent
    }
}

/// Noise that multiplies by e^(sigma z), z standard normal, from a seed.
pub(crate) fn proportional(sigma: f64, seed: u64) -> impl FnMut(f64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    move |time| time * (sigma * standard_normal(&mut random)).exp()
}

/// Box and Muller.
pub(crate) fn standard_normal(random: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

const LONGEST_NS: i64 = 50_000_000;

/// Any plant of up to `most` layers; fusion never saves more than the layer before it computes.
pub(crate) fn any_plant(most: usize) -> impl Strategy<Value = Plant> {
    let times = |n| prop::collection::vec(1_000..LONGEST_NS, n);
    (1..=most).prop_flat_map(move |n| {
        (times(n), times(n), times(n), times(n)).prop_map(
            |(entering, computing, leaving, fusion)| {
                let fusion = std::iter::once(0)
                    .chain((1..fusion.len()).map(|l| fusion[l] % (computing[l - 1] + 1)))
                    .collect();
                Plant {
                    entering,
                    computing,
                    leaving,
                    fusion,
                }
            },
        )
    })
}

/// A plant in the shape of a phone: transfers of the order of the compute times, all within a decade.
pub(crate) fn phone(layers: usize, seed: u64) -> Plant {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut times = |low: i64, high: i64| -> Vec<i64> {
        (0..layers)
            .map(|_| random.random_range(low..high))
            .collect()
    };
    let computing = times(500_000, 8_000_000);
    let entering = times(300_000, 4_000_000);
    let leaving = times(300_000, 4_000_000);
    Plant {
        fusion: std::iter::once(0)
            .chain(computing.windows(2).map(|pair| pair[0].min(pair[1]) / 20))
            .collect(),
        entering,
        computing,
        leaving,
    }
}
