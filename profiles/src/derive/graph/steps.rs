//! Did a processor change its speed from one inference to the next, as a governor or a neighbour on the machine makes it?
//!
//! Segments take turns, so that at any instant of a block each of them was timed shortly before and shortly after. By how much
//! all of them became slower there is the median of the logarithms of these ratios: what is compared is of the same segment
//! and the same loading, and of two windows side by side (a moving sum, Bauer and Hackl 1978). What changes gradually hardly
//! changes from one window to the next, and how far ratios differ by noise the other instants say.

use std::collections::BTreeMap;

use super::location::{MAD_TO_SIGMA, median};
use super::visit_samples::Visit;
use crate::segment::Segment;
use crate::units::Nanos;

/// So many ratios at least say by how much all became slower: four of them may be disturbed.
const RATIOS: usize = 8;

/// And so many in blocks with more samples than `LONG`: among a million inferences of which one in fifty is disturbed, eight ratios
/// have four that are now and then, and twelve hardly ever six.
const RATIOS_OF_LONG: usize = 12;
const LONG: usize = 1000;

/// A step takes one round to come and go from view, so that so many instants of a round are enough to see it.
const INSTANTS_OF_ROUND: usize = 8;

/// A smaller step is within what is tolerated of a machine.
const LEAST_STEP: f64 = 0.05;

/// So many times as far as at other instants ratios must be from 1, given how many there are. Of normal ones one in 10^9 is; a
/// run has thousands, of which neighbours share their samples.
const BEYOND_NOISE: f64 = 6.0;

/// A change of speed at an instant: the logarithm of how much longer everything took from then on.
#[derive(Clone, Copy)]
struct Change {
    longer: f64,
    /// From how many ratios it is known.
    ratios: f64,
}

impl Change {
    /// Its size in units that noise makes alike at all instants.
    fn beside_noise(&self) -> f64 {
        self.longer.abs() * self.ratios.sqrt()
    }
}

/// The largest step of a visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedStep {
    /// The visit.
    pub visit: Visit,
    /// How much longer everything took from then on, as a share; negative where it became faster.
    pub longer: f64,
}

/// The largest step of each visit that has one, given the samples of each in the order of time.
pub fn speed_steps(visits: &BTreeMap<Visit, Vec<(Segment, Nanos)>>) -> Vec<SpeedStep> {
    let changes: BTreeMap<Visit, Vec<Change>> = visits
        .iter()
        .map(|(&visit, samples)| (visit, changes(samples)))
        .collect();
    let sizes: Vec<f64> = changes
        .values()
        .flatten()
        .map(Change::beside_noise)
        .collect();
    let noise = MAD_TO_SIGMA * median(&sizes).unwrap_or(0.0);
    let is_step = |change: &Change| {
        change.longer.abs() > (1.0 + LEAST_STEP).ln()
            && change.beside_noise() > BEYOND_NOISE * noise
    };
    let step = |(visit, changes): (Visit, Vec<Change>)| {
        let steps = changes.into_iter().filter(is_step);
        let largest = steps.max_by(|one, other| one.longer.abs().total_cmp(&other.longer.abs()))?;
        Some(SpeedStep {
            visit,
            longer: largest.longer.exp_m1(),
        })
    };
    changes.into_iter().filter_map(step).collect()
}

/// The changes of speed at instants of a visit.
fn changes(samples: &[(Segment, Nanos)]) -> Vec<Change> {
    let mut times: BTreeMap<Segment, Vec<f64>> = BTreeMap::new();
    for (segment, time) in samples {
        let logarithm = (time.as_nanos().max(1) as f64).ln();
        times.entry(*segment).or_default().push(logarithm);
    }
    let segments = times.len();
    let wanted = if samples.len() > LONG {
        RATIOS_OF_LONG
    } else {
        RATIOS
    };
    let reach = wanted.div_ceil(segments.max(1));
    let stride = (segments / INSTANTS_OF_ROUND).max(1);
    let mut timed: BTreeMap<Segment, usize> = BTreeMap::new();
    let mut changes = Vec::new();
    for (place, (segment, _)) in samples.iter().enumerate() {
        *timed.entry(*segment).or_default() += 1;
        if place % stride != 0 {
            continue;
        }
        let ratios = timed.iter().flat_map(|(segment, &timed)| {
            let times = &times[segment];
            let near = (0..reach).take_while(move |&far| far < timed && timed + far < times.len());
            near.map(move |far| times[timed + far] - times[timed - 1 - far])
        });
        let ratios: Vec<f64> = ratios.collect();
        if ratios.len() >= wanted {
            changes.extend(median(&ratios).map(|longer| Change {
                longer,
                ratios: ratios.len() as f64,
            }));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    use super::*;

    const BLOCKS: u32 = 12;
    const ROUNDS: u32 = 8;

    /// The blocks of a run in whose every round so many segments have a turn, at a speed that depends on the number of the
    /// sample, with this noise of its own.
    fn run(
        segments: u32,
        noise: f64,
        random: &mut ChaCha8Rng,
        mut slowdown: impl FnMut(u32, u32, &mut ChaCha8Rng) -> f64,
    ) -> BTreeMap<Visit, Vec<(Segment, Nanos)>> {
        let mut blocks = BTreeMap::new();
        for order in 0..BLOCKS {
            let mut samples = Vec::new();
            for round in 0..ROUNDS {
                // Turns are drawn anew in each round; here they go the other way.
                for turn in 0..segments {
                    let segment = if round % 2 == 0 {
                        turn
                    } else {
                        segments - 1 - turn
                    };
                    let own: f64 = random.sample(StandardNormal);
                    let factor = slowdown(order, round * segments + turn, random);
                    let time = 1e6 * f64::from(segment + 1) * factor * (noise * own).exp();
                    samples.push((
                        Segment::single(segment + 1),
                        Nanos::from_nanos(time.round() as u64),
                    ));
                }
            }
            blocks.insert(Visit { order, block: 0 }, samples);
        }
        blocks
    }

    /// In how many of 200 runs a step is found.
    fn found(
        mut one: impl FnMut(&mut ChaCha8Rng) -> BTreeMap<Visit, Vec<(Segment, Nanos)>>,
    ) -> usize {
        let of_seed = |seed| !speed_steps(&one(&mut ChaCha8Rng::seed_from_u64(seed))).is_empty();
        (0..200).map(of_seed).filter(|&found| found).count()
    }

    #[test]
    fn a_step_in_one_block_is_found_with_its_size() {
        for segments in [2, 5, 16, 60] {
            let middle = segments * ROUNDS / 2;
            let stepped = |order, sample| {
                if order == 3 && sample >= middle {
                    1.13
                } else {
                    1.0
                }
            };
            let random = &mut ChaCha8Rng::seed_from_u64(1);
            let steps = speed_steps(&run(segments, 0.02, random, |order, sample, _| {
                stepped(order, sample)
            }));
            let [step] = steps[..] else {
                panic!("{segments} segments: {steps:?}")
            };
            assert_eq!(step.visit.order, 3);
            assert!(
                (step.longer - 0.13).abs() < 0.04,
                "{segments} segments: {step:?}"
            );
            let power = found(|random| {
                run(segments, 0.02, random, |order, sample, _| {
                    stepped(order, sample)
                })
            });
            assert!(power >= 180, "{segments} segments: {power} of 200");
        }
    }

    #[test]
    fn noise_of_single_inferences_is_no_step() {
        for segments in [1, 2, 5, 16, 60] {
            for noise in [0.0, 0.02, 0.1] {
                let false_alarms = found(|random| run(segments, noise, random, |_, _, _| 1.0));
                assert!(
                    false_alarms <= 2,
                    "{segments} segments, noise {noise}: {false_alarms} of 200"
                );
            }
        }
    }

    /// Disturbances of single inferences, whatever they take.
    #[test]
    fn spikes_are_no_step() {
        let spikes = |_, _, random: &mut ChaCha8Rng| {
            if random.random::<f64>() < 0.05 {
                2.0
            } else {
                1.0
            }
        };
        let false_alarms = found(|random| run(16, 0.02, random, spikes));
        assert!(false_alarms <= 2, "{false_alarms} of 200");
    }

    #[test]
    fn spikes_of_a_long_block_are_no_step() {
        let random = &mut ChaCha8Rng::seed_from_u64(1);
        let samples = (0..400_000).map(|sample| {
            let segment = sample % 2;
            let spike = if random.random::<f64>() < 0.02 {
                2.0
            } else {
                1.0
            };
            let own: f64 = random.sample(StandardNormal);
            let time = 1e6 * f64::from(segment + 1) * spike * (0.01 * own).exp();
            (
                Segment::single(segment + 1),
                Nanos::from_nanos(time.round() as u64),
            )
        });
        let visit = Visit { order: 1, block: 0 };
        let block = BTreeMap::from([(visit, samples.collect())]);
        assert_eq!(speed_steps(&block), []);
    }

    /// Noise that changes gradually, with a correlation of 1/e after three rounds, and blocks that differ.
    #[test]
    fn gradual_changes_and_blocks_that_differ_are_no_step() {
        let mut level: f64 = 0.0;
        let false_alarms = found(|random| {
            run(16, 0.02, random, |order, sample, random| {
                let keep = (-1.0_f64 / 48.0).exp();
                let fresh: f64 = random.sample(StandardNormal);
                level = keep * level + (1.0 - keep * keep).sqrt() * fresh;
                let block = 1.0 + 0.1 * f64::from(order % 3);
                block * (0.03 * level).exp() * (1.0 + 0.001 * f64::from(sample))
            })
        });
        assert!(false_alarms <= 2, "{false_alarms} of 200");
    }
}
