//! How sure a plan is to be of its limit.

use statrs::distribution::{ContinuousCDF, Normal};

/// The confidence of published intervals.
const PUBLISHED: f64 = 0.95;

/// How often an interval is to hold what it is about, as a share: above 0, below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

/// A share that is no confidence.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the confidence is {0}; it must be above 0 and below 1, such as 0.95")]
pub struct ConfidenceError(f64);

impl Confidence {
    /// That of published intervals: 95 %.
    pub const USUAL: Confidence = Confidence(PUBLISHED);

    /// The confidence of so large a share.
    pub fn of(share: f64) -> Result<Confidence, ConfidenceError> {
        match share > 0.0 && share < 1.0 {
            true => Ok(Confidence(share)),
            false => Err(ConfidenceError(share)),
        }
    }

    /// The share of intervals that hold what they are about.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The share in per cent as people write it, without the last digits of binary fractions.
    pub fn percent(self) -> f64 {
        (self.0 * 1e6).round() / 1e4
    }

    /// By what the half-width of a published 95 % interval is multiplied to give one of this confidence: the ratio of the
    /// normal distribution's quantiles.
    pub(crate) fn stretch(self) -> f64 {
        if self == Confidence::USUAL {
            return 1.0;
        }
        let quantile = |share: f64| Normal::standard().inverse_cdf(0.5 + share / 2.0);
        quantile(self.0) / quantile(PUBLISHED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surer_interval_is_wider() {
        let stretch = |share| Confidence::of(share).expect("a share").stretch();
        assert_eq!(stretch(0.95), 1.0);
        // 0.674490, 1.959964 and 2.575829 standard deviations.
        assert!((stretch(0.5) - 0.344_134).abs() < 1e-5);
        assert!((stretch(0.99) - 1.314_223).abs() < 1e-5);
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for share in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            let error = Confidence::of(share).expect_err("no share").to_string();
            assert!(error.contains("above 0 and below 1"), "{error}");
        }
    }
}
