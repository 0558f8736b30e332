//! The line t = L + S/B through transfers, and the sandwich estimate of how sure it is.

use crate::units::{Bytes, Nanos};

/// Huber's constant: 95 % efficient where the noise is normal.
const HUBER: f64 = 1.345;

/// From the median absolute deviation to the standard deviation of normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Enough for convergence to far below a nanosecond; each round costs microseconds.
const ROUNDS: usize = 30;

/// One transfer: its size, how long it took, and on which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedTransfer {
    /// S.
    pub bytes: Bytes,
    /// t, from the first write to the acknowledgement.
    pub duration: Nanos,
    /// The connection that it was timed on, counted from 0.
    pub connection: u32,
}

/// The transfers of one size.
struct OfSize {
    members: Vec<usize>,
    /// The median of their times.
    typical: f64,
}

fn by_size(transfers: &[TimedTransfer]) -> Vec<OfSize> {
    let mut groups = std::collections::BTreeMap::<Bytes, Vec<usize>>::new();
    for (place, transfer) in transfers.iter().enumerate() {
        groups.entry(transfer.bytes).or_default().push(place);
    }
    let time = |&place: &usize| transfers[place].duration.as_nanos() as f64;
    groups
        .into_values()
        .map(|members| OfSize {
            // A time of nothing has no logarithm, and no clock is finer.
            typical: median(members.iter().map(time).collect()).max(1.0),
            members,
        })
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// A symmetric matrix of two rows, with its inverse.
#[derive(Clone, Copy, Default)]
pub(super) struct Symmetric {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) d: f64,
}

impl Symmetric {
    fn add(&mut self, weight: f64, size: f64) {
        self.a += weight;
        self.b += weight * size;
        self.d += weight * size * size;
    }

    fn inverse(self) -> Symmetric {
        let determinant = self.a * self.d - self.b * self.b;
        Symmetric {
            a: self.d / determinant,
            b: -self.b / determinant,
            d: self.a / determinant,
        }
    }

    /// (1, size) M (1, size)ᵀ.
    fn around(self, size: f64) -> f64 {
        self.a + 2.0 * self.b * size + self.d * size * size
    }
}

/// t = intercept + slope x S, in nanoseconds and bytes.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) intercept: f64,
    pub(super) slope: f64,
}

fn point(transfer: TimedTransfer) -> (f64, f64) {
    let size = transfer.bytes.as_bytes() as f64;
    (size, transfer.duration.as_nanos() as f64)
}

impl Line {
    /// Huber's M-estimate; no numbers where all transfers are of one size.
    pub(super) fn fit(transfers: &[TimedTransfer]) -> Line {
        let sizes = by_size(transfers);
        let mut line = Line::through(transfers, |_, typical| 1.0 / typical.powi(2), &sizes);
        for _ in 0..ROUNDS {
            let scales = line.scales(transfers, &sizes);
            let weight = |residual: f64, scale: f64| {
                let huber = (HUBER * scale / residual.abs()).min(1.0);
                huber / scale.powi(2)
            };
            line = line.improved(transfers, &sizes, &scales, weight);
        }
        line
    }

    /// The least squares line with a weight for each transfer, which depends on it and its size's typical time.
    fn through(
        transfers: &[TimedTransfer],
        weight: impl Fn(usize, f64) -> f64,
        sizes: &[OfSize],
    ) -> Line {
        let mut normal = Symmetric::default();
        let (mut right, mut right_size) = (0.0, 0.0);
        for of_size in sizes {
            for &place in &of_size.members {
                let (size, time) = point(transfers[place]);
                let weight = weight(place, of_size.typical);
                normal.add(weight, size);
                right += weight * time;
                right_size += weight * time * size;
            }
        }
        let inverse = normal.inverse();
        Line {
            intercept: inverse.a * right + inverse.b * right_size,
            slope: inverse.b * right + inverse.d * right_size,
        }
    }

    fn residual(&self, transfer: TimedTransfer) -> f64 {
        let (size, time) = point(transfer);
        time - self.intercept - self.slope * size
    }

    /// The standard deviation of each size's residuals: a power of its typical time, fitted to all sizes at once, since
    /// ten transfers alone tell it badly.
    fn scales(&self, transfers: &[TimedTransfer], sizes: &[OfSize]) -> Vec<f64> {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .map(|of_size| {
                let distances = of_size.members.iter();
                let distances = distances.map(|&place| self.residual(transfers[place]).abs());
                // No clock is finer than a nanosecond.
                let spread = (MAD_TO_SIGMA * median(distances.collect())).max(1.0);
                (of_size.typical.ln(), spread.ln())
            })
            .collect();
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let joint: f64 = points
            .iter()
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let power = if spread > 0.0 {
            (joint / spread).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let shape: Vec<f64> = sizes.iter().map(|it| it.typical.powf(power)).collect();
        let scaled = sizes.iter().zip(&shape).flat_map(|(of_size, shape)| {
            let members = of_size.members.iter();
            members.map(move |&place| self.residual(transfers[place]).abs() / shape)
        });
        let factor = MAD_TO_SIGMA * median(scaled.collect());
        shape
            .iter()
            .map(|shape| (shape * factor).max(1.0))
            .collect()
    }

    /// The next line of iterated least squares; `weight` is told a residual and its scale.
    fn improved(
        &self,
        transfers: &[TimedTransfer],
        sizes: &[OfSize],
        scales: &[f64],
        weight: impl Fn(f64, f64) -> f64,
    ) -> Line {
        let mut weights = vec![0.0; transfers.len()];
        for (of_size, &scale) in sizes.iter().zip(scales) {
            for &place in &of_size.members {
                weights[place] = weight(self.residual(transfers[place]), scale);
            }
        }
        Line::through(transfers, |place, _| weights[place], sizes)
    }

    /// The covariance of intercept and slope, as if all were measured independently: the sandwich estimate, in which each residual is divided by what the fit
    /// leaves of it (HC3).
    pub(super) fn covariance(&self, transfers: &[TimedTransfer]) -> Symmetric {
        let sizes = by_size(transfers);
        let scales = self.scales(transfers, &sizes);
        let (mut all, mut bread, mut filling) = (
            Symmetric::default(),
            Symmetric::default(),
            Symmetric::default(),
        );
        let each = || {
            sizes.iter().zip(&scales).flat_map(|(of_size, &scale)| {
                let members = of_size.members.iter();
                members.map(move |&place| (transfers[place], scale))
            })
        };
        for (transfer, scale) in each() {
            all.add(scale.powi(-2), point(transfer).0);
        }
        let hat = all.inverse();
        for (transfer, scale) in each() {
            let (size, _) = point(transfer);
            let scaled = self.residual(transfer) / scale;
            if scaled.abs() <= HUBER {
                bread.add(scale.powi(-2), size);
            }
            let left = 1.0 - hat.around(size) * scale.powi(-2);
            let clipped = scaled.clamp(-HUBER, HUBER) / left;
            filling.add((clipped / scale).powi(2), size);
        }
        let inverse = bread.inverse();
        // Two rows of the bread's inverse.
        let between = |(x, y): (f64, f64), (v, w): (f64, f64)| {
            x * v * filling.a + (x * w + y * v) * filling.b + y * w * filling.d
        };
        let (intercept, slope) = ((inverse.a, inverse.b), (inverse.b, inverse.d));
        Symmetric {
            a: between(intercept, intercept),
            b: between(intercept, slope),
            d: between(slope, slope),
        }
    }

    pub(super) fn residual_percent(&self, transfers: &[TimedTransfer]) -> f64 {
        let relative = transfers.iter().map(|&transfer| {
            let (_, time) = point(transfer);
            let residual = self.residual(transfer);
            // A fitted time of nothing or less is as wrong as can be.
            let fitted = (time - residual).max(f64::MIN_POSITIVE);
            (residual / fitted).abs()
        });
        let percent = 100.0 * MAD_TO_SIGMA * median(relative.collect());
        (percent * 100.0).round().min(1e9) / 100.0
    }
}
