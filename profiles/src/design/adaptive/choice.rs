//! Which segments say most per second about what is least known.
//!
//! Sequential optimal design on the segment graph (docs/method.md §4): a segment's samples lower the variance
//! of every number by a known amount, and what every other segment would then still bring follows by
//! Sherman and Morrison's formula, without a new fit.

use std::ops::Range;

use super::aims::Aim;
use crate::derive::graph::{Contrast, Fit, PassingProspect};
use crate::segment::Segment;

/// How much more a wide interval counts than a narrow one: the weight of a number is its relative variance to
/// this power. 0 would lower the mean square alone (A-optimality), a high power the widest alone
/// (G-optimality), which spends on one number what would have lowered several. At ½ the mean square is
/// within 2 % and the widest within 6 % of the best that either could be.
const EMPHASIS: f64 = 0.5;

/// The variance that a number without interval is taken to have, in units of the one that is wanted: no interval that is
/// known is a billion times as wide as wanted.
const MOST_RELATIVE: f64 = 1e18;

/// So many nodes, two for each layer, before and after a segment are weighed anew when it was taken. Where single layers and
/// pairs of them are measured, what is further away differs by less than a ten-thousandth.
const NEARBY: usize = 24;

/// What measuring a segment would cost and bring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) segment: Segment,
    /// The variance of its time after these samples, in ns².
    pub(super) variance: f64,
    /// The device time that they take, in ns.
    pub(super) cost_ns: f64,
}

/// What is known now, and what it would become.
pub(super) struct Choice<'a> {
    fit: &'a Fit,
    /// Ascending by the first node.
    offers: Vec<WeighedOffer>,
    /// Ascending by the first node.
    numbers: Vec<Number<'a>>,
    taken: Vec<Taken>,
    nearby: usize,
    passing: Passing,
}

/// What is known of the cost of passing (docs/method.md §3).
#[derive(Clone, Copy)]
struct Passing {
    /// The variance that is left of it, as a share of what there was.
    left: f64,
    /// How much it counts: of each number the square of what it errs by with that cost, times its weight.
    weight: f64,
}

/// An offer with what it would bring; the names are those of `Prospect`.
struct WeighedOffer {
    offer: Offer,
    begin: usize,
    end: usize,
    fitted_variance: f64,
    moved: f64,
    passing: PassingProspect,
    /// What measuring it would bring for its time; nothing once it was taken.
    gain: f64,
}

impl WeighedOffer {
    fn first(&self) -> usize {
        self.begin.min(self.end)
    }

    fn last(&self) -> usize {
        self.begin.max(self.end)
    }

    /// The variance of its time as it would be measured and as it is known.
    fn variance(&self, passing: Passing) -> f64 {
        let by_passing = passing.left * self.passing.error_ns.powi(2);
        self.offer.variance + self.fitted_variance + by_passing
    }

    fn weigh(&mut self, passing: Passing) {
        if self.gain > 0.0 {
            let told = passing.left * self.passing.error_ns;
            let moved = self.moved + told * (2.0 * self.passing.shared + told * passing.weight);
            self.gain = moved / self.variance(passing) / self.offer.cost_ns;
        }
    }
}

/// A number that is to become known.
struct Number<'a> {
    contrast: &'a Contrast,
    /// Its variance in units of `aimed`.
    relative: f64,
    /// The variance at which its interval is as narrow as wanted, in ns².
    aimed: f64,
    /// How much its variance counts; nothing once its interval is narrow enough.
    weight: f64,
    /// By how much it errs where the cost of passing errs by its standard deviation, in ns.
    passing_error_ns: f64,
}

/// A segment that was taken as measured.
struct Taken {
    /// The covariance of the nodes around it with the segment's time, before it was measured.
    lever: Lever,
    /// By how much the covariance fell: `scale` times the outer product of the lever.
    scale: f64,
}

/// The covariance of every node with a combination of nodes that stand close together. All times that lie further away are as
/// good as independent of it: of the nodes after these none has a covariance with it, and those before have all the same,
/// but for the sign, so that a + b has none.
struct Lever {
    first: usize,
    covariances: Vec<f64>,
}

impl Lever {
    fn nodes(&self) -> Range<usize> {
        self.first..self.first + self.covariances.len()
    }

    fn get(&self, node: usize) -> f64 {
        match node.checked_sub(self.first) {
            Some(place) => self.covariances.get(place).copied().unwrap_or(0.0),
            None if (self.first - node).is_multiple_of(2) => self.covariances[0],
            None => -self.covariances[0],
        }
    }

    /// Subtracts `by` times another one.
    fn subtract(&mut self, by: f64, other: &Lever) {
        let of_both = other
            .first
            .saturating_sub(self.first)
            .min(self.covariances.len());
        let (before, both) = self.covariances.split_at_mut(of_both);
        for (node, covariance) in (self.first..).zip(before) {
            *covariance -= by * other.get(node);
        }
        let skipped = self.first.saturating_sub(other.first);
        for (covariance, other) in both.iter_mut().zip(other.covariances.iter().skip(skipped)) {
            *covariance -= by * other;
        }
    }

    /// The covariance with another combination.
    fn of(&self, contrast: &Contrast) -> f64 {
        let parts = contrast.0.iter();
        parts.map(|&(node, factor)| factor * self.get(node)).sum()
    }

    /// The covariance with the time of a segment.
    fn of_segment(&self, one: &WeighedOffer) -> f64 {
        self.get(one.begin) + self.get(one.end)
    }
}

fn first_node(contrast: &Contrast) -> usize {
    let nodes = contrast.0.iter().map(|&(node, _)| node);
    nodes.min().unwrap_or(0)
}

fn last_node(contrast: &Contrast) -> usize {
    let nodes = contrast.0.iter().map(|&(node, _)| node);
    nodes.max().unwrap_or(0)
}

impl<'a> Choice<'a> {
    pub(super) fn new(fit: &'a Fit, aims: &'a [Aim], target: f64, offers: Vec<Offer>) -> Self {
        let number = |aim: &'a Aim| {
            // Student's quantile is in the half width; as a factor of all later variances it stays.
            let relative = (aim.relative() / target).powi(2).min(MOST_RELATIVE);
            let aimed = aim.variance / relative;
            let weight = if relative > 1.0 {
                relative.powf(EMPHASIS) / aimed
            } else {
                0.0
            };
            Number {
                contrast: &aim.contrast,
                relative,
                aimed,
                weight,
                passing_error_ns: fit.error_by_passing(&aim.contrast, 0.0),
            }
        };
        let mut numbers: Vec<Number<'a>> = aims.iter().map(number).collect();
        numbers.sort_by_key(|number| first_node(number.contrast));
        let wanted = numbers.iter().filter(|number| number.weight > 0.0);
        let wanted: Vec<_> = wanted.map(|one| (one.contrast, one.weight)).collect();
        let segments: Vec<Segment> = offers.iter().map(|offer| offer.segment).collect();
        let prospects = fit.prospects(&wanted, &segments);
        let by_passing = |number: &Number<'_>| number.weight * number.passing_error_ns.powi(2);
        let passing = Passing {
            left: 1.0,
            weight: numbers.iter().map(by_passing).sum(),
        };
        let weighed = offers.into_iter().zip(prospects).map(|(offer, prospect)| {
            let (begin, end) = fit.nodes().ends(offer.segment);
            let mut weighed = WeighedOffer {
                offer,
                begin,
                end,
                fitted_variance: prospect.fitted_variance,
                moved: prospect.moved,
                passing: prospect.passing,
                gain: f64::INFINITY,
            };
            weighed.weigh(passing);
            weighed
        });
        let mut offers: Vec<WeighedOffer> = weighed.collect();
        offers.sort_by_key(WeighedOffer::first);
        Choice {
            fit,
            offers,
            numbers,
            taken: Vec::new(),
            nearby: NEARBY,
            passing,
        }
    }

    /// Whether every interval would be as narrow as it should be.
    pub(super) fn is_enough(&self) -> bool {
        self.numbers.iter().all(|number| number.relative <= 1.0)
    }

    /// Takes the offer that lowers what is least known most per second of those that cost no more than `most_ns`, as if
    /// it had been measured. `None` if none of them helps. No offer is taken twice.
    pub(super) fn take_best(&mut self, most_ns: f64) -> Option<Offer> {
        let open = self.offers.iter().enumerate();
        let (place, _) = open
            .filter(|(_, one)| one.gain.is_finite() && one.gain > 0.0)
            .filter(|(_, one)| one.offer.cost_ns <= most_ns)
            .max_by(|(_, one), (_, other)| one.gain.total_cmp(&other.gain))?;
        self.take(place);
        Some(self.offers[place].offer)
    }

    /// Every variance nearby falls by Sherman and Morrison's formula, and everywhere what the cost of passing adds to it; that
    /// its error is then no longer independent of the others is left to the next fit. What numbers weigh stays, but for those that
    /// are now known well enough.
    fn take(&mut self, place: usize) {
        let best = &mut self.offers[place];
        best.gain = 0.0;
        let segment = self.fit.nodes().segment(best.offer.segment);
        let scale = 1.0 / best.variance(self.passing);
        let told = self.passing.left * best.passing.error_ns;
        self.passing.left -= scale * told * told;
        let lever = self.lever(&segment, self.around(&segment));
        let nodes = lever.nodes();
        // With c the contrasts and w their weights: Σ w c (c' lever), and what it moves.
        let mut pull = vec![0.0; nodes.len()];
        let mut moved = 0.0;
        let mut reached = Vec::new();
        for place in self.numbers_in(&nodes) {
            let number = &mut self.numbers[place];
            if last_node(number.contrast) >= nodes.end {
                continue;
            }
            let covariance = lever.of(number.contrast);
            let pulled = number.weight * covariance;
            moved += pulled * covariance;
            for &(node, factor) in &number.contrast.0 {
                pull[node - nodes.start] += pulled * factor;
            }
            let by_passing = told * number.passing_error_ns;
            number.relative -= scale * covariance * (covariance + 2.0 * by_passing) / number.aimed;
            if number.relative <= 1.0 && number.weight > 0.0 {
                reached.push(place);
            }
        }
        if told != 0.0 {
            for (place, number) in self.numbers.iter_mut().enumerate() {
                let was_wanted = number.relative > 1.0;
                number.relative -= scale * (told * number.passing_error_ns).powi(2) / number.aimed;
                if number.relative <= 1.0 && was_wanted && number.weight > 0.0 {
                    reached.push(place);
                }
            }
        }
        let pull = nodes.clone().zip(pull).collect();
        let cross = self.lever(&Contrast(pull), nodes.clone());
        self.reweigh(&nodes, |one| {
            let (own, other) = (lever.of_segment(one), cross.of_segment(one));
            one.moved += scale * own * (scale * moved * own - 2.0 * other);
            one.fitted_variance -= scale * own * own;
        });
        self.taken.push(Taken { lever, scale });
        for place in reached {
            let number = &mut self.numbers[place];
            let weight = std::mem::take(&mut number.weight);
            self.passing.weight -= weight * number.passing_error_ns.powi(2);
            let contrast = number.contrast;
            let lever = self.lever(contrast, self.around(contrast));
            self.reweigh(&lever.nodes(), |one| {
                one.moved -= weight * lever.of_segment(one).powi(2);
            });
        }
        if told != 0.0 {
            for one in &mut self.offers {
                one.weigh(self.passing);
            }
        }
    }

    /// The nodes that a combination of nodes has to do with.
    fn around(&self, contrast: &Contrast) -> Range<usize> {
        let first = first_node(contrast).saturating_sub(self.nearby);
        let last = (last_node(contrast) + self.nearby).min(self.fit.nodes().count() - 1);
        first..last + 1
    }

    /// The places of the numbers that begin within these nodes.
    fn numbers_in(&self, nodes: &Range<usize>) -> Range<usize> {
        let before = |node: usize| {
            let is_before = |number: &Number<'_>| first_node(number.contrast) < node;
            self.numbers.partition_point(is_before)
        };
        before(nodes.start)..before(nodes.end)
    }

    /// Changes what each offer that lies within these nodes would bring.
    fn reweigh(&mut self, nodes: &Range<usize>, change: impl Fn(&mut WeighedOffer)) {
        let from = self.offers.partition_point(|one| one.first() < nodes.start);
        let passing = self.passing;
        let nearby = self.offers[from..].iter_mut();
        let nearby = nearby.take_while(|one| one.first() < nodes.end);
        for one in nearby.filter(|one| one.last() < nodes.end) {
            change(one);
            one.weigh(passing);
        }
    }

    /// The covariance of these nodes with a combination of them, after all that was taken.
    fn lever(&self, contrast: &Contrast, nodes: Range<usize>) -> Lever {
        let mut lever = Lever {
            first: nodes.start,
            covariances: self.fit.lever_within(contrast, nodes.clone()),
        };
        for taken in &self.taken {
            let of_taken = taken.lever.nodes();
            if of_taken.start >= nodes.end || nodes.start >= of_taken.end {
                continue;
            }
            let by = taken.scale * taken.lever.of(contrast);
            lever.subtract(by, &taken.lever);
        }
        lever
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::aims::aims;
    use super::super::candidates::candidates;
    use super::*;
    use crate::derive::graph::{Visit, VisitSamples, observe_visits};
    use crate::design::Design;
    use crate::units::Nanos;

    const LAYERS: u32 = 200;

    /// A network of which every segment of one or two layers and the whole was measured three times, with some noise.
    fn fit() -> Fit {
        let mut samples = VisitSamples::default();
        for (place, segment) in Design::Local.iter(LAYERS).enumerate() {
            let layers =
                (segment.first()..=segment.last()).map(|layer| 100.0 + f64::from(layer * 37 % 90));
            let time_us = 40.0 + layers.sum::<f64>();
            for visit in 0..3_u32 {
                for run in 0..4_u32 {
                    let noise =
                        f64::from((place as u32 * 31 + visit * 17 + run * 7) % 29) / 29.0 - 0.5;
                    let time = Nanos::from_nanos((1e3 * time_us * (1.0 + 0.05 * noise)) as u64);
                    let visit = Visit {
                        order: visit,
                        block: 0,
                    };
                    samples.push(segment, visit, time);
                }
            }
        }
        Fit::new(LAYERS, &observe_visits(&samples), &BTreeSet::new()).expect("connected")
    }

    /// How wide each number is after so many picks, and which segments were picked.
    fn picked(fit: &Fit, nearby: usize, picks: usize) -> (Vec<f64>, Vec<Segment>) {
        let aims = aims(fit);
        let offer = |segment: Segment| Offer {
            segment,
            variance: (fit.time_ns(segment) * 0.01).powi(2),
            cost_ns: fit.time_ns(segment),
        };
        let offers = candidates(LAYERS).map(offer).collect();
        let mut choice = Choice::new(fit, &aims, 0.002, offers);
        choice.nearby = nearby;
        let best = std::iter::from_fn(|| choice.take_best(f64::INFINITY));
        let segments = best.take(picks).map(|offer| offer.segment).collect();
        let widths = choice.numbers.iter().map(|number| number.relative);
        (widths.collect(), segments)
    }

    #[test]
    fn what_is_far_away_needs_no_weighing() {
        let fit = fit();
        let picks = LAYERS as usize / 3;
        let (all, of_all) = picked(&fit, 2 * LAYERS as usize, picks);
        let (near, of_near) = picked(&fit, NEARBY, picks);
        assert_eq!(of_near, of_all);
        for (near, all) in near.iter().zip(&all) {
            assert!((near / all - 1.0).abs() < 1e-4, "{near} {all}");
        }
    }
}
