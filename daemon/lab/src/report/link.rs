//! Published measurements of links: where they are, and what they say.

use std::fmt;
use std::path::PathBuf;

use layerlab_profiles::SignedNanos;
use layerlab_profiles::link::{LinkDirection, LinkKind, LinkRow, check_link_directory};
use serde::{Deserialize, Serialize};

use super::files::readable;

/// A published measurement of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkPublication {
    /// The folder that it was published in.
    pub folder: PathBuf,
    /// What is doubtful about it.
    pub findings: Vec<String>,
    /// What kind of link it is, if its folder was looked into and says so.
    pub kind: Option<LinkKind>,
    /// Whether the link was shaped, and is simulated, likewise.
    pub simulated: Option<bool>,
    /// What it carries each way, upload first, likewise.
    pub directions: Vec<MeasuredDirection>,
    /// Whether its folder was looked for and is not there any more.
    pub gone: bool,
}

/// What a link carries one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredDirection {
    /// Which way.
    pub direction: LinkDirection,
    /// The bandwidth, in bit/s of payload.
    pub bandwidth_bps: u64,
    /// Its 95 % interval, if it has an upper end.
    pub bandwidth_ci95_bps: Option<(u64, u64)>,
    /// The round trip with the answer.
    pub rtt_ns: SignedNanos,
    /// Its 95 % interval.
    pub rtt_ci95_ns: Option<(SignedNanos, SignedNanos)>,
    /// The median of the echoes; the same both ways.
    pub echo_ns: SignedNanos,
    /// Its 95 % interval.
    pub echo_ci95_ns: Option<(SignedNanos, SignedNanos)>,
    /// How far transfers are off the two numbers.
    pub residual_percent: f64,
    /// Whether that is too far for two numbers to describe the link.
    pub unsteady: bool,
    /// Of how many transfers the numbers are.
    pub samples: u64,
}

impl LinkPublication {
    pub(super) fn read(&mut self) {
        let document = readable(&self.folder).then(|| check_link_directory(&self.folder));
        let Some(Ok((document, _))) = document else {
            self.gone = !self.folder.is_dir();
            return;
        };
        self.kind = Some(document.header.kind);
        self.simulated = Some(document.header.shape.is_some());
        self.directions = document.rows.iter().map(MeasuredDirection::from).collect();
    }

    /// What the link carries that way, in words; nothing if that is not known.
    pub(super) fn carries(&self, direction: LinkDirection) -> String {
        let mut known = self.directions.iter();
        let known = known.find(|known| known.direction == direction);
        known.map_or_else(String::new, ToString::to_string)
    }
}

impl From<&LinkRow> for MeasuredDirection {
    fn from(row: &LinkRow) -> MeasuredDirection {
        let fit = &row.fit;
        MeasuredDirection {
            direction: row.direction,
            bandwidth_bps: fit.bandwidth_bps,
            bandwidth_ci95_bps: fit.bandwidth_ci95_bps,
            rtt_ns: fit.round_trip.value,
            rtt_ci95_ns: fit.round_trip.ci95,
            echo_ns: row.echo.value,
            echo_ci95_ns: row.echo.ci95,
            residual_percent: fit.residual_percent,
            unsteady: fit.is_unsteady(),
            samples: row.samples,
        }
    }
}

impl MeasuredDirection {
    /// The median of the echoes, in words.
    pub fn echo(&self) -> String {
        with_interval(self.echo_ns, self.echo_ci95_ns)
    }
}

/// Bandwidth and round trip, for people.
impl fmt::Display for MeasuredDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabits = |bps: u64| format!("{:.4}", bps as f64 / 1e6);
        write!(f, "{} Mbit/s", megabits(self.bandwidth_bps))?;
        if let Some((low, high)) = self.bandwidth_ci95_bps {
            write!(f, " ({} to {})", megabits(low), megabits(high))?;
        }
        let round_trip = with_interval(self.rtt_ns, self.rtt_ci95_ns);
        write!(
            f,
            ", round trip {round_trip}, residual {} %",
            self.residual_percent
        )?;
        match self.unsteady {
            true => f.write_str(", unsteady"),
            false => Ok(()),
        }
    }
}

fn with_interval(value: SignedNanos, ci95: Option<(SignedNanos, SignedNanos)>) -> String {
    let between = ci95.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    format!("{value}{between}")
}
