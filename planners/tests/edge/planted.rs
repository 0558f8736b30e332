//! Simulated networks between a phone and a server, of which everything is known.

use layerlab_planners::edge::{
    Energy, Group, Link, Packed, Packing, PhoneCost, Power, RadioPower, SplitNetwork, SplitOutcome,
    SplitPlan, SplitProblem, Tensor, Wait, check_split,
};
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Nanos, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A network, a link and an idle phone.
#[derive(Clone)]
pub(crate) struct Planted {
    pub(crate) network: SplitNetwork,
    pub(crate) link: Link,
    pub(crate) idle: Power,
}

impl Planted {
    /// A network of `layers` layers: times and sizes over two decades, groups faster than their layers by up to a
    /// third, some missing; skips with one to three users, results in the middle, returned weights.
    pub(crate) fn new(layers: u32, seed: u64) -> Planted {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let tensors = tensors(layers, &mut random);
        let groups = groups(layers, &mut random);
        let network = SplitNetwork::new(layers, groups, tensors).expect("a network");
        let weights = (0..layers).map(|_| random.random_range(0..3_u64) * 40_000);
        let weights: Vec<Bytes> = weights.map(Bytes::from_bytes).collect();
        let network = match random.random_bool(0.3) {
            true => network
                .with_returned_weights(weights)
                .expect("one for each"),
            false => network,
        };
        Planted::of(network, &mut random)
    }

    /// A chain with all groups: of such a length that no brute force can go there.
    pub(crate) fn chain(layers: u32, seed: u64) -> Planted {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let sizes: Vec<Bytes> = (0..=layers).map(|_| size(&mut random)).collect();
        let tensors = layerlab_planners::edge::chain_tensors(&sizes, true);
        let network = SplitNetwork::new(layers, all_groups(layers, &mut random), tensors);
        Planted::of(network.expect("a network"), &mut random)
    }

    /// The same where most tensors may be packed by up to three codecs, into a tenth to all of their bytes.
    pub(crate) fn with_packings(self, seed: u64) -> Planted {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x9ac);
        let mut packings = Vec::new();
        for tensor in self.network.tensors() {
            let bytes = tensor.bytes.as_bytes();
            let mut packed = || Packed {
                bytes: Bytes::from_bytes(random.random_range(bytes / 10..=bytes)),
                pack: Nanos::from_nanos(random.random_range(0..4_000_000)),
                unpack: Nanos::from_nanos(random.random_range(0..2_000_000)),
            };
            let codecs = [
                TensorCodec::F32Lz4,
                TensorCodec::U8Png,
                TensorCodec::F32Zstd,
            ];
            let all = codecs.map(|codec| Packing {
                codec,
                upload: packed(),
                download: packed(),
            });
            packings.push(all[..random.random_range(0..=codecs.len())].to_vec());
        }
        let network = self.network.with_packings(packings);
        Planted {
            network: network.expect("a list for each"),
            ..self
        }
    }

    fn of(network: SplitNetwork, random: &mut ChaCha8Rng) -> Planted {
        let link = Link {
            upload_bps: random.random_range(1_000_000..20_000_000),
            download_bps: random.random_range(2_000_000..50_000_000),
            upload_wait: wait(random, 2_345_678),
            download_wait: wait(random, 1_234_567),
            radio: RadioPower {
                upload_microwatts_per_mbps: random.random_range(100_000..400_000),
                download_microwatts_per_mbps: random.random_range(50_000..150_000),
                base: Power::from_microwatts(random.random_range(100_000..1_300_000)),
            },
        };
        Planted {
            network,
            link,
            idle: Power::from_microwatts(random.random_range(0..2) * 345_678),
        }
    }

    pub(crate) fn problem(&self) -> SplitProblem {
        SplitProblem::new(self.network.clone(), &self.link, self.idle).expect("moderate costs")
    }

    /// The plan of an outcome, if there is one, after the checker found nothing wrong with it.
    pub(crate) fn checked<'a>(&self, outcome: &'a SplitOutcome) -> Option<&'a SplitPlan> {
        let plan = outcome.plan()?;
        self.assert_sound(plan);
        Some(plan)
    }

    pub(crate) fn assert_sound(&self, plan: &SplitPlan) {
        let faults = check_split(plan, &self.network, &self.link, self.idle);
        assert!(faults.is_empty(), "{plan:?}: {faults:?}");
    }
}

fn segment(first: u32, last: u32) -> Segment {
    Segment::new(first, last).expect("ascending")
}

/// None, one of several units, or another where few bytes cross.
fn wait(random: &mut ChaCha8Rng, unit: u64) -> Wait {
    let large = Nanos::from_nanos(random.random_range(0..3) * unit);
    match random.random() {
        true => Wait::always(large),
        false => Wait {
            smallest: Nanos::from_nanos(random.random_range(0..3) * unit),
            large,
            large_from: size(random),
        },
    }
}

fn size(random: &mut ChaCha8Rng) -> Bytes {
    Bytes::from_bytes((1_000.0 * 100_f64.powf(random.random())) as u64)
}

fn all_groups(layers: u32, random: &mut ChaCha8Rng) -> Vec<Group> {
    let phone: Vec<f64> = (0..layers).map(|_| 4e7 * random.random::<f64>()).collect();
    let pairs = (1..=layers).flat_map(|first| (first..=layers).map(move |last| (first, last)));
    let group = |(first, last): (u32, u32)| {
        let sum: f64 = phone[first as usize - 1..last as usize].iter().sum();
        let time =
            sum * (0.67 + 0.33 / f64::from(last - first + 1)) * random.random_range(0.9..1.1);
        let server = time / random.random_range(1.5..6.0);
        Group {
            segment: segment(first, last),
            phone: Some(PhoneCost {
                time: Nanos::from_nanos(time as u64),
                energy: Energy::from_nanojoules((time * random.random_range(0.5..8.0)) as u64),
            }),
            server: Some(Nanos::from_nanos(server as u64)),
        }
    };
    pairs.map(group).collect()
}

/// All groups but a fifth of those of several layers, and a side less of some.
fn groups(layers: u32, random: &mut ChaCha8Rng) -> Vec<Group> {
    let mut groups = all_groups(layers, random);
    groups.retain(|group| group.segment.layers() == 1 || random.random_bool(0.8));
    for group in &mut groups {
        match random.random_range(0..30) {
            0 => group.phone = None,
            1 => group.server = None,
            _ => {}
        }
    }
    groups
}

/// A chain with up to four tensors more, which skip layers or come beside the chain's.
fn tensors(layers: u32, random: &mut ChaCha8Rng) -> Vec<Tensor> {
    let chain = (0..=layers).map(|producer| (producer, vec![producer + 1]));
    let mut made: Vec<(u32, Vec<u32>)> = chain.collect();
    made[layers as usize].1.clear();
    for _ in 0..random.random_range(0..5) {
        let producer = random.random_range(0..layers);
        let users = random.random_range(1..4);
        let consumers = (0..users).map(|_| random.random_range(producer + 1..=layers));
        let consumers: Vec<u32> = consumers.collect();
        match random.random_bool(0.7) {
            true => made[producer as usize].1.extend(consumers),
            false => made.push((producer, consumers)),
        }
    }
    let tensor = |(producer, consumers): (u32, Vec<u32>)| Tensor {
        is_result: producer == layers || random.random_bool(0.05),
        producer,
        consumers,
        bytes: size(random),
    };
    made.into_iter().map(tensor).collect()
}
