//! Which segments say most per second about what is least known.
//!
//! Sequential optimal design on the segment graph (docs/method.md §4): a segment's samples lower the variance
//! of every number by a known amount, and the covariance after them follows from the one before by
//! Sherman and Morrison's formula, without a new fit.

use std::collections::BTreeSet;

use nalgebra::{DMatrix, DVector};

use super::aims::Aim;
use crate::derive::graph::{Fit, Nodes};
use crate::segment::Segment;

/// How much more a wide interval counts than a narrow one: the say of a number is its relative variance to
/// this power. 0 would lower the mean square alone (A-optimality), a high power the widest alone
/// (G-optimality), which spends on one number what would have lowered several. At ½ the mean square is
/// within 2 % and the widest within 6 % of the best that either could be.
const EMPHASIS: f64 = 0.5;

/// What is known now, and what it would become.
pub(super) struct Choice {
    nodes: Nodes,
    /// The covariance of all nodes; 0 for the one that is fixed.
    covariance: DMatrix<f64>,
    /// One row for each number: its covariance with each node.
    levers: DMatrix<f64>,
    /// Each number's variance in units of what is aimed at.
    relative: Vec<f64>,
    /// Each number's variance at which its interval is as narrow as wanted: the unit of `relative`.
    aimed: Vec<f64>,
    /// How much each number's variance counts; nothing once its interval is narrow enough.
    says: Vec<f64>,
    /// The sum over all numbers of their say times the outer product of their levers: from it follows at
    /// once what any segment would bring.
    gains: DMatrix<f64>,
}

/// What measuring a segment would cost and bring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) segment: Segment,
    /// The variance of its time after these samples, in ns².
    pub(super) variance: f64,
    /// The device time that they take, in ns.
    pub(super) cost_ns: f64,
}

impl Choice {
    pub(super) fn new(fit: &Fit, aims: &[Aim], target: f64) -> Choice {
        let (nodes, covariance) = fit.state();
        let unknowns = covariance.ncols();
        let count = nodes.count();
        let mut all = DMatrix::zeros(count, count);
        all.view_mut((0, 0), (unknowns, unknowns))
            .copy_from(covariance);
        let mut levers = DMatrix::zeros(aims.len(), count);
        for (row, aim) in aims.iter().enumerate() {
            for &(node, factor) in &aim.contrast.0 {
                for column in 0..count {
                    levers[(row, column)] += factor * all[(node, column)];
                }
            }
        }
        // Student's quantile is in the half width; as a factor of all later variances it stays.
        let (mut relative, mut aimed) = (Vec::new(), Vec::new());
        for (row, aim) in aims.iter().enumerate() {
            let terms = aim.contrast.0.iter();
            let variance: f64 = terms
                .map(|&(node, factor)| factor * levers[(row, node)])
                .sum();
            let now = (aim.relative() / target).powi(2);
            relative.push(now);
            aimed.push(variance / now);
        }
        let say = |(&relative, &aimed): (&f64, &f64)| {
            if relative > 1.0 {
                relative.powf(EMPHASIS) / aimed
            } else {
                0.0
            }
        };
        let says: Vec<f64> = relative.iter().zip(&aimed).map(say).collect();
        let mut weighted = levers.clone();
        for (mut lever, say) in weighted.row_iter_mut().zip(&says) {
            lever *= *say;
        }
        let gains = levers.tr_mul(&weighted);
        Choice {
            nodes,
            covariance: all,
            levers,
            relative,
            aimed,
            says,
            gains,
        }
    }

    /// Whether every interval would be as narrow as it should be.
    pub(super) fn is_enough(&self) -> bool {
        self.relative.iter().all(|&relative| relative <= 1.0)
    }

    /// The offer that lowers what is least known most per second. `None` if none of them helps.
    pub(super) fn best(&self, offers: impl Iterator<Item = Offer>) -> Option<Offer> {
        let gains = &self.gains;
        let gain = |offer: &Offer| {
            let (begin, end) = self.nodes.ends(offer.segment);
            let moved = gains[(begin, begin)] + 2.0 * gains[(begin, end)] + gains[(end, end)];
            moved / (offer.variance + self.fitted_variance(offer.segment)) / offer.cost_ns
        };
        offers
            .map(|offer| (gain(&offer), offer))
            .filter(|(gain, _)| gain.is_finite() && *gain > 0.0)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, offer)| offer)
    }

    /// As if the offer had been measured: every variance falls by Sherman and Morrison's formula. What
    /// numbers say stays, but for those that are now known well enough.
    pub(super) fn take(&mut self, offer: &Offer) {
        let (begin, end) = self.nodes.ends(offer.segment);
        let lever: DVector<f64> = self.covariance.column(begin) + self.covariance.column(end);
        let scale = 1.0 / (offer.variance + self.fitted_variance(offer.segment));
        let moved: DVector<f64> = self.levers.column(begin) + self.levers.column(end);
        // With L the levers and W the says, L'WL after L became L - scale · moved · lever'.
        let said = DVector::from_iterator(
            moved.len(),
            moved.iter().zip(&self.says).map(|(moved, say)| moved * say),
        );
        let cross: DVector<f64> = self.levers.tr_mul(&said);
        self.gains.ger(-scale, &lever, &cross, 1.0);
        self.gains.ger(-scale, &cross, &lever, 1.0);
        let both = scale * scale * moved.dot(&said);
        self.gains.ger(both, &lever, &lever, 1.0);
        self.covariance.ger(-scale, &lever, &lever, 1.0);
        self.levers.ger(-scale, &moved, &lever, 1.0);
        for row in 0..self.relative.len() {
            self.relative[row] -= scale * moved[row] * moved[row] / self.aimed[row];
            if self.relative[row] <= 1.0 && self.says[row] > 0.0 {
                let lever = self.levers.row(row).transpose();
                self.gains.ger(-self.says[row], &lever, &lever, 1.0);
                self.says[row] = 0.0;
            }
        }
    }

    fn fitted_variance(&self, segment: Segment) -> f64 {
        let (begin, end) = self.nodes.ends(segment);
        let c = &self.covariance;
        c[(begin, begin)] + 2.0 * c[(begin, end)] + c[(end, end)]
    }
}

/// All segments that may be measured, apart from those in `held_back`.
pub(super) fn candidates(
    layers: u32,
    held_back: &BTreeSet<Segment>,
) -> impl Iterator<Item = Segment> {
    crate::design::Design::Grouped
        .iter(layers)
        .filter(|segment| !held_back.contains(segment))
}
