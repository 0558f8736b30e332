//! Which segments say most per second about what is least known.
//!
//! Sequential optimal design on the segment graph (docs/method.md §4): a segment's samples lower the variance
//! of every number by a known amount, and what every other segment would then still bring follows by
//! Sherman and Morrison's formula, without a new fit.

use super::aims::Aim;
use crate::derive::graph::{Contrast, Fit};
use crate::segment::Segment;

/// How much more a wide interval counts than a narrow one: the weight of a number is its relative variance to
/// this power. 0 would lower the mean square alone (A-optimality), a high power the widest alone
/// (G-optimality), which spends on one number what would have lowered several. At ½ the mean square is
/// within 2 % and the widest within 6 % of the best that either could be.
const EMPHASIS: f64 = 0.5;

/// The variance that a number without interval is taken to have, in units of the one that is wanted: no interval that is
/// known is a billion times as wide as wanted.
const MOST_RELATIVE: f64 = 1e18;

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
    offers: Vec<WeighedOffer>,
    numbers: Vec<Number<'a>>,
    taken: Vec<Taken>,
}

/// An offer with what it would bring; the names are those of `Prospect`.
struct WeighedOffer {
    offer: Offer,
    begin: usize,
    end: usize,
    fitted_variance: f64,
    moved: f64,
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
}

/// A segment that was taken as measured.
struct Taken {
    /// The covariance of every node with the segment's time, before it was measured.
    lever: Vec<f64>,
    /// By how much the covariance fell: `scale` times the outer product of the lever.
    scale: f64,
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
            }
        };
        let numbers: Vec<Number<'a>> = aims.iter().map(number).collect();
        let wanted = numbers.iter().filter(|number| number.weight > 0.0);
        let wanted: Vec<_> = wanted.map(|one| (one.contrast, one.weight)).collect();
        let segments: Vec<Segment> = offers.iter().map(|offer| offer.segment).collect();
        let prospects = fit.prospects(&wanted, &segments);
        let weighed = offers.into_iter().zip(prospects).map(|(offer, prospect)| {
            let (begin, end) = fit.nodes().ends(offer.segment);
            WeighedOffer {
                offer,
                begin,
                end,
                fitted_variance: prospect.fitted_variance,
                moved: prospect.moved,
            }
        });
        Choice {
            fit,
            offers: weighed.collect(),
            numbers,
            taken: Vec::new(),
        }
    }

    /// Whether every interval would be as narrow as it should be.
    pub(super) fn is_enough(&self) -> bool {
        self.numbers.iter().all(|number| number.relative <= 1.0)
    }

    /// Takes the offer that lowers what is least known most per second of those that cost no more than `most_ns`, as if
    /// it had been measured. `None` if none of them helps. No offer is taken twice.
    pub(super) fn take_best(&mut self, most_ns: f64) -> Option<Offer> {
        let gain = |one: &WeighedOffer| {
            one.moved / (one.offer.variance + one.fitted_variance) / one.offer.cost_ns
        };
        let open = self.offers.iter().enumerate();
        let (place, _) = open
            .filter(|(_, one)| one.offer.cost_ns <= most_ns)
            .map(|(place, one)| (place, gain(one)))
            .filter(|(_, gain)| gain.is_finite() && *gain > 0.0)
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let best = self.offers.swap_remove(place);
        self.take(&best);
        Some(best.offer)
    }

    /// Every variance falls by Sherman and Morrison's formula. What numbers weigh stays, but for those that are now known
    /// well enough.
    fn take(&mut self, best: &WeighedOffer) {
        let lever = self.lever(&self.fit.nodes().segment(best.offer.segment));
        let scale = 1.0 / (best.offer.variance + best.fitted_variance);
        // With c the contrasts and w their weights: Σ w c (c' lever), and what it moves.
        let mut pull = vec![0.0; lever.len()];
        let mut moved = 0.0;
        let mut reached = Vec::new();
        for (place, number) in self.numbers.iter_mut().enumerate() {
            let covariance = number.contrast.of(&lever);
            let pulled = number.weight * covariance;
            moved += pulled * covariance;
            for &(node, factor) in &number.contrast.0 {
                pull[node] += pulled * factor;
            }
            number.relative -= scale * covariance * covariance / number.aimed;
            if number.relative <= 1.0 && number.weight > 0.0 {
                reached.push(place);
            }
        }
        let cross = self.lever(&Contrast(pull.into_iter().enumerate().collect()));
        for one in &mut self.offers {
            let (own, other) = (
                lever[one.begin] + lever[one.end],
                cross[one.begin] + cross[one.end],
            );
            one.moved += scale * own * (scale * moved * own - 2.0 * other);
            one.fitted_variance -= scale * own * own;
        }
        self.taken.push(Taken { lever, scale });
        for place in reached {
            let weight = std::mem::take(&mut self.numbers[place].weight);
            let lever = self.lever(self.numbers[place].contrast);
            for one in &mut self.offers {
                one.moved -= weight * (lever[one.begin] + lever[one.end]).powi(2);
            }
        }
    }

    /// The covariance of every node with a combination of nodes, after all that was taken.
    fn lever(&self, contrast: &Contrast) -> Vec<f64> {
        let mut lever = self.fit.lever(contrast);
        for taken in &self.taken {
            let by = taken.scale * contrast.of(&taken.lever);
            for (entry, taken) in lever.iter_mut().zip(&taken.lever) {
                *entry -= by * taken;
            }
        }
        lever
    }
}
