//! The times of layers, from a fit and from how the costs of cuts divide.

use super::contrast::Contrast;
use super::derived_number::{DerivedNumber, LayerNumbers};
use super::fit::{Derived, Fit};
use super::in_share::InShares;
use crate::layer_time::{Includes, LayerTime};

impl LayerNumbers {
    /// The same of an accelerator as published: intervals in place of errors. Where the assumption that moving costs the
    /// same both ways decides, a time below zero says that it is wrong.
    pub(crate) fn layer_time(&self, is_assumed: bool) -> LayerTime {
        let estimate = |number: Option<DerivedNumber>| number.map(|number| number.estimate());
        LayerTime {
            compute: match is_assumed {
                true => self.compute.estimate(),
                false => self.compute.estimate_of_no_less_than_nothing(),
            },
            compute_includes: Includes {
                to_processor: self.to_processor.is_none(),
                from_processor: self.from_processor.is_none(),
            },
            to_processor: estimate(self.to_processor),
            from_processor: estimate(self.from_processor),
        }
    }
}

impl Fit {
    /// The times of the layers in the papers' terms, layer 1 first, under the assumption that they make:
    /// a cut costs the same both ways, t_d(l) = t_r(l-1) (docs/method.md §3).
    pub fn layer_times(&self) -> Vec<LayerTime> {
        self.layer_times_with(&InShares::symmetric())
    }

    /// The same where the cost of each cut divides by `shares`. Their sums over runs of layers are the same, whatever the
    /// shares are.
    pub fn layer_times_with(&self, shares: &InShares) -> Vec<LayerTime> {
        let numbers = self.layer_numbers_with(shares).into_iter();
        let times = numbers.map(|numbers| numbers.layer_time(shares.are_assumed()));
        times.collect()
    }

    /// The same with the degrees of freedom of their errors.
    pub(crate) fn layer_numbers_with(&self, shares: &InShares) -> Vec<LayerNumbers> {
        let (layers, nodes) = (self.layers(), self.nodes());
        let inward = |cut: u32| {
            let share = shares.inward(cut);
            self.divided(&nodes.cut_after(cut).times(share), &[(cut, 1.0)], shares)
        };
        let outward = |cut: u32| {
            let share = 1.0 - shares.inward(cut);
            self.divided(&nodes.cut_after(cut).times(share), &[(cut, -1.0)], shares)
        };
        let compute = |layer: u32| {
            let (before, after) = (shares.inward(layer - 1), 1.0 - shares.inward(layer));
            let contrast = nodes.compute_less(layer, before, after);
            self.divided(&contrast, &[(layer - 1, -1.0), (layer, 1.0)], shares)
        };
        (1..=layers)
            .map(|layer| LayerNumbers {
                compute: compute(layer),
                to_processor: (layer > 1).then(|| inward(layer - 1)),
                from_processor: (layer < layers).then(|| outward(layer)),
            })
            .collect()
    }

    /// A contrast whose factors depend on the shares of cuts: of each, by how many times the cut's cost it grows with the
    /// share. The errors of segments and of probes are independent, so that their variances add.
    fn divided(
        &self,
        contrast: &Contrast,
        grows: &[(u32, f64)],
        shares: &InShares,
    ) -> DerivedNumber {
        let derived = self.with_common(self.derive(contrast));
        let inner = 1..self.layers();
        let terms: Vec<(u32, f64)> = grows
            .iter()
            .filter(|(cut, _)| inner.contains(cut))
            .map(|&(cut, factor)| (cut, factor * self.value_ns(&self.nodes().cut_after(cut))))
            .collect();
        let of_shares = shares.variance(&terms);
        let variance = derived.variance + of_shares;
        // Without probes it is what it was, to the last digit.
        let freedom = match of_shares > 0.0 {
            true => {
                let squares =
                    derived.variance.powi(2) / derived.freedom + of_shares.powi(2) / shares.freedom;
                variance * variance / squares
            }
            false => derived.freedom,
        };
        let divided = Derived {
            variance,
            freedom,
            ..derived
        };
        divided.known(self.has_spread() && shares.has_spread)
    }
}
