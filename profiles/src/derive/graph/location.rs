//! One segment's samples in one number: Tukey's biweight, which a few disturbed samples cannot move.
//!
//! A median wastes a third of the samples (its efficiency is 0.64); the biweight with the constant
//! below has 0.99 and gives samples that lie far off no weight at all.

/// Samples further off than this many standard deviations do not count. At 7 the biweight loses 1 %
/// against the mean on normal noise, and a disturbance of 1.5 times is ignored up to 6 % noise.
const REJECTION: f64 = 7.0;

/// Turns a median absolute deviation into the standard deviation of normal samples.
pub(super) const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// The reweighting contracts by an order of magnitude per round.
const ROUNDS: usize = 50;

/// Below this many samples their own spread says too little to widen what counts as near.
const OWN_SPREAD_FROM: usize = 5;

/// The place of some samples and what it is worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    /// Where the samples lie.
    pub(super) place: f64,
    /// How many undisturbed samples it is worth: the place's variance is `variance` over this.
    pub(super) count: f64,
    /// The variance of one undisturbed sample; `None` for a single one.
    pub(super) variance: Option<f64>,
}

/// The biweight location of `samples`, which scatter with a standard deviation of about 1.
///
/// Samples that scatter more widely than that are judged by their own spread, not thrown away.
pub(super) fn biweight(samples: &[f64]) -> Option<Location> {
    biweight_from(median(samples)?, samples)
}

/// The same of a few samples of something of which others were taken as well, which lie around `usual`: that decides
/// which of two samples is the disturbed one.
pub(super) fn biweight_near(samples: &[f64], usual: f64) -> Option<Location> {
    if samples.len() >= OWN_SPREAD_FROM {
        return biweight(samples);
    }
    // A median of samples that agree stays among them, however far from the usual place.
    let mut start = match samples.len() % 2 {
        0 => median(&samples.iter().copied().chain([usual]).collect::<Vec<f64>>())?,
        _ => median(samples)?,
    };
    if samples
        .iter()
        .all(|sample| (sample - start).abs() >= REJECTION)
    {
        let distance = |sample: &f64| (sample - usual).abs();
        let mut nearest = samples.iter().copied();
        start = nearest.find(|one| samples.iter().all(|other| distance(one) <= distance(other)))?;
    }
    biweight_from(start, samples)
}

fn biweight_from(start: f64, samples: &[f64]) -> Option<Location> {
    let distances: Vec<f64> = samples.iter().map(|x| (x - start).abs()).collect();
    let own = match samples.len() {
        0..OWN_SPREAD_FROM => 0.0,
        _ => MAD_TO_SIGMA * median(&distances)?,
    };
    let reach = REJECTION * own.max(1.0);
    let mut place = start;
    for _ in 0..ROUNDS {
        let (mut weights, mut moments) = (0.0, 0.0);
        for &sample in samples {
            let weight = weight(sample - place, reach);
            weights += weight;
            moments += weight * (sample - place);
        }
        if weights <= 0.0 {
            break;
        }
        let step = moments / weights;
        place += step;
        if step.abs() < 1e-12 * reach {
            break;
        }
    }
    // The variance of an M-estimate is Σψ² / (Σψ')²: Mosteller and Tukey 1977, the biweight midvariance.
    let (mut slopes, mut squares) = (0.0, 0.0);
    for &sample in samples {
        let residual = sample - place;
        let u2 = (residual / reach).powi(2);
        if u2 < 1.0 {
            slopes += (1.0 - u2) * (1.0 - 5.0 * u2);
            squares += (residual * (1.0 - u2).powi(2)).powi(2);
        }
    }
    let count = slopes.clamp(1.0, samples.len() as f64);
    Some(Location {
        place,
        count,
        variance: (count > 1.0).then(|| squares / (count - 1.0)),
    })
}

fn weight(residual: f64, reach: f64) -> f64 {
    let u2 = (residual / reach).powi(2);
    if u2 < 1.0 { (1.0 - u2).powi(2) } else { 0.0 }
}

/// The middle of `values`, in any order; `None` when there are none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evenly spaced quantiles of the normal distribution: samples without chance.
    fn normal(count: usize) -> Vec<f64> {
        use statrs::distribution::{ContinuousCDF, Normal};
        let normal = Normal::standard();
        (0..count)
            .map(|k| normal.inverse_cdf((k as f64 + 0.5) / count as f64))
            .collect()
    }

    #[test]
    fn normal_samples_are_worth_nearly_all_of_themselves() {
        let location = biweight(&normal(1_000)).expect("samples");
        let variance = location.variance.expect("many samples") / location.count;
        assert!(location.place.abs() < 1e-9);
        assert!((1.0 / 1_000.0 / variance) > 0.975, "{variance}");
    }

    #[test]
    fn a_fifth_of_the_samples_far_off_moves_nothing() {
        let mut samples = normal(100);
        let clean = biweight(&samples[..80]).expect("samples");
        for sample in &mut samples[80..] {
            *sample = 60.0;
        }
        let disturbed = biweight(&samples).expect("samples");
        assert!((disturbed.place - clean.place).abs() < 0.02);
        assert!((disturbed.count / clean.count - 1.0).abs() < 0.05);
    }

    #[test]
    fn samples_wider_than_expected_still_count() {
        let wide: Vec<f64> = normal(101).iter().map(|x| 20.0 * x).collect();
        let location = biweight(&wide).expect("samples");
        let variance = location.variance.expect("many samples");
        assert!(location.count > 80.0 && variance > 300.0, "{location:?}");
    }

    #[test]
    fn equal_samples_are_their_own_place() {
        let location = biweight(&[5.0; 4]).expect("samples");
        assert_eq!((location.place, location.variance), (5.0, Some(0.0)));
        assert!(biweight(&[]).is_none());
        assert_eq!(biweight(&[3.0]).expect("one").variance, None);
    }
}
