//! The answers of an evaluation: which placements give which ones, and when a placement needs no more.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::Placement;
use layerlab_profiles::accuracy::{Tally, loss};
use layerlab_protocol::{Order, Work};

use super::orders::{News, Orders, PlannerError};

/// Answers of one order: a lost phone costs little, and a placement that is known well enough stops soon.
const ANSWERS_PER_ORDER: usize = 25;

/// Orders that the agent holds at most, so that it never waits for the next one.
const AHEAD: usize = 2;

/// No placement stops before so many answers. After 100, those stop first that have not failed yet by luck: of the
/// intervals of losses of 2 to 5 %, 90 % held the loss; after 250, 92 to 94 % do.
pub const LEAST_ANSWERS: usize = 250;

/// The orders of an evaluation, slice by slice of the answers.
pub(super) struct Answers<'a> {
    template: Order,
    placements: &'a [Placement],
    /// Answers that are not ordered yet.
    left: &'a [u64],
    stop_at_half_width: Option<f64>,
    /// Placements that need more answers, by their places; the baseline is the first.
    open: BTreeSet<usize>,
    /// Which placements an order has, by its number.
    sent: BTreeMap<u32, Vec<usize>>,
    next_number: u32,
    /// The answers of each placement, in the order in which they were given.
    pub(super) tallies: Vec<Vec<Tally>>,
    pub(super) flop: u64,
}

impl<'a> Answers<'a> {
    pub(super) fn new(
        template: Order,
        placements: &'a [Placement],
        answers: &'a [u64],
        stop_at_half_width: Option<f64>,
    ) -> Answers<'a> {
        Answers {
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

impl Orders for Answers<'_> {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
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
                News::Loaded { .. }
                | News::Unsupported(_)
                | News::Sample(_)
                | News::Elsewhere { .. }
                | News::FramesAnswered { .. }
                | News::TensorsPacked { .. }
                | News::BlockEnded { .. } => {}
            }
        }
        let free = AHEAD.saturating_sub(self.sent.len());
        Ok((0..free).map_while(|_| self.order()).collect())
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Bytes;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// All orders done, by a device that answers as `tally` says: a placement's place, and the answer's.
    fn answered<'a>(
        combinations: &'a [Placement],
        answers: &'a [u64],
        stop_at: f64,
        tally: impl Fn(usize, u64) -> Tally,
    ) -> Answers<'a> {
        let template = Order {
            run: layerlab_protocol::RunId::new("r").expect("a name"),
            number: 0,
            model_sha256: String::new(),
            quantised_sha256: None,
            processor: "cpu".to_owned(),
            work: Work::Evaluate {
                set_sha256: String::new(),
                processors: vec!["cpu".to_owned(), "npu".to_owned()],
                combinations: Vec::new(),
                answers: Vec::new(),
                memory_bytes: Bytes::ZERO,
                as_runs: false,
                keep_answers: false,
            },
            seed: 1,
        };
        let place_of: BTreeMap<&Placement, usize> = combinations.iter().zip(0..).collect();
        let mut all = Answers::new(template, combinations, answers, Some(stop_at));
        let mut open = all.next(&[]).expect("orders");
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
                let judged = News::Judged {
                    order: order.number,
                    tallies: places.map(|place| tally(place, answer)).collect(),
                    flop: 7,
                };
                open.extend(all.next(&[judged]).expect("orders"));
            }
            let finished = News::Finished(order.number);
            open.extend(all.next(&[finished]).expect("orders"));
        }
        all
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
        let combinations: Vec<Placement> = ["00", "01", "11"]
            .map(|bits| bits.parse().expect("bits"))
            .to_vec();
        let answers: Vec<u64> = (0..1_000).collect();
        let all = answered(&combinations, &answers, 0.04, |place, answer| match place {
            2 if answer % 2 == 0 => wrong,
            _ => right,
        });
        let given: Vec<usize> = all.tallies.iter().map(Vec::len).collect();
        // The order after the one that made it certain was sent already.
        assert!(
            (LEAST_ANSWERS..=LEAST_ANSWERS + ANSWERS_PER_ORDER).contains(&given[1]),
            "{given:?}"
        );
        assert!(given[2] > 500 && given[2] < 1_000, "{given:?}");
        assert_eq!(given[0], given[2]);
        assert_eq!(all.flop, 7 * given[0] as u64);
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
        let combinations: Vec<Placement> = (0..=PLACEMENTS)
            .map(|place| Placement::new((0..8).map(|bit| place >> bit & 1 == 1).collect()))
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
                let all = answered(&combinations, &answers, 0.02, |place, answer| {
                    tallies[place][answer as usize]
                });
                for (own, truth) in all.tallies[1..].iter().zip(losses) {
                    let found = loss(&all.tallies[0][..own.len()], own).expect("answers");
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
