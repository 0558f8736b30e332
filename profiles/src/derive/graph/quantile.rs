//! The few quantiles and tails that intervals and tests need, from statrs.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use crate::summary::Z_95;

/// From here on Student's t is so close to normal that two terms of its expansion give ten digits, and
/// the continued fraction behind the exact quantile becomes slow.
const EXPAND_FROM: f64 = 200.0;

/// The quantile of Student's t that leaves 2.5 % in each tail.
pub(crate) fn t_95(freedom: f64) -> f64 {
    t_quantile(Z_95, 0.975, freedom)
}

/// The quantile that leaves as much beyond it as four standard deviations of a normal do.
pub(super) fn t_at_four_sigma(freedom: f64) -> f64 {
    t_quantile(4.0, Normal::standard().cdf(4.0), freedom)
}

/// The quantile that is exceeded, either way, once in a thousand.
pub(super) fn t_at_one_in_a_thousand(freedom: f64) -> f64 {
    t_quantile(3.290_526_731_491_926, 0.9995, freedom)
}

fn t_quantile(z: f64, probability: f64, freedom: f64) -> f64 {
    if freedom < EXPAND_FROM
        && let Ok(student) = StudentsT::new(0.0, 1.0, freedom)
    {
        return student.inverse_cdf(probability);
    }
    // Abramowitz and Stegun 26.7.5.
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / (freedom * freedom)
}

/// How probable a value of F at least as large is: `mean_square` over a variance known to `freedom`
/// degrees, with `terms` squares in the mean.
pub(super) fn f_tail(mean_square: f64, terms: f64, freedom: f64) -> f64 {
    FisherSnedecor::new(terms, freedom.min(1e6)).map_or(1.0, |f| f.sf(mean_square.max(0.0)))
}

/// How probable a deviation at least as large, either way, is for Student's t.
pub(crate) fn two_sided_p_student(deviations: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.clamp(1.0, 1e6))
        .map_or(1.0, |student| 2.0 * student.sf(deviations.abs()))
}

/// How probable a deviation at least as large, upwards, is for Student's t.
pub(crate) fn upper_p_student(deviations: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.clamp(1.0, 1e6)).map_or(1.0, |student| student.sf(deviations))
}

/// The quantile of Student's t that is exceeded with this probability.
pub(crate) fn upper_t_quantile(probability: f64, freedom: f64) -> f64 {
    t_quantile(
        normal_quantile(1.0 - probability),
        1.0 - probability,
        freedom,
    )
}

/// The quantile of the normal distribution that is not exceeded with this probability.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed tables have them.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.3027),
            (5.0, 2.5706),
            (30.0, 2.0423),
            (199.0, 1.97196),
            (1_000.0, 1.96234),
            (f64::INFINITY, 1.95996),
        ] {
            let t = t_95(freedom);
            assert!((t / expected - 1.0).abs() < 1e-4, "{freedom}: {t}");
        }
        assert!((t_at_four_sigma(f64::INFINITY) - 4.0).abs() < 1e-9);
        assert!(t_at_four_sigma(20.0) > 5.0);
        assert!((f_tail(2.0, 4.0, 1e9) - 0.091_578).abs() < 1e-5);
        assert!((two_sided_p_student(1.959_964, f64::INFINITY) - 0.05).abs() < 1e-6);
        assert!((two_sided_p_student(-2.570_6, 5.0) - 0.05).abs() < 1e-5);
        assert!((upper_p_student(2.570_6, 5.0) - 0.025).abs() < 1e-5);
        assert!((upper_p_student(-2.570_6, 5.0) - 0.975).abs() < 1e-5);
        assert!((upper_t_quantile(0.025, 5.0) - 2.570_6).abs() < 1e-4);
        assert!((upper_t_quantile(0.025, 1e9) - 1.959_964).abs() < 1e-5);
    }
}
