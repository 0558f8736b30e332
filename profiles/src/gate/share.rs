//! How well a share is known of which so many were counted.

use statrs::distribution::{Beta, ContinuousCDF};

/// The 95 % interval of the share of which `count` of `all` were seen, exact for independent ones (Clopper and Pearson 1934).
pub fn share_ci95(count: usize, all: usize) -> (f64, f64) {
    // One of them is no distribution where none, or all, were seen: the interval ends at 0, or at 1.
    let quantile = |seen: usize, others: usize, probability: f64| {
        let beta = Beta::new(seen as f64, others as f64).ok()?;
        Some(beta.inverse_cdf(probability))
    };
    let missed = all.saturating_sub(count);
    (
        quantile(count, missed + 1, 0.025).unwrap_or(0.0),
        quantile(count + 1, missed, 0.975).unwrap_or(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 of 10 is 1 - 0.025^(1/10); the others are as printed tables have them.
    #[test]
    fn intervals_of_shares_are_exact() {
        for (count, all, low, high) in [
            (0, 10, 0.0, 0.308_497),
            (1, 20, 0.001_265, 0.248_733),
            (5, 10, 0.187_086, 0.812_914),
            (10, 10, 0.691_503, 1.0),
        ] {
            let found = share_ci95(count, all);
            assert!((found.0 - low).abs() < 1e-5, "{count} of {all}: {found:?}");
            assert!((found.1 - high).abs() < 1e-5, "{count} of {all}: {found:?}");
        }
    }
}
