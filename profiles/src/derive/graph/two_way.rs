//! Two-way analysis of times by segment and visit, on the logarithmic scale: what all segments of a visit have in common
//! is the visit's speed, what is left is of one loading.
//!
//! y = μ_s + u_v + e, with Var(u) = σ_u² and Var(e) = σ_l² + ω of each cell, where ω is what inferences alone explain.
//! Both components are estimated as Paule and Mandel (1982) do: each is what makes a weighted sum of squares as large as
//! it has degrees of freedom (DerSimonian and Kacker 2007). The speeds are best linear unbiased predictions.

use super::cell::Cell;
use super::mixed_model::MixedModel;
use super::parts::Parts;

/// What the cells say.
#[derive(Clone, Debug)]
pub(super) struct TwoWay {
    /// σ_l²: the variance between loadings.
    pub(super) load_variance: f64,
    /// From how many independent differences that is known.
    pub(super) load_freedom: f64,
    /// σ_u²: the variance between the speeds of visits.
    pub(super) speed_variance: f64,
    /// From how many independent differences that is known.
    pub(super) speed_freedom: f64,
    /// The speed of each visit: the logarithm of how much slower than the average it was.
    pub(super) speeds: Vec<f64>,
    /// What is said of each segment.
    pub(super) segments: Vec<SegmentEffect>,
    /// The part of the variance of every μ that all of them have in common. Where the visits fall into parts that no
    /// segment connects, it is common to those of one part alone; this is that of the part of which it is largest.
    pub(super) common_variance: f64,
}

/// What the cells say of one segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentEffect {
    /// μ: the logarithm of the segment's time at the average speed.
    pub(super) value: f64,
    /// The sum of the weights of its cells: the inverse of the variance that loads and inferences give μ.
    pub(super) weight: f64,
    /// The variance of μ that the speeds of just its visits give it, beyond what all segments have in common
    /// that they connect.
    pub(super) own_speed_variance: f64,
    /// The sum of the squares of its residuals in units of their expected variance, over its degrees of freedom.
    pub(super) scatter: f64,
    /// The degrees of freedom of `scatter`.
    pub(super) freedom: f64,
}

/// Newton's method converges in a few steps.
const MOST_STEPS: usize = 60;

/// What rounding may leave of sums that are nothing, as a share.
const ROUNDING: f64 = 1e-9;

impl TwoWay {
    /// Analyses the cells of so many segments and visits.
    pub(super) fn of(cells: &[Cell], segments: usize, visits: usize) -> TwoWay {
        let count = cells.len() as f64;
        let parts = Parts::of(cells, segments, visits);
        let speed_freedom = visits as f64 - parts.count as f64;
        let freedom = count - segments as f64 - speed_freedom;
        let load_variance = match freedom > 0.0 {
            true => load_variance(cells, &parts, segments, freedom),
            false => 0.0,
        };
        let model = MixedModel::of(cells, &parts, segments, load_variance);
        let free = model.speeds(None);
        // What the free speeds leave is no matter of speed.
        let left = model.weighted_squares(&model.residuals(&free));
        let speed_variance = speed_variance(&model, left + speed_freedom);
        let speeds = model.speeds(Some(speed_variance));
        let (mut effects, common_variance) = effects(&model, &speeds, speed_variance);
        let residuals = model.residuals(&free);
        let spread = count - segments as f64;
        let mut cells_of = vec![0.0_f64; segments];
        for ((cell, weight), residual) in cells.iter().zip(&model.weights).zip(&residuals) {
            effects[cell.segment].scatter += weight * residual * residual;
            cells_of[cell.segment] += 1.0;
        }
        for (effect, cells) in effects.iter_mut().zip(&cells_of) {
            // Each segment bears its share of what the speeds took.
            effect.freedom = match spread > 0.0 && freedom > 0.0 {
                true => (cells - 1.0) * freedom / spread,
                false => 0.0,
            };
            effect.scatter = match effect.freedom > 0.0 {
                true => effect.scatter / effect.freedom,
                false => 0.0,
            };
        }
        TwoWay {
            load_variance,
            load_freedom: freedom.max(0.0),
            speed_variance,
            speed_freedom,
            speeds: free,
            segments: effects,
            common_variance,
        }
    }
}

/// σ_l² by Paule and Mandel: with it the residuals of the two-way fit are as large as they should be.
fn load_variance(cells: &[Cell], parts: &Parts, segments: usize, freedom: f64) -> f64 {
    let mut variance = 0.0;
    for _ in 0..MOST_STEPS {
        let model = MixedModel::of(cells, parts, segments, variance);
        let residuals = model.residuals(&model.speeds(None));
        let (mut squares, mut slope) = (0.0, 0.0);
        for (weight, residual) in model.weights.iter().zip(&residuals) {
            squares += weight * residual * residual;
            slope += weight * weight * residual * residual;
        }
        let step = newton(squares, freedom, slope);
        if !step.is_finite() || (variance == 0.0 && step <= 0.0) {
            return variance;
        }
        variance = (variance + step).max(0.0);
        if step.abs() <= 1e-12 * variance {
            break;
        }
    }
    variance
}

/// By how much a variance should grow for a sum of squares that falls with it, with this slope, to be as `expected`. The sum
/// is one of c / (variance + λ), so that its inverse is nearly a straight line: Newton's method takes the inverse, and comes
/// near from below however far off it begins.
fn newton(squares: f64, expected: f64, slope: f64) -> f64 {
    (squares - expected) / slope * (squares / expected)
}

/// σ_u² likewise: with it generalised least squares leaves a sum of squares of `expected`. Visits that have no segments in
/// common say nothing of it.
fn speed_variance(model: &MixedModel<'_>, expected: f64) -> f64 {
    let size: f64 = model.diagonal.iter().sum();
    let moved: f64 = model.moments.iter().map(|moment| moment * moment).sum();
    if moved <= ROUNDING * size {
        return 0.0;
    }
    let mut variance = 0.0;
    for _ in 0..MOST_STEPS {
        let (speeds, pull): (Vec<f64>, Vec<f64>) = match variance > 0.0 {
            false => (vec![0.0; model.moments.len()], model.moments.clone()),
            true => {
                let speeds = model.speeds(Some(variance));
                let pull = speeds.iter().map(|speed| speed / variance).collect();
                (speeds, pull)
            }
        };
        let residuals = model.residuals(&speeds);
        let within = model.weighted_squares(&residuals);
        let between: f64 = speeds
            .iter()
            .zip(&pull)
            .map(|(speed, pull)| speed * pull)
            .sum();
        let slope: f64 = pull.iter().map(|pull| pull * pull).sum();
        let step = newton(within + between, expected, slope);
        if !step.is_finite() || (variance == 0.0 && step <= 0.0) {
            return variance;
        }
        variance = (variance + step).max(0.0);
        if step.abs() <= 1e-12 * variance {
            break;
        }
    }
    variance
}

/// The segments' values with their variances. The speeds give them the covariance D⁻¹N A⁻¹ N'D⁻¹ in Henderson's
/// terms: with the same cells in all visits σ_u² / visits for every pair. The part of each segment's own is taken to
/// first order, with the diagonal of A.
fn effects(
    model: &MixedModel<'_>,
    speeds: &[f64],
    speed_variance: f64,
) -> (Vec<SegmentEffect>, f64) {
    let parts = model.parts;
    let values = model.values(speeds);
    let mut segments: Vec<SegmentEffect> = values
        .iter()
        .zip(&model.sums)
        .map(|(&value, &weight)| SegmentEffect {
            value,
            weight,
            ..SegmentEffect::default()
        })
        .collect();
    if speed_variance <= 0.0 {
        return (segments, 0.0);
    }
    let ridge = 1.0 / speed_variance;
    let mut mean = vec![0.0; speeds.len()];
    for (cell, share) in model.cells.iter().zip(&model.shares) {
        let count = parts.segments[parts.of_visit[cell.visit]];
        mean[cell.visit] += share / count;
    }
    let solved = model.solve(ridge, &mean);
    let own =
        |visit: usize, share: f64| (share - mean[visit]).powi(2) / (model.diagonal[visit] + ridge);
    let (mut common, mut none) = (vec![0.0; parts.count], vec![0.0; parts.count]);
    for (visit, &part) in parts.of_visit.iter().enumerate() {
        common[part] += mean[visit] * solved[visit];
        none[part] += own(visit, 0.0);
    }
    for (effect, &part) in segments.iter_mut().zip(&parts.of_segment) {
        effect.own_speed_variance = none[part];
    }
    for (cell, &share) in model.cells.iter().zip(&model.shares) {
        segments[cell.segment].own_speed_variance += own(cell.visit, share) - own(cell.visit, 0.0);
    }
    (segments, common.into_iter().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of a machine without noise but for the speeds of its visits, rounded to nanoseconds: weights are 10^12 times what
    /// the speeds' variance is.
    #[test]
    fn where_only_speeds_differ_their_variance_is_in_every_time() {
        let speeds = [0.03_f64, -0.05, 0.01, 0.02, -0.02, 0.06];
        let cells: Vec<Cell> = (0..20)
            .flat_map(|segment| {
                let time_ns = 2e5 * (segment as f64 + 1.0);
                speeds.iter().enumerate().map(move |(visit, speed)| Cell {
                    segment,
                    visit,
                    value: (time_ns * speed.exp()).round().ln(),
                    inference: (0.3 / time_ns).powi(2),
                })
            })
            .collect();
        let found = TwoWay::of(&cells, 20, speeds.len());
        let count = speeds.len() as f64;
        let mean = speeds.iter().sum::<f64>() / count;
        let squares: f64 = speeds.iter().map(|speed| (speed - mean).powi(2)).sum();
        let variance = squares / (count - 1.0);
        assert!(
            (found.speed_variance / variance - 1.0).abs() < 1e-3,
            "{found:?}"
        );
        let common = variance / count;
        assert!(
            (found.common_variance / common - 1.0).abs() < 1e-3,
            "{found:?}"
        );
        for (speed, planted) in found.speeds.iter().zip(&speeds) {
            assert!((speed - (planted - mean)).abs() < 1e-5, "{found:?}");
        }
    }
}
