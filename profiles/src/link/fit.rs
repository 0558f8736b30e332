//! The robust fit of t = L + S / B: how long it takes to move S bytes over a link.
//!
//! Huber's M-estimate. A link's noise may be the same for all sizes, as a scheduler's is, or grow with the time that is
//! needed, as a radio's does; so the scale of the residuals is itself fitted, as a power of the time between 0 and 1.
//!
//! Connections over one link differ by more than the noise within each. Where a link was measured on several, intervals come
//! from what the fit becomes without each of them (the jackknife). One connection tells nothing of others: there
//! they come from the sandwich estimate of the covariance, which holds even where the power above is not quite right.

use std::collections::BTreeSet;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::line::{Line, Symmetric, TimedTransfer};
use crate::summary::Estimate;
use crate::units::Bytes;

/// A fit whose residuals are larger than this, in percent of the fitted times, is called unsteady.
pub const UNSTEADY_ABOVE_PERCENT: f64 = 10.0;

/// As few transfers as leave four degrees of freedom.
const FEWEST: usize = 6;

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

/// Fits L and B to `transfers`, which may be in any order, and were to be timed on so many `connections`. The same transfers in
/// the same order give the same fit.
///
/// # Errors
/// When there are too few, or larger ones did not take longer.
pub fn fit(transfers: &[TimedTransfer], connections: u32) -> Result<LinkFit, FitError> {
    let line = fit_line(transfers)?;
    let (covariance, students_t) = match left_out(transfers, connections) {
        Some(without) => (covariance(&without), students_t(without.len() - 1)),
        None => (line.covariance(transfers), students_t(transfers.len() - 2)),
    };
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

/// The line through `transfers`.
///
/// # Errors
/// Those of [`fit`].
pub(super) fn fit_line(transfers: &[TimedTransfer]) -> Result<Line, FitError> {
    let sizes: BTreeSet<Bytes> = transfers.iter().map(|it| it.bytes).collect();
    if transfers.len() < FEWEST || sizes.len() < 2 {
        return Err(FitError::TooFew {
            transfers: transfers.len(),
            sizes: sizes.len(),
        });
    }
    let line = Line::fit(transfers);
    match line.slope > 0.0 {
        true => Ok(line),
        false => Err(FitError::NotLonger),
    }
}

/// The lines without each connection in turn; nothing where one connection was planned, or some line is none.
fn left_out(transfers: &[TimedTransfer], connections: u32) -> Option<Vec<Line>> {
    let timed_on: BTreeSet<u32> = transfers.iter().map(|it| it.connection).collect();
    if connections < 2 || timed_on.len() < 2 {
        return None;
    }
    let without = |&connection: &u32| {
        let others = transfers.iter().filter(|it| it.connection != connection);
        let line = Line::fit(&others.copied().collect::<Vec<TimedTransfer>>());
        (line.intercept.is_finite() && line.slope.is_finite()).then_some(line)
    };
    timed_on.iter().map(without).collect()
}

/// The covariance of intercept and slope, from the lines without each connection.
fn covariance(without: &[Line]) -> Symmetric {
    let intercepts: Vec<f64> = without.iter().map(|line| line.intercept).collect();
    let slopes: Vec<f64> = without.iter().map(|line| line.slope).collect();
    Symmetric {
        a: jackknife(&intercepts, &intercepts),
        b: jackknife(&intercepts, &slopes),
        d: jackknife(&slopes, &slopes),
    }
}

/// The jackknife's estimate of the covariance of two numbers, of which each has been estimated without each part of the data.
pub(super) fn jackknife(one: &[f64], other: &[f64]) -> f64 {
    let count = one.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let means = (mean(one), mean(other));
    let products = one.iter().zip(other);
    let products = products.map(|(one, other)| (one - means.0) * (other - means.1));
    products.sum::<f64>() * (count - 1.0) / count
}

/// How many standard errors there are to each side of a 95 % interval.
pub(super) fn students_t(degrees_of_freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64)
        .map_or(f64::NAN, |students| students.inverse_cdf(0.975))
}

/// B of a slope in nanoseconds for each byte.
fn bits_per_second(slope: f64) -> f64 {
    8e9 / slope
}
