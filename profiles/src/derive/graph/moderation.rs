//! How far each segment's own variance is to be trusted against that of all segments together.
//!
//! Few samples tell their own variance badly; all segments together tell a common one well, if there is
//! one. The variances' own scatter shows whether there is (empirical Bayes, Smyth 2004 §6.2; the scatter
//! between segments by the moments of DerSimonian and Laird).

use statrs::function::gamma::digamma;

/// A variance of 0 has no logarithm; a ten-thousandth of what is expected is as good as none.
const LEAST_VARIANCE: f64 = 1e-4;

/// The common variance, and how many observations' worth of trust it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    variance: f64,
    freedom: f64,
    /// The degrees of freedom of all segments together: no variance is known better than that.
    total: f64,
}

impl Prior {
    /// The prior that these variances with their degrees of freedom support. `None` when none is known.
    pub(super) fn of(variances: &[(f64, f64)]) -> Option<Prior> {
        let known: Vec<(f64, f64)> = variances
            .iter()
            .copied()
            .filter(|&(_, freedom)| freedom > 0.0)
            .collect();
        let total: f64 = known.iter().map(|(_, freedom)| freedom).sum();
        if total <= 0.0 {
            return None;
        }
        let pooled = known.iter().map(|(v, freedom)| v * freedom).sum::<f64>() / total;
        let common = Prior {
            variance: pooled,
            freedom: f64::INFINITY,
            total,
        };
        // The logarithm of each variance, freed of the bias that its degrees of freedom give it, with the
        // inverse of its own variance as its weight.
        let logarithms: Vec<(f64, f64)> = known
            .iter()
            .map(|&(variance, freedom)| {
                let half = freedom / 2.0;
                let logarithm = variance.max(LEAST_VARIANCE).ln();
                (logarithm - digamma(half) + half.ln(), 1.0 / trigamma(half))
            })
            .collect();
        let weights: f64 = logarithms.iter().map(|(_, w)| w).sum();
        let mean = logarithms.iter().map(|(e, w)| e * w).sum::<f64>() / weights;
        let scatter: f64 = logarithms.iter().map(|(e, w)| w * (e - mean).powi(2)).sum();
        let squares: f64 = logarithms.iter().map(|(_, w)| w * w).sum();
        let excess = scatter - (logarithms.len() as f64 - 1.0);
        let between = excess / (weights - squares / weights);
        if between.is_nan() || between <= 0.0 {
            return Some(common);
        }
        let half = inverse_trigamma(between);
        Some(Prior {
            variance: (mean + digamma(half) - half.ln()).exp(),
            freedom: 2.0 * half,
            total,
        })
    }

    /// The variance of a segment whose own is `variance` with `freedom` degrees, and the degrees of the
    /// result.
    pub(super) fn moderate(&self, variance: f64, freedom: f64) -> (f64, f64) {
        if self.freedom.is_infinite() {
            return (self.variance, self.total);
        }
        let freedoms = self.freedom + freedom;
        let moderated = (self.freedom * self.variance + freedom * variance) / freedoms;
        (moderated, freedoms.min(self.total))
    }
}

/// The second derivative of ln Γ: by its recurrence up to 6 and its asymptotic series from there
/// (Abramowitz and Stegun 6.4.6 and 6.4.12). statrs has none.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    sum + 1.0 / x + r / 2.0 + r / x * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r / 30.0)))
}

/// Solves trigamma(x) = y for y > 0, by Newton's method on 1/trigamma, which is convex (Smyth 2004,
/// appendix).
fn inverse_trigamma(y: f64) -> f64 {
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..50 {
        let value = trigamma(x);
        // The slope by a central difference; only the speed of the iteration depends on it.
        let step = 1e-4 * x;
        let slope = (trigamma(x + step) - trigamma(x - step)) / (2.0 * step);
        let change = value * (1.0 - value / y) / slope;
        x += change;
        if -change / x < 1e-10 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigamma_has_its_known_values() {
        let pi2 = std::f64::consts::PI.powi(2);
        for (x, expected) in [
            (1.0, pi2 / 6.0),
            (0.5, pi2 / 2.0),
            (10.0, 0.105_166_335_681_685_8),
        ] {
            assert!((trigamma(x) / expected - 1.0).abs() < 1e-9, "{x}");
        }
        for y in [1e-4, 0.02, 1.0, 30.0] {
            assert!(
                (trigamma(inverse_trigamma(y)) / y - 1.0).abs() < 1e-6,
                "{y}"
            );
        }
    }

    #[test]
    fn variances_that_agree_are_pooled() {
        let prior = Prior::of(&[(1.0, 20.0), (0.9, 20.0), (1.1, 40.0)]).expect("known");
        let (variance, freedom) = prior.moderate(0.9, 20.0);
        assert!((variance - 1.025).abs() < 1e-12, "{variance}");
        assert_eq!(freedom, 80.0);
    }

    #[test]
    fn variances_that_disagree_keep_most_of_their_own() {
        let spread: Vec<(f64, f64)> = (0..20)
            .map(|index| (4.0_f64.powi(index % 4), 100.0))
            .collect();
        let prior = Prior::of(&spread).expect("known");
        let (variance, _) = prior.moderate(64.0, 100.0);
        assert!(variance > 55.0, "{variance}");
    }

    #[test]
    fn nothing_is_known_from_single_samples() {
        assert!(Prior::of(&[(0.0, 0.0), (0.0, 0.0)]).is_none());
    }
}
