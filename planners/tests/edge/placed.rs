//! Simulated phones with several processors beside a server, and what their placements lose.

use std::collections::BTreeMap;

use layerlab_planners::check::{Evidence, Loss};
use layerlab_planners::edge::{
    AccuracyLimit, AccurateSplit, Energy, Group, PhoneCost, PlacedGroup, PlacedProblem, Side,
    SplitNetwork, check_accuracy, check_split,
};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::regress::{RidgeSettings, Settings};
use layerlab_planners::{AccuracyModel, Confidence, Problem};
use layerlab_profiles::{Nanos, Placement};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::planted::Planted;
use crate::{phone, several};

/// What is known of the accuracies of placements.
enum Accuracies {
    /// Of a CPU and an NPU, by a model that errs.
    Learnt(Box<phone::Planted>, Box<AccuracyModel>),
    /// Of three processors, by one that does not.
    Known(Box<several::Several>),
}

/// A phone beside a server.
pub(crate) struct Placed {
    /// What groups cost on each processor of the phone; on the server by the first.
    pub(crate) networks: Vec<Planted>,
    accuracies: Accuracies,
    pub(crate) problem: Problem,
}

impl Placed {
    /// A phone of two or three processors, of which the second is faster and the third draws less, as a rule.
    pub(crate) fn new(layers: u32, processors: usize, seed: u64) -> Placed {
        Placed::of(Planted::new(layers, seed), processors, seed)
    }

    /// The same over a chain with all groups.
    pub(crate) fn chain(layers: u32, processors: usize, seed: u64) -> Placed {
        Placed::of(Planted::chain(layers, seed), processors, seed)
    }

    fn of(reference: Planted, processors: usize, seed: u64) -> Placed {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x91aced);
        let layers = reference.network.layers();
        let mut networks = vec![reference];
        for processor in 1..processors {
            networks.push(elsewhere(&networks[0], processor, &mut random));
        }
        let confidence = match seed % 4 {
            0 => None,
            1 => Some(0.5),
            2 => Some(0.8),
            _ => Some(0.95),
        };
        let confidence = confidence.map(|share| Confidence::of(share).expect("a share"));
        let (accuracies, problem) = match processors {
            2 => {
                let planted = phone::Planted::with_rows(layers as usize, seed, 40);
                let model = planted.train(Settings::Ridge(RidgeSettings { penalty: 1.0 }));
                let problem = planted.learnt(&model);
                let known = Accuracies::Learnt(Box::new(planted), Box::new(model));
                (known, problem)
            }
            _ => {
                let several = several::Several::new(layers as usize, processors, seed);
                let problem = several.known();
                (Accuracies::Known(Box::new(several)), problem)
            }
        };
        Placed {
            networks,
            accuracies,
            problem: problem.with_confidence(confidence),
        }
    }

    pub(crate) fn placed_problem(&self) -> PlacedProblem {
        let reference = &self.networks[0];
        let others = (1..).zip(&self.networks[1..]);
        let others: BTreeMap<u8, SplitNetwork> = others
            .map(|(digit, planted)| (digit, planted.network.clone()))
            .collect();
        let network = reference.network.clone();
        PlacedProblem::new(network, others, &reference.link, reference.idle)
            .expect("moderate costs")
    }

    pub(crate) fn digits(&self) -> Vec<u8> {
        (0..self.networks.len() as u8).collect()
    }

    pub(crate) fn limit(&self, at_least: f64) -> AccuracyLimit<'_> {
        AccuracyLimit::new(&self.problem, &self.digits(), at_least).expect("a fraction")
    }

    /// The accuracy that a placement has at least, from what is said of it.
    pub(crate) fn least(&self, digits: &[u8]) -> f64 {
        let placement = Placement::new(digits.to_vec());
        let packed = PackedPlacement::of(&placement).expect("few layers");
        let accuracy = self.problem.accuracies(&[packed])[0];
        let least = match (self.problem.confidence(), accuracy.interval) {
            (None, _) => accuracy.value,
            (Some(_), interval) => interval.map_or(0.0, |(low, _)| low.min(accuracy.value)),
        };
        least.max(0.0)
    }

    /// Every placement's least accuracy.
    pub(crate) fn all_least(&self) -> Vec<f64> {
        let (base, layers) = (self.networks.len(), self.problem.layers());
        let digits = |number: usize| -> Vec<u8> {
            let digit = |layer| (number / base.pow(layer as u32) % base) as u8;
            (0..layers).map(digit).collect()
        };
        let all = 0..base.pow(layers as u32);
        all.map(|number| self.least(&digits(number))).collect()
    }

    /// The evidence of the accuracies, for whoever calculates them again.
    pub(crate) fn with_evidence<T>(&self, look: impl FnOnce(&Evidence) -> T) -> T {
        match &self.accuracies {
            Accuracies::Learnt(planted, model) => look(&Evidence {
                layers: &planted.layers,
                processors: &phone::pair(&planted.cpu, &planted.npu),
                accuracy: &planted.table,
                loss: Loss::Model(model),
            }),
            Accuracies::Known(several) => {
                let oracle = several.oracle();
                let columns = layerlab_planners::features::LayerColumns::new(
                    &several.layers,
                    several.table.single_losses(),
                );
                let columns = columns.expect("of one model");
                let formula = |placement: &Placement| {
                    let candidate = columns.candidate_of(placement).expect("its digits");
                    oracle.losses(&[candidate])[0]
                };
                look(&Evidence {
                    layers: &several.layers,
                    processors: &several.tables(),
                    accuracy: &several.table,
                    loss: Loss::Formula(&formula),
                })
            }
        }
    }

    /// What runs on the phone has the digits of the placement: a network of the groups that may run with it.
    pub(crate) fn network_of(&self, placement: &Placement) -> Planted {
        let mut groups = Vec::new();
        for (digit, planted) in (0..).zip(&self.networks) {
            groups.extend(planted.network.groups().iter().filter_map(|group| {
                let layers = group.segment.first() as usize - 1..group.segment.last() as usize;
                let digits = &placement.processors()[layers];
                let server = group.server.filter(|_| digit == 0);
                let is_here = digits.iter().all(|&one| one == digit);
                is_here.then_some(Group { server, ..*group })
            }));
        }
        let reference = &self.networks[0];
        let (layers, tensors) = (reference.network.layers(), reference.network.tensors());
        let network = SplitNetwork::new(layers, groups, tensors.to_vec()).expect("a network");
        let weights = reference.network.returned_weights().to_vec();
        let network = network.with_returned_weights(weights);
        let packings = reference.network.packings().to_vec();
        let network = network.and_then(|network| network.with_packings(packings));
        Planted {
            network: network.expect("one for each"),
            ..reference.clone()
        }
    }

    /// The digit of a group by the placement that a split says it has.
    pub(crate) fn digit_of(split: &AccurateSplit) -> impl Fn(&PlacedGroup) -> Option<u8> {
        let digits = split.placement().processors().to_vec();
        move |placed| {
            assert_eq!(placed.side, Side::Phone);
            Some(digits[placed.segment.first() as usize - 1])
        }
    }

    pub(crate) fn assert_sound(&self, split: &AccurateSplit) {
        let planted = self.network_of(split.placement());
        let faults = check_split(split.plan(), &planted.network, &planted.link, planted.idle);
        assert!(faults.is_empty(), "{split:?}: {faults:?}");
        let faults =
            self.with_evidence(|evidence| check_accuracy(split, Placed::digit_of(split), evidence));
        assert!(faults.is_empty(), "{split:?}: {faults:?}");
    }
}

/// The same network on another processor: some groups cannot run there.
fn elsewhere(reference: &Planted, processor: usize, random: &mut ChaCha8Rng) -> Planted {
    let (speed, thrift) = [(0.1, 1.0), (0.5, 0.2)][processor - 1];
    let groups = reference.network.groups().iter().filter_map(|group| {
        let phone = group.phone.filter(|_| random.random_bool(0.9))?;
        let times = |value: u64, factor: f64, random: &mut ChaCha8Rng| {
            (value as f64 * factor * random.random_range(0.5..2.0)) as u64
        };
        Some(Group {
            phone: Some(PhoneCost {
                time: Nanos::from_nanos(
                    times(phone.time.as_nanos(), speed, random) + random.random_range(0..900_000),
                ),
                energy: Energy::from_nanojoules(times(
                    phone.energy.as_nanojoules(),
                    thrift,
                    random,
                )),
            }),
            ..*group
        })
    });
    let (layers, tensors) = (reference.network.layers(), reference.network.tensors());
    let network = SplitNetwork::new(layers, groups.collect(), tensors.to_vec());
    Planted {
        network: network.expect("a network"),
        ..reference.clone()
    }
}
