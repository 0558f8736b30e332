//! What is published of one direction of a link.

use super::{Exchange, FitError, LinkDirection, LinkFit, LinkSample, TimedTransfer, fit};
use crate::summary::{Estimate, Summary};
use crate::units::Nanos;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Which way.
    pub direction: LinkDirection,
    /// Its bandwidth and round trip, from the transfers that way.
    pub fit: LinkFit,
    /// The median of the echoes beside it, and its 95 % interval; of both directions the same.
    pub echo: Estimate,
    /// How many transfers the fit is of.
    pub samples: u64,
}

impl LinkRow {
    /// What `samples`, which were to be timed on so many `connections`, say of both directions, upload first.
    ///
    /// # Errors
    /// When there are too few of them, or larger transfers did not take longer.
    pub fn all(samples: &[LinkSample], connections: u32) -> Result<Vec<LinkRow>, FitError> {
        let echo = echo(samples);
        LinkDirection::ALL
            .into_iter()
            .map(|direction| {
                let transfers = transfers(samples, direction);
                Ok(LinkRow {
                    direction,
                    fit: fit(&transfers, connections)?,
                    echo,
                    samples: transfers.len() as u64,
                })
            })
            .collect()
    }
}

/// The transfers one way among `samples`.
pub fn transfers(samples: &[LinkSample], direction: LinkDirection) -> Vec<TimedTransfer> {
    samples
        .iter()
        .filter(|sample| sample.exchange == Exchange::from(direction))
        .map(|sample| TimedTransfer {
            bytes: sample.bytes,
            duration: sample.duration,
            connection: sample.connection,
        })
        .collect()
}

/// The median of the echoes; nothing with no interval where there are none.
fn echo(samples: &[LinkSample]) -> Estimate {
    let echoes: Vec<Nanos> = samples
        .iter()
        .filter(|sample| sample.exchange == Exchange::Echo)
        .map(|sample| sample.duration)
        .collect();
    let summary = Summary::of(&echoes);
    Estimate {
        value: summary
            .map_or(Nanos::ZERO, |summary| summary.median)
            .signed(),
        ci95: summary
            .and_then(|summary| summary.median_ci95)
            .map(|(low, high)| (low.signed(), high.signed())),
    }
}
