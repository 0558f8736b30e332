//! Two-way analysis of times by segment and visit, on the logarithmic scale: what all segments of a visit have in common
//! is the visit's speed, what is left is of one loading.
//!
//! y = μ_s + u_v + e, with Var(u) = σ_u² and Var(e) = σ_l² + ω of each cell, where ω is what inferences alone explain.
//! Both components are estimated as Paule and Mandel (1982) do: each is what makes a weighted sum of squares as large as
//! it has degrees of freedom (DerSimonian and Kacker 2007). The speeds are best linear unbiased predictions, by
//! Henderson's mixed-model equations, from which the μ are eliminated; conjugate gradients solve what is left.

use std::collections::{BTreeMap, BTreeSet};

/// The robust time of one segment in one visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The place of the segment.
    pub(super) segment: usize,
    /// The place of the visit.
    pub(super) visit: usize,
    /// The logarithm of the time.
    pub(super) value: f64,
    /// The variance of it that the spread of inferences explains.
    pub(super) inference: f64,
}

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

/// Newton's method on a convex falling function, from its left end, converges in a few steps.
const MOST_STEPS: usize = 60;

/// What rounding may leave of sums that are nothing, and what keeps equations apart from singular ones, as a share.
const ROUNDING: f64 = 1e-9;

impl TwoWay {
    /// Analyses the cells of so many segments and visits.
    pub(super) fn of(cells: &[Cell], segments: usize, visits: usize) -> TwoWay {
        let count = cells.len() as f64;
        let parts = Parts::of(cells, segments, visits);
        let speed_freedom = visits as f64 - parts.count as f64;
        let freedom = count - segments as f64 - speed_freedom;
        let load_variance = match freedom > 0.0 {
            true => load_variance(cells, segments, visits, freedom),
            false => 0.0,
        };
        let model = Model::of(cells, segments, visits, load_variance);
        let free = model.speeds(None);
        // What the free speeds leave is no matter of speed.
        let left = model.weighted_squares(&model.residuals(&free));
        let speed_variance = speed_variance(&model, left + speed_freedom);
        let speeds = model.speeds(Some(speed_variance));
        let (mut effects, common_variance) = model.effects(&parts, &speeds, speed_variance);
        let residuals = model.residuals(&free);
        let spread = count - segments as f64;
        let mut cells_of = vec![0.0_f64; segments];
        for (cell, residual) in cells.iter().zip(&residuals) {
            let weight = model.weight(cell);
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
fn load_variance(cells: &[Cell], segments: usize, visits: usize, freedom: f64) -> f64 {
    let mut variance = 0.0;
    for _ in 0..MOST_STEPS {
        let model = Model::of(cells, segments, visits, variance);
        let residuals = model.residuals(&model.speeds(None));
        let (mut squares, mut slope) = (0.0, 0.0);
        for (cell, residual) in cells.iter().zip(&residuals) {
            let weight = model.weight(cell);
            squares += weight * residual * residual;
            slope += weight * weight * residual * residual;
        }
        let step = (squares - freedom) / slope;
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

/// σ_u² likewise: with it generalised least squares leaves a sum of squares of `expected`. Visits that have no segments in
/// common say nothing of it.
fn speed_variance(model: &Model<'_>, expected: f64) -> f64 {
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
        let step = (within + between - expected) / slope;
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

/// The cells with weights, from which the μ are eliminated.
struct Model<'a> {
    cells: &'a [Cell],
    load_variance: f64,
    /// The sum of weights of each segment, and its weighted mean.
    sums: Vec<f64>,
    means: Vec<f64>,
    /// The sum of weights of each visit.
    diagonal: Vec<f64>,
    /// What the cells of each visit deviate from their segments' means, weighted.
    moments: Vec<f64>,
}

impl Model<'_> {
    fn of(cells: &[Cell], segments: usize, visits: usize, load_variance: f64) -> Model<'_> {
        let mut model = Model {
            cells,
            load_variance,
            sums: vec![0.0; segments],
            means: vec![0.0; segments],
            diagonal: vec![0.0; visits],
            moments: vec![0.0; visits],
        };
        for cell in cells {
            let weight = model.weight(cell);
            model.sums[cell.segment] += weight;
            model.means[cell.segment] += weight * cell.value;
            model.diagonal[cell.visit] += weight;
        }
        for (mean, sum) in model.means.iter_mut().zip(&model.sums) {
            *mean /= sum;
        }
        for cell in cells {
            let deviation = cell.value - model.means[cell.segment];
            model.moments[cell.visit] += model.weight(cell) * deviation;
        }
        model
    }

    fn weight(&self, cell: &Cell) -> f64 {
        1.0 / (self.load_variance + cell.inference)
    }

    /// The speeds of the visits; without a variance as they are, else shrunk towards 0 as that says.
    fn speeds(&self, variance: Option<f64>) -> Vec<f64> {
        match variance {
            Some(variance) if variance <= 0.0 => vec![0.0; self.moments.len()],
            Some(variance) => self.solve(1.0 / variance, &self.moments),
            None => self.solve(0.0, &self.moments),
        }
    }

    /// (A + ridge) x, where A are the mixed-model equations of the speeds without the μ.
    fn product(&self, ridge: f64, x: &[f64]) -> Vec<f64> {
        let mut of_segments = vec![0.0; self.sums.len()];
        for cell in self.cells {
            of_segments[cell.segment] += self.weight(cell) * x[cell.visit];
        }
        let diagonal = self.diagonal.iter().zip(x);
        let mut product: Vec<f64> = diagonal.map(|(d, x)| (d + ridge) * x).collect();
        for cell in self.cells {
            let share = self.weight(cell) / self.sums[cell.segment];
            product[cell.visit] -= share * of_segments[cell.segment];
        }
        product
    }

    /// Solves (A + ridge) x = `right` by conjugate gradients with the diagonal as preconditioner. Without a ridge A has
    /// a constant for each part of the visits in its kernel. `right` has none of these, and with the least of ridges
    /// rounding does not bring them into the solution.
    fn solve(&self, ridge: f64, right: &[f64]) -> Vec<f64> {
        let heaviest = self.diagonal.iter().copied().fold(0.0, f64::max);
        let ridge = ridge.max(ROUNDING * heaviest);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let scaled = |residual: &[f64]| -> Vec<f64> {
            let diagonal = self.diagonal.iter().zip(residual);
            diagonal.map(|(d, r)| r / (d + ridge)).collect()
        };
        let mut x = vec![0.0; right.len()];
        let mut residual = right.to_vec();
        let mut direction = scaled(&residual);
        let mut power = dot(&residual, &direction);
        let enough = 1e-24 * power;
        for _ in 0..4 * right.len() + 10 {
            if power <= enough {
                break;
            }
            let product = self.product(ridge, &direction);
            let curvature = dot(&direction, &product);
            if curvature <= 0.0 {
                break;
            }
            let step = power / curvature;
            for (place, direction) in direction.iter().enumerate() {
                x[place] += step * direction;
                residual[place] -= step * product[place];
            }
            let next = scaled(&residual);
            let grown = dot(&residual, &next);
            for (direction, next) in direction.iter_mut().zip(&next) {
                *direction = next + grown / power * *direction;
            }
            power = grown;
        }
        x
    }

    /// What is left of each cell, given the speeds.
    fn residuals(&self, speeds: &[f64]) -> Vec<f64> {
        let values = self.values(speeds);
        let cells = self.cells.iter();
        cells
            .map(|cell| cell.value - values[cell.segment] - speeds[cell.visit])
            .collect()
    }

    fn weighted_squares(&self, residuals: &[f64]) -> f64 {
        let cells = self.cells.iter().zip(residuals);
        cells
            .map(|(cell, residual)| self.weight(cell) * residual * residual)
            .sum()
    }

    /// μ of each segment, given the speeds.
    fn values(&self, speeds: &[f64]) -> Vec<f64> {
        let mut values = self.means.clone();
        for cell in self.cells {
            let share = self.weight(cell) / self.sums[cell.segment];
            values[cell.segment] -= share * speeds[cell.visit];
        }
        values
    }

    /// The segments' values with their variances. The speeds give them the covariance D⁻¹N A⁻¹ N'D⁻¹ in Henderson's
    /// terms: with the same cells in all visits σ_u² / visits for every pair. The part of each segment's own is taken to
    /// first order, with the diagonal of A.
    fn effects(
        &self,
        parts: &Parts,
        speeds: &[f64],
        speed_variance: f64,
    ) -> (Vec<SegmentEffect>, f64) {
        let values = self.values(speeds);
        let mut segments: Vec<SegmentEffect> = values
            .iter()
            .zip(&self.sums)
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
        for cell in self.cells {
            let count = parts.segments[parts.of_visit[cell.visit]];
            mean[cell.visit] += self.weight(cell) / self.sums[cell.segment] / count;
        }
        let solved = self.solve(ridge, &mean);
        let own = |visit: usize, share: f64| {
            (share - mean[visit]).powi(2) / (self.diagonal[visit] + ridge)
        };
        let (mut common, mut none) = (vec![0.0; parts.count], vec![0.0; parts.count]);
        for (visit, &part) in parts.of_visit.iter().enumerate() {
            common[part] += mean[visit] * solved[visit];
            none[part] += own(visit, 0.0);
        }
        for (effect, &part) in segments.iter_mut().zip(&parts.of_segment) {
            effect.own_speed_variance = none[part];
        }
        for cell in self.cells {
            let share = self.weight(cell) / self.sums[cell.segment];
            segments[cell.segment].own_speed_variance +=
                own(cell.visit, share) - own(cell.visit, 0.0);
        }
        (segments, common.into_iter().fold(0.0, f64::max))
    }
}

/// The parts into which the visits fall that no segment connects, numbered from 0.
struct Parts {
    count: usize,
    /// In which part each visit is.
    of_visit: Vec<usize>,
    /// In which part each segment is.
    of_segment: Vec<usize>,
    /// How many segments each part has.
    segments: Vec<f64>,
}

impl Parts {
    fn of(cells: &[Cell], segments: usize, visits: usize) -> Parts {
        let mut joined: Vec<usize> = (0..visits).collect();
        fn root(joined: &mut [usize], mut visit: usize) -> usize {
            while joined[visit] != visit {
                joined[visit] = joined[joined[visit]];
                visit = joined[visit];
            }
            visit
        }
        let mut first_of: Vec<Option<usize>> = vec![None; segments];
        for cell in cells {
            let first = *first_of[cell.segment].get_or_insert(cell.visit);
            let (one, other) = (root(&mut joined, first), root(&mut joined, cell.visit));
            joined[one] = other;
        }
        let roots: Vec<usize> = (0..visits).map(|visit| root(&mut joined, visit)).collect();
        let numbers: BTreeMap<usize, usize> = (roots.iter().copied().collect::<BTreeSet<_>>())
            .into_iter()
            .zip(0..)
            .collect();
        let of_visit: Vec<usize> = roots.iter().map(|root| numbers[root]).collect();
        let of_segment: Vec<usize> = first_of
            .into_iter()
            .map(|first| first.map_or(0, |visit| of_visit[visit]))
            .collect();
        let mut of_parts = vec![0.0; numbers.len()];
        for &part in &of_segment {
            of_parts[part] += 1.0;
        }
        Parts {
            count: numbers.len(),
            of_visit,
            of_segment,
            segments: of_parts,
        }
    }
}
