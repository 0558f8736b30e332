//! Numbers that follow from the times of segments, and their intervals.

use super::quantile::{t_95, t_at_four_sigma};
use crate::summary::Estimate;

/// A linear combination of times with what is known about its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    pub(super) value_ns: f64,
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

impl Derived {
    /// With its 95 % interval, if its variance is `known`.
    pub(super) fn estimate(&self, known: bool) -> Estimate {
        let half_width = known.then(|| t_95(self.freedom) * self.variance.sqrt());
        Estimate::around(self.value_ns, half_width)
    }

    /// The same of something that cannot be less than nothing. Where the interval lies below zero by chance, that is by no
    /// more than is said of suspects, it is widened until it ends at zero: of many layers that take next to no time, one in
    /// forty would have such an interval.
    pub(super) fn estimate_of_no_less_than_nothing(&self, known: bool) -> Estimate {
        let deviation = self.variance.sqrt();
        let by_chance = self.value_ns + t_at_four_sigma(self.freedom) * deviation >= 0.0;
        let least = if by_chance { -self.value_ns } else { 0.0 };
        let half_width = known.then(|| (t_95(self.freedom) * deviation).max(least));
        Estimate::around(self.value_ns, half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_lies_below_zero_by_chance_is_widened_to_zero() {
        let ends = |value_ns| {
            let derived = Derived {
                value_ns,
                variance: 100.0 * 100.0,
                freedom: 1e6,
            };
            let estimate = derived.estimate_of_no_less_than_nothing(true);
            let (low, high) = estimate.ci95.expect("a known variance");
            (low.as_nanos(), high.as_nanos())
        };
        assert_eq!(ends(1_000.0), (804, 1_196));
        assert_eq!(ends(-100.0), (-296, 96));
        assert_eq!(ends(-390.0), (-780, 0));
        assert_eq!(ends(-410.0), (-606, -214));
    }
}
