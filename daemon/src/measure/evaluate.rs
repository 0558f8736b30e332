//! What placements lose of a model's accuracy, measured by answering labelled images (METHOD §6).

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::accuracy::{
    EvaluationSet, Part, SetError, Tally, loss, references, sample, split,
};
use layerlab_profiles::document::{Evaluation, Judged};
use layerlab_profiles::{Bytes, Combination, Nanos, sha256};
use layerlab_protocol::{Hygiene, Order, WarmUp, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use time::OffsetDateTime;

use super::orders::{News, Orders};
use super::{File, Follower, MeasureError, ModelFile, Progress, Run, Told, drive, forget, run_id};
use crate::device::Link;

/// Answers of one order: a lost phone costs little, and a placement that is known well enough stops soon.
const ANSWERS_PER_ORDER: usize = 25;

/// Orders that the agent holds at most, so that it never waits for the next one.
const AHEAD: usize = 2;

/// No placement stops before so many answers. After 100, those stop first that have not failed yet by luck: of the
/// intervals of losses of 2 to 5 %, 90 % held the loss; after 250, 92 to 94 % do.
pub const LEAST_ANSWERS: usize = 250;

/// An evaluation set as it was read from a file.
pub struct SetFile {
    /// The set.
    pub set: EvaluationSet,
    /// SHA-256 of the file.
    pub sha256: String,
    bytes: Vec<u8>,
}

impl SetFile {
    /// Reads the set at `path`.
    pub fn open(path: &std::path::Path) -> Result<SetFile, SetError> {
        let bytes = std::fs::read(path).map_err(|reason| SetError::Read {
            path: path.to_owned(),
            reason,
        })?;
        SetFile::from_bytes(bytes)
    }

    /// The set whose file has these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<SetFile, SetError> {
        Ok(SetFile {
            set: EvaluationSet::from_bytes(&bytes)?,
            sha256: sha256(&bytes),
            bytes,
        })
    }

    /// It as devices get it.
    pub fn file(&self) -> File<'_> {
        File {
            sha256: &self.sha256,
            content: &self.bytes,
        }
    }

    /// Its file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What the user may choose about an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationSettings {
    /// Runs the zeros; a processor of the device, by its name.
    pub cpu: String,
    /// Runs the ones.
    pub accelerator: String,
    /// Which placements.
    pub placements: Placements,
    /// Of the random combinations, their parts, and the order of the answers.
    pub seed: u64,
    /// How many of the set's answers to give.
    pub answers: Option<usize>,
    /// No more answers of a placement when half the width of its loss's interval is at most this.
    pub stop_at_half_width: Option<f64>,
    /// What activations may take on the device while placements are walked together.
    pub memory: Bytes,
}

/// Which placements to evaluate.
#[derive(Clone, Debug, PartialEq)]
pub enum Placements {
    /// All layers on either processor, each single layer on the accelerator, and so many random ones.
    Random(usize),
    /// These, and all layers on the CPU to compare with.
    These(Vec<Combination>),
}

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// How it was done.
    pub evaluation: Evaluation,
    /// Every placement's answers, all layers on the CPU first.
    pub judged: Vec<Judged>,
}

/// Answers the set's images on the device behind `link`, under each placement.
pub async fn evaluate<L: Link>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    settings: &EvaluationSettings,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Evaluated, MeasureError> {
    let run = Run::from(run_id(OffsetDateTime::now_utc()));
    let evaluated = evaluate_run(link, model, set, settings, &run, &mut Told(on_progress)).await?;
    forget(link, run.id).await;
    Ok(evaluated)
}

/// Goes on with `run` to its end. Its journal stays on the device.
pub async fn evaluate_run<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    settings: &EvaluationSettings,
    run: &Run,
    follower: &mut F,
) -> Result<Evaluated, MeasureError> {
    let layers = model.network.layer_count();
    let (placements, parts) = placements(layers, settings);
    let all = set.set.answers();
    let mut answers: Vec<u64> = (0..all as u64).collect();
    answers.shuffle(&mut ChaCha8Rng::seed_from_u64(settings.seed));
    answers.truncate(settings.answers.unwrap_or(all));
    follower.planned(Some(answers.len() as u64));
    let template = Order {
        run: run.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        processor: settings.cpu.clone(),
        work: Work::Evaluate {
            set_sha256: set.sha256.clone(),
            accelerator: settings.accelerator.clone(),
            combinations: Vec::new(),
            answers: Vec::new(),
            memory_bytes: settings.memory,
        },
        samples_per_segment: 1,
        gap_ns: Nanos::ZERO,
        warm_up: WarmUp::default(),
        hygiene: Hygiene::default(),
        seed: settings.seed,
    };
    let mut walk = Walk::new(template, &placements, &answers, settings.stop_at_half_width);
    drive(link, run, &[model.file(), set.file()], &mut walk, follower).await?;
    let Walk { tallies, flop, .. } = walk;

    let each = set.set.metric.images_per_answer() as u64;
    let layers = model.network.layers().iter();
    let flop_per_answer: u64 = each
        * layers
            .map(|layer| layer.additions + layer.multiplications)
            .sum::<u64>();
    let given: usize = tallies.iter().map(Vec::len).sum();
    let baseline_answers = tallies.first().map_or(0, Vec::len);
    let evaluation = Evaluation {
        cpu: settings.cpu.clone(),
        accelerator: settings.accelerator.clone(),
        set: set.set.name.clone(),
        set_sha256: set.sha256.clone(),
        preprocessing: set.set.preprocessing.clone(),
        metric: set.set.metric.clone(),
        answers: baseline_answers as u64,
        samples: match &settings.placements {
            Placements::Random(samples) => *samples as u64,
            Placements::These(_) => 0,
        },
        seed: settings.seed,
        stop_at_half_width: settings.stop_at_half_width,
        executed_flop: flop,
        naive_flop: flop_per_answer * given as u64,
    };
    let judged = placements.into_iter().zip(parts).zip(tallies);
    Ok(Evaluated {
        evaluation,
        judged: judged
            .map(|((combination, part), tallies)| Judged {
                combination,
                part,
                tallies,
            })
            .collect(),
    })
}

/// The distinct placements and what each is for, all layers on the CPU first.
fn placements(layers: u32, settings: &EvaluationSettings) -> (Vec<Combination>, Vec<Part>) {
    let mut parts: BTreeMap<Combination, Part> = BTreeMap::new();
    let mut order = Vec::new();
    let mut add = |combination: Combination, part| {
        if parts.insert(combination.clone(), part).is_none() {
            order.push(combination);
        }
    };
    let all_references = references(layers);
    match &settings.placements {
        Placements::Random(samples) => {
            for reference in all_references {
                add(reference, Part::Reference);
            }
            let drawn = sample(layers, *samples, settings.seed);
            let split = split(drawn.len(), settings.seed);
            for (combination, part) in drawn.into_iter().zip(split) {
                add(combination, part);
            }
        }
        Placements::These(these) => {
            for combination in all_references
                .into_iter()
                .take(1)
                .chain(these.iter().cloned())
            {
                add(combination, Part::Reference);
            }
        }
    }
    let parts = order.iter().map(|combination| parts[combination]).collect();
    (order, parts)
}

/// The orders of an evaluation, slice by slice of the answers.
struct Walk<'a> {
    template: Order,
    placements: &'a [Combination],
    /// Answers that are not ordered yet.
    left: &'a [u64],
    stop_at_half_width: Option<f64>,
    /// Placements that need more answers, by their places; the baseline is the first.
    open: BTreeSet<usize>,
    /// Which placements an order has, by its number.
    sent: BTreeMap<u32, Vec<usize>>,
    next_number: u32,
    /// The answers of each placement, in the order in which they were given.
    tallies: Vec<Vec<Tally>>,
    flop: u64,
}

impl<'a> Walk<'a> {
    fn new(
        template: Order,
        placements: &'a [Combination],
        answers: &'a [u64],
        stop_at_half_width: Option<f64>,
    ) -> Walk<'a> {
        Walk {
            template,
            placements,
            left: answers,
            stop_at_half_width,
            open: (0..placements.len()).collect(),
            sent: BTreeMap::new(),
            next_number: 1,
            tallies: vec![Vec::new(); placements.len()],
            flop: 0,
        }
    }

    /// Closes the placements whose losses are known well enough.
    fn close(&mut self) {
        let Some(target) = self.stop_at_half_width else {
            return;
        };
        let (baseline, tallies) = (&self.tallies[0], &self.tallies);
        self.open.retain(|&place| {
            let own = &tallies[place];
            let known = own.len() >= LEAST_ANSWERS
                && loss(&baseline[..own.len()], own)
                    .is_some_and(|loss| loss.half_width() <= target);
            place == 0 || !known
        });
        // Alone, the baseline has nothing to be compared with.
        if self.open.len() == 1 {
            self.open.clear();
        }
    }

    fn order(&mut self) -> Option<Order> {
        if self.open.is_empty() || self.left.is_empty() {
            return None;
        }
        let slice;
        (slice, self.left) = self.left.split_at(ANSWERS_PER_ORDER.min(self.left.len()));
        let places: Vec<usize> = self.open.iter().copied().collect();
        let mut order = self.template.clone();
        order.number = self.next_number;
        self.next_number += 1;
        if let Work::Evaluate {
            combinations,
            answers,
            ..
        } = &mut order.work
        {
            *combinations = places
                .iter()
                .map(|&place| self.placements[place].clone())
                .collect();
            *answers = slice.to_vec();
        }
        self.sent.insert(order.number, places);
        Some(order)
    }
}

impl Orders for Walk<'_> {
    fn next(&mut self, news: &[News]) -> Vec<Order> {
        for event in news {
            match event {
                News::Judged {
                    order,
                    tallies,
                    flop,
                } => {
                    self.flop += flop;
                    let places = self.sent.get(order).into_iter().flatten();
                    for (&place, &tally) in places.zip(tallies) {
                        self.tallies[place].push(tally);
                    }
                }
                News::Finished(order) => {
                    self.sent.remove(order);
                    self.close();
                }
                News::Sample(_) | News::BlockEnded { .. } => {}
            }
        }
        let free = AHEAD.saturating_sub(self.sent.len());
        (0..free).map_while(|_| self.order()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    fn settings(placements: Placements) -> EvaluationSettings {
        EvaluationSettings {
            cpu: "cpu".to_owned(),
            accelerator: "npu".to_owned(),
            placements,
            seed: 1,
            answers: None,
            stop_at_half_width: None,
            memory: Bytes::from_bytes(1 << 20),
        }
    }

    #[test]
    fn the_baseline_comes_first_and_no_placement_twice() {
        let (drawn, parts) = placements(10, &settings(Placements::Random(300)));
        assert_eq!(drawn[0].to_string(), "0000000000");
        assert_eq!(drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len());
        let of = |part| parts.iter().filter(|&&one| one == part).count();
        assert_eq!((of(Part::Train), of(Part::Test)), (250, 50));

        let asked = vec!["0110".parse().expect("bits"), "0000".parse().expect("bits")];
        let (asked, _) = placements(4, &settings(Placements::These(asked)));
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        assert_eq!(asked, ["0000", "0110"]);
    }

    /// A walk that was done, by a device that answers as `tally` says: a placement's place, and the answer's.
    fn walked<'a>(
        combinations: &'a [Combination],
        answers: &'a [u64],
        stop_at: f64,
        tally: impl Fn(usize, u64) -> Tally,
    ) -> Walk<'a> {
        let template = Order {
            run: layerlab_protocol::RunId::new("r").expect("a name"),
            number: 0,
            model_sha256: String::new(),
            processor: "cpu".to_owned(),
            work: Work::Evaluate {
                set_sha256: String::new(),
                accelerator: "npu".to_owned(),
                combinations: Vec::new(),
                answers: Vec::new(),
                memory_bytes: Bytes::ZERO,
            },
            samples_per_segment: 1,
            gap_ns: Nanos::ZERO,
            warm_up: WarmUp::default(),
            hygiene: Hygiene::default(),
            seed: 1,
        };
        let place_of: BTreeMap<&Combination, usize> = combinations.iter().zip(0..).collect();
        let mut walk = Walk::new(template, combinations, answers, Some(stop_at));
        let mut open = walk.next(&[]);
        while !open.is_empty() {
            let order = open.remove(0);
            let Work::Evaluate {
                combinations,
                answers,
                ..
            } = &order.work
            else {
                panic!("an evaluation")
            };
            for &answer in answers {
                let places = combinations.iter().map(|one| place_of[one]);
                open.extend(walk.next(&[News::Judged {
                    order: order.number,
                    tallies: places.map(|place| tally(place, answer)).collect(),
                    flop: 7,
                }]));
            }
            open.extend(walk.next(&[News::Finished(order.number)]));
        }
        walk
    }

    /// One placement answers as the baseline does, one is wrong every other time.
    #[test]
    fn a_placement_that_is_known_well_enough_gets_no_more_answers() {
        let right = Tally {
            hits: 1,
            ..Tally::default()
        };
        let wrong = Tally {
            hits: 0,
            false_alarms: 1,
            misses: 1,
        };
        let combinations: Vec<Combination> = ["00", "01", "11"]
            .map(|bits| bits.parse().expect("bits"))
            .to_vec();
        let answers: Vec<u64> = (0..1_000).collect();
        let walk = walked(&combinations, &answers, 0.04, |place, answer| match place {
            2 if answer % 2 == 0 => wrong,
            _ => right,
        });
        let given: Vec<usize> = walk.tallies.iter().map(Vec::len).collect();
        // The order after the one that made it certain was sent already.
        assert!(
            (LEAST_ANSWERS..=LEAST_ANSWERS + ANSWERS_PER_ORDER).contains(&given[1]),
            "{given:?}"
        );
        assert!(given[2] > 500 && given[2] < 1_000, "{given:?}");
        assert_eq!(given[0], given[2]);
        assert_eq!(walk.flop, 7 * given[0] as u64);
    }

    /// What the images of a simulated set are.
    #[derive(Clone, Copy, Debug)]
    enum Images {
        /// Answered right or wrong as a whole.
        Whole,
        /// With one to four objects each, found or missed.
        Objects,
    }

    /// The share of things that the baseline gets right.
    const RIGHT: f64 = 0.9;

    impl Images {
        /// How likely a placement that loses `loss` changes what the baseline got right; it changes what that got
        /// wrong half as often.
        fn changed(self, loss: f64) -> f64 {
            let right = match self {
                Images::Whole => RIGHT - loss,
                Images::Objects => {
                    let score = 2.0 * RIGHT / (1.0 + RIGHT) - loss;
                    score / (2.0 - score)
                }
            };
            (RIGHT - right) / (RIGHT - (1.0 - RIGHT) / 2.0)
        }

        /// The tallies of the baseline and of placements with these losses, for each answer.
        fn draw(self, losses: &[f64], answers: usize, random: &mut ChaCha8Rng) -> Vec<Vec<Tally>> {
            let tally = |right: bool| Tally {
                hits: u64::from(right),
                misses: u64::from(!right),
                false_alarms: u64::from(!right && matches!(self, Images::Whole)),
            };
            let mut tallies = vec![vec![Tally::default(); answers]; losses.len() + 1];
            for answer in 0..answers {
                let things = match self {
                    Images::Whole => 1,
                    Images::Objects => random.random_range(1..=4),
                };
                for _ in 0..things {
                    let right = random.random_bool(RIGHT);
                    tallies[0][answer] = tallies[0][answer] + tally(right);
                    for (own, &loss) in tallies[1..].iter_mut().zip(losses) {
                        let changed = self.changed(loss) * if right { 1.0 } else { 0.5 };
                        let right = right != random.random_bool(changed);
                        own[answer] = own[answer] + tally(right);
                    }
                }
            }
            tallies
        }
    }

    /// Looking again and again until an interval is narrow finds those first that are narrow by luck: no failure
    /// yet. Enough answers before the first look keep intervals honest, those of each size of loss.
    #[test]
    #[expect(clippy::print_stdout, reason = "its figures are worth knowing")]
    fn intervals_of_placements_that_stopped_early_hold_the_true_loss() {
        const SETS: u64 = 200;
        const PLACEMENTS: usize = 60;
        const ANSWERS: usize = 1_000;
        /// From 0.1 % to 30 %, in bands.
        const BOUNDS: [f64; 7] = [0.001, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3];
        let combinations: Vec<Combination> = (0..=PLACEMENTS)
            .map(|place| Combination::new((0..8).map(|bit| place >> bit & 1 == 1).collect()))
            .collect();
        let answers: Vec<u64> = (0..ANSWERS as u64).collect();
        for images in [Images::Whole, Images::Objects] {
            let mut bands = [(0, 0); BOUNDS.len() - 1];
            let mut given = 0;
            for seed in 0..SETS {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                let (least, most) = (BOUNDS[0].ln(), BOUNDS[BOUNDS.len() - 1].ln());
                let losses: Vec<f64> = (0..PLACEMENTS)
                    .map(|_| random.random_range(least..most).exp())
                    .collect();
                let tallies = images.draw(&losses, ANSWERS, &mut random);
                let walk = walked(&combinations, &answers, 0.02, |place, answer| {
                    tallies[place][answer as usize]
                });
                for (own, truth) in walk.tallies[1..].iter().zip(losses) {
                    let found = loss(&walk.tallies[0][..own.len()], own).expect("answers");
                    let band = BOUNDS.partition_point(|&bound| bound <= truth) - 1;
                    bands[band].0 += usize::from((found.ci95.0..=found.ci95.1).contains(&truth));
                    bands[band].1 += 1;
                    given += own.len();
                }
            }
            let share = |(holding, all): (usize, usize)| holding as f64 / all as f64;
            let sum = |sum: (usize, usize), band: &(usize, usize)| (sum.0 + band.0, sum.1 + band.1);
            let overall = share(bands.iter().fold((0, 0), sum));
            let each = bands.map(share);
            let all = SETS as usize * PLACEMENTS * ANSWERS;
            println!(
                "{images:?}: {:.2} % of the intervals hold the loss, by size of loss {each:.3?}; {:.1} % of the \
                 answers were not given",
                100.0 * overall,
                100.0 * (1.0 - given as f64 / all as f64)
            );
            assert!((0.92..=0.98).contains(&overall), "{images:?}: {overall}");
            // Small losses are held more often: whole answers do not come in fractions.
            assert!(
                each.iter().all(|&share| share >= 0.92),
                "{images:?}: {each:?}"
            );
        }
    }
}
