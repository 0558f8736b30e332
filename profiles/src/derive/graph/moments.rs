//! Speeds within visits. A machine that others share is faster or slower for moments in which several inferences lie, whatever
//! segments they are of: what was timed just before an inference tells how fast the machine was, and that is taken out of it.
//! What was timed just after it would tell as well, but may be slow because of it: a long segment leaves caches to those after it
//! in which nothing of theirs is. Benchmarks that run side by side are compared in this way (Bulej, Horký, Tůma, Farquet and Prokopec, "Duet
//! Benchmarking", ICPE 2020); here segments that take turns are.

use std::collections::BTreeMap;

use super::location::{MAD_TO_SIGMA, median};
use super::visit_samples::{Visit, VisitSamples};
use crate::segment::Segment;
use crate::units::Nanos;

/// So many inferences before one tell the speed of its moment: the median of three stays where it is if one of them is disturbed
/// alone.
const REACH: usize = 3;

/// The fewest of them that tell it.
const FEWEST: usize = 2;

/// A smaller share of what those before deviate by explains less than a tenth of the variance, and is left.
const LEAST_SHARE: f64 = 0.5;

/// So many standard errors above nothing the share is at least, as inferences that have nothing in common never are.
const BEYOND_CHANCE: f64 = 5.0;

/// Deviations count as this many standard deviations at most when the share is estimated.
const FARTHEST: f64 = 3.0;

/// How often levels follow from speeds and speeds from levels; more change nothing that matters.
const ROUNDS: usize = 3;

/// What a visit's samples deviate by, in the order of time.
struct Turns {
    visit: Visit,
    turns: Vec<Turn>,
    /// The logarithm of what each segment usually takes in the visit, without what moments add to it.
    levels: BTreeMap<Segment, f64>,
}

/// One inference, and those before it.
struct Turn {
    segment: Segment,
    /// Its place among the samples of its segment in the visit.
    place: usize,
    logarithm: f64,
    /// The logarithm of how much longer those before it took than their segments usually do, beside the middle of all moments;
    /// `None` where too few are before it.
    before: Option<f64>,
}

/// The samples without what the speed of the moment adds to each; `None` where inferences have nothing in common with those
/// before them.
pub(super) fn at_one_speed(samples: &VisitSamples) -> Option<VisitSamples> {
    let turns = samples.turns.iter();
    let mut visits: Vec<Turns> = turns
        .map(|(&visit, turns)| Turns::of(visit, turns, samples))
        .collect();
    let mut share = 0.0;
    for _ in 0..ROUNDS {
        for visit in &mut visits {
            visit.find_levels(share);
            visit.look_back();
        }
        share = share_in_common(&visits)?;
    }
    let mut steady = samples.clone();
    for visit in visits {
        for turn in visit.turns {
            let of_segment = steady.segments.get_mut(&turn.segment);
            let of_visit = of_segment.and_then(|visits| visits.get_mut(&visit.visit));
            let sample = of_visit.and_then(|durations| durations.get_mut(turn.place));
            if let (Some(sample), Some(before)) = (sample, turn.before) {
                let steady_ns = sample.as_nanos() as f64 * (-share * before).exp();
                *sample = Nanos::from_nanos(steady_ns.round() as u64);
            }
        }
    }
    Some(steady)
}

impl Turns {
    /// The samples of segments that had turns in this order; of segments with a single sample nothing is known.
    fn of(visit: Visit, segments: &[Segment], samples: &VisitSamples) -> Turns {
        let mut timed: BTreeMap<Segment, usize> = BTreeMap::new();
        let mut turns = Vec::new();
        for &segment in segments {
            let place = timed.entry(segment).or_default();
            let of_segment = samples.segments.get(&segment);
            let of_visit = of_segment.and_then(|visits| visits.get(&visit));
            if let Some(duration) = of_visit.and_then(|durations| durations.get(*place)) {
                turns.push(Turn {
                    segment,
                    place: *place,
                    logarithm: (duration.as_nanos() as f64).max(0.5).ln(),
                    before: None,
                });
            }
            *place += 1;
        }
        turns.retain(|turn| timed[&turn.segment] > 1);
        Turns {
            visit,
            turns,
            levels: BTreeMap::new(),
        }
    }

    /// By how much the inferences before each deviate.
    fn look_back(&mut self) {
        let of_turn = |turn: &Turn| (turn.segment, turn.logarithm - self.levels[&turn.segment]);
        let deviations: Vec<(Segment, f64)> = self.turns.iter().map(of_turn).collect();
        let mut known = Vec::new();
        for (place, turn) in self.turns.iter_mut().enumerate() {
            let last = deviations[place.saturating_sub(REACH)..place].iter();
            let others = last.filter(|(segment, _)| *segment != turn.segment);
            let others: Vec<f64> = others.map(|&(_, deviation)| deviation).collect();
            turn.before = (others.len() >= FEWEST).then(|| median(&others)).flatten();
            known.extend(turn.before);
        }
        let middle = median(&known).unwrap_or(0.0);
        for turn in &mut self.turns {
            turn.before = turn.before.map(|before| before - middle);
        }
    }

    /// What segments usually take, where moments add such a share of what the inferences before deviate by.
    fn find_levels(&mut self, share: f64) {
        let mut steady: BTreeMap<Segment, Vec<f64>> = BTreeMap::new();
        for turn in &self.turns {
            let moment = share * turn.before.unwrap_or(0.0);
            let of_segment = steady.entry(turn.segment).or_default();
            of_segment.push(turn.logarithm - moment);
        }
        let levels = steady.into_iter();
        let levels =
            levels.filter_map(|(segment, of_segment)| Some((segment, median(&of_segment)?)));
        self.levels = levels.collect();
    }

    /// By how much each deviates, and those before it.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.turns.iter().filter_map(|turn| {
            let own = turn.logarithm - self.levels[&turn.segment];
            Some((own, turn.before?))
        })
    }
}

/// How much of what the inferences before deviate by an inference does, too: the slope of its deviation on theirs, through 0.
fn share_in_common(visits: &[Turns]) -> Option<f64> {
    let pairs = || visits.iter().flat_map(Turns::pairs);
    let distances: Vec<f64> = pairs().map(|(own, _)| own.abs()).collect();
    let farthest = FARTHEST * MAD_TO_SIGMA * median(&distances)?;
    let near = |deviation: f64| deviation.clamp(-farthest, farthest);
    let pairs: Vec<(f64, f64)> = pairs()
        .map(|(own, before)| (near(own), near(before)))
        .collect();
    let squares: f64 = pairs.iter().map(|(_, before)| before * before).sum();
    let products: f64 = pairs.iter().map(|(own, before)| own * before).sum();
    let share = products / squares;
    let left = |(own, before): &(f64, f64)| (own - share * before).powi(2);
    let variance = pairs.iter().map(left).sum::<f64>() / pairs.len() as f64;
    let error = (variance / squares).sqrt();
    // Where all is equal the share is no number, and not above anything.
    (share >= LEAST_SHARE && share >= BEYOND_CHANCE * error).then_some(share.min(1.0))
}
