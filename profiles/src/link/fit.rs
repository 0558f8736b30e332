//! The robust fit of t = L + S / B: how long it takes to move S bytes over a link.
//!
//! Huber's M-estimate. A link's noise may be the same for all sizes, as a scheduler's is, or grow with the time that is
//! needed, as a radio's does; so the scale of the residuals is itself fitted, as a power of the time between 0 and 1.
//! Intervals come from the sandwich estimate of the covariance, which holds even where that power is not quite right.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::summary::Estimate;
use crate::units::{Bytes, Nanos};

/// A fit whose residuals are larger than this, in percent of the fitted times, is called unsteady.
pub const UNSTEADY_ABOVE_PERCENT: f64 = 10.0;

/// Huber's constant: 95 % efficient where the noise is normal.
const HUBER: f64 = 1.345;

/// From the median absolute deviation to the standard deviation of normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Enough for convergence to far below a nanosecond; each round costs microseconds.
const ROUNDS: usize = 30;

/// As few transfers as leave four degrees of freedom.
const FEWEST: usize = 6;

/// One transfer: its size, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedTransfer {
    /// S.
    pub bytes: Bytes,
    /// t, from the first write to the acknowledgement.
    pub duration: Nanos,
}

/// What transfers say about one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFit {
    /// B, in bit/s.
    pub bandwidth_bps: u64,
    /// Its 95 % interval; absent where the transfers do not tell the link from an infinitely fast one.
    pub bandwidth_ci95_bps: Option<(u64, u64)>,
    /// L, a full round trip with the answer, and its 95 % interval.
    pub round_trip: Estimate,
    /// The standard deviation of the residuals, robustly estimated, in percent of the fitted times.
    pub residual_percent: f64,
}

impl LinkFit {
    /// Whether the link was too unsteady for two numbers to describe it.
    pub fn is_unsteady(&self) -> bool {
        self.residual_percent > UNSTEADY_ABOVE_PERCENT
    }
}

/// Why transfers say nothing about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are too few, or all are of one size.
    #[error(
        "{transfers} transfers of {sizes} sizes do not tell bandwidth from latency: at least {FEWEST} of two sizes are needed"
    )]
    TooFew {
        /// How many transfers there are.
        transfers: usize,
        /// Of how many sizes.
        sizes: usize,
    },
    /// Larger transfers did not take longer.
    #[error(
        "larger transfers took no longer than small ones, so that the link has no bandwidth: measure again when it is quieter"
    )]
    NotLonger,
}

/// Fits L and B to `transfers`, which may be in any order. The same transfers in the same order give the same fit.
///
/// # Errors
/// When there are too few, or larger ones did not take longer.
pub fn fit(transfers: &[TimedTransfer]) -> Result<LinkFit, FitError> {
    let Fitted {
        line,
        covariance,
        students_t,
    } = fit_line(transfers)?;
    let (intercept_error, slope_error) = (covariance.a.sqrt(), covariance.d.sqrt());
    let (low, high) = (
        line.slope - students_t * slope_error,
        line.slope + students_t * slope_error,
    );
    Ok(LinkFit {
        bandwidth_bps: bits_per_second(line.slope).round() as u64,
        bandwidth_ci95_bps: (low > 0.0).then(|| {
            let ends = (bits_per_second(high), bits_per_second(low));
            (ends.0.floor() as u64, ends.1.ceil() as u64)
        }),
        round_trip: Estimate::around(line.intercept, Some(students_t * intercept_error)),
        residual_percent: line.residual_percent(transfers),
    })
}

/// Half the width of the 95 % interval of `round_trips` L + S/B, in ns, as [`fit`] fits them to `transfers`. L and B err
/// together: this is less than their two intervals make of it where S is among the sizes that were measured.
///
/// # Errors
/// Those of [`fit`].
pub fn half_width_ns(
    transfers: &[TimedTransfer],
    round_trips: f64,
    bytes: Bytes,
) -> Result<f64, FitError> {
    let fitted = fit_line(transfers)?;
    let bytes = bytes.as_bytes() as f64;
    let Symmetric { a, b, d } = fitted.covariance;
    let variance =
        a * round_trips * round_trips + 2.0 * b * round_trips * bytes + d * bytes * bytes;
    // Rounding may leave a variance of nothing below zero.
    Ok(fitted.students_t * variance.max(0.0).sqrt())
}

/// The fitted line, and how sure it is.
struct Fitted {
    line: Line,
    /// Of intercept and slope.
    covariance: Symmetric,
    /// How many standard errors there are to each side of a 95 % interval.
    students_t: f64,
}

fn fit_line(transfers: &[TimedTransfer]) -> Result<Fitted, FitError> {
    let sizes = by_size(transfers);
    if transfers.len() < FEWEST || sizes.len() < 2 {
        return Err(FitError::TooFew {
            transfers: transfers.len(),
            sizes: sizes.len(),
        });
    }
    let mut line = Line::through(transfers, |_, typical| 1.0 / typical.powi(2), &sizes);
    let mut scales = vec![0.0; sizes.len()];
    for _ in 0..ROUNDS {
        scales = line.scales(transfers, &sizes);
        let weight = |residual: f64, scale: f64| {
            let huber = (HUBER * scale / residual.abs()).min(1.0);
            huber / scale.powi(2)
        };
        line = line.improved(transfers, &sizes, &scales, weight);
    }
    if line.slope <= 0.0 {
        return Err(FitError::NotLonger);
    }
    Ok(Fitted {
        line,
        covariance: line.covariance(transfers, &sizes, &scales),
        // Student's t needs degrees of freedom, of which there are at least four.
        students_t: StudentsT::new(0.0, 1.0, (transfers.len() - 2) as f64)
            .map_or(f64::NAN, |students| students.inverse_cdf(0.975)),
    })
}

/// B of a slope in nanoseconds for each byte.
fn bits_per_second(slope: f64) -> f64 {
    8e9 / slope
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
struct Symmetric {
    a: f64,
    b: f64,
    d: f64,
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
struct Line {
    intercept: f64,
    slope: f64,
}

fn point(transfer: TimedTransfer) -> (f64, f64) {
    let size = transfer.bytes.as_bytes() as f64;
    (size, transfer.duration.as_nanos() as f64)
}

impl Line {
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

    /// The covariance of intercept and slope: the sandwich estimate, in which each residual is divided by what the fit
    /// leaves of it (HC3).
    fn covariance(
        &self,
        transfers: &[TimedTransfer],
        sizes: &[OfSize],
        scales: &[f64],
    ) -> Symmetric {
        let (mut all, mut bread, mut filling) = (
            Symmetric::default(),
            Symmetric::default(),
            Symmetric::default(),
        );
        let each = || {
            sizes.iter().zip(scales).flat_map(|(of_size, &scale)| {
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

    fn residual_percent(&self, transfers: &[TimedTransfer]) -> f64 {
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
