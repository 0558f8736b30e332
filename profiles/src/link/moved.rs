//! How sure the time is that something takes to cross a measured link.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::fit::{fit_line, jackknife, students_t};
use super::line::{Line, Symmetric, TimedTransfer};
use super::small::small_exchanges;
use super::{FitError, LinkDirection, LinkSample, transfers};

/// What crosses a link, both ways together: round trips as large transfers have them, round trips as the smallest exchanges
/// have them, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// What goes up.
    pub upload: MovedOneWay,
    /// What comes down.
    pub download: MovedOneWay,
    /// How many round trips there are of something small, or parts of one.
    pub small_round_trips: f64,
}

/// What crosses a link one way: `round_trips` L + `bytes` / B.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MovedOneWay {
    /// How many round trips there are of something large, or parts of one.
    pub round_trips: f64,
    /// S.
    pub bytes: f64,
}

/// What some of the samples say of a link, as far as it is asked for.
struct Said {
    /// The line of each way that something crosses.
    lines: Vec<(Line, MovedOneWay)>,
    /// What all that is small takes, in ns.
    small: f64,
}

impl Moved {
    /// What crosses, and which way.
    fn ways(&self) -> impl Iterator<Item = (LinkDirection, MovedOneWay)> {
        let ways = [
            (LinkDirection::Upload, self.upload),
            (LinkDirection::Download, self.download),
        ];
        ways.into_iter()
            .filter(|(_, way)| way.bytes > 0.0 || way.round_trips > 0.0)
    }
}

impl Said {
    /// What `samples` say, with the lines that `line` fits to their transfers.
    fn by<E>(
        samples: &[LinkSample],
        moved: &Moved,
        line: impl Fn(&[TimedTransfer]) -> Result<Line, E>,
    ) -> Result<Said, E> {
        let lines = moved
            .ways()
            .map(|(direction, way)| Ok((line(&transfers(samples, direction))?, way)));
        Ok(Said {
            lines: lines.collect::<Result<_, E>>()?,
            small: match moved.small_round_trips {
                0.0 => 0.0,
                count => small_exchanges(samples)
                    .duration()
                    .map_or(f64::NAN, |it| it.as_nanos() as f64 * count),
            },
        })
    }

    /// How long all of it takes, in ns.
    fn time_ns(&self) -> f64 {
        let lines = self.lines.iter();
        let large =
            lines.map(|(line, way)| line.intercept * way.round_trips + line.slope * way.bytes);
        large.sum::<f64>() + self.small
    }
}

/// Half the width of the 95 % interval, in ns, of the time that all of `moved` takes on one more connection, where
/// `samples` were to be timed on so many `connections`.
///
/// L and B of one fit err together: this is less than their two intervals make of it where S is among the sizes that were
/// measured. The mean of C connections errs by 1/C of what differs between them, and one more differs by all of it. Where all
/// was timed on one connection, what differs between connections is not known, and not in it; the two directions and what is
/// small then count as measured apart.
///
/// # Errors
/// Those of [`super::fit`].
pub fn half_width_ns(
    samples: &[LinkSample],
    connections: u32,
    moved: &Moved,
) -> Result<f64, FitError> {
    let whole = Said::by(samples, moved, fit_line)?;
    if let Some(times) = without_each_connection(samples, connections, moved) {
        let variance = jackknife(&times, &times) * (times.len() + 1) as f64;
        return Ok(students_t(times.len() - 1) * variance.sqrt());
    }
    let mut squares = 0.0;
    for ((direction, _), (line, way)) in moved.ways().zip(&whole.lines) {
        let timed: Vec<TimedTransfer> = transfers(samples, direction);
        let Symmetric { a, b, d } = line.covariance(&timed);
        let (trips, bytes) = (way.round_trips, way.bytes);
        let variance = a * trips * trips + 2.0 * b * trips * bytes + d * bytes * bytes;
        // Rounding may leave a variance of nothing below zero.
        squares += students_t(timed.len() - 2).powi(2) * variance.max(0.0);
    }
    if moved.small_round_trips > 0.0 {
        let ends = small_exchanges(samples).summary();
        let ends = ends.and_then(|summary| summary.median_ci95);
        let half = ends.map_or(f64::NAN, |(low, high)| (high - low).as_nanos() as f64 / 2.0);
        squares += (half * moved.small_round_trips).powi(2);
    }
    Ok(squares.sqrt())
}

/// How long `moved` takes by the samples without those of each connection in turn, in ns; nothing where one connection was
/// planned, or what is left says nothing.
fn without_each_connection(
    samples: &[LinkSample],
    connections: u32,
    moved: &Moved,
) -> Option<Vec<f64>> {
    let timed_on: BTreeSet<u32> = samples.iter().map(|it| it.connection).collect();
    if connections < 2 || timed_on.len() < 2 {
        return None;
    }
    let without = |&connection: &u32| {
        let others = samples.iter().filter(|it| it.connection != connection);
        let others: Vec<LinkSample> = others.cloned().collect();
        // Fewer than a fit is published of, which tell what differs all the same.
        let said = Said::by(&others, moved, |timed| {
            Ok::<_, Infallible>(Line::fit(timed))
        });
        let time = said.ok()?.time_ns();
        time.is_finite().then_some(time)
    };
    timed_on.iter().map(without).collect()
}
