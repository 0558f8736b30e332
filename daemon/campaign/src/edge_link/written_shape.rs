//! What a link is to be slowed down to, as users write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use layerlab_edge::Shape;
use layerlab_profiles::link::LinkShape;
use serde::{Deserialize, Serialize};

/// Slower than this, one transfer takes longer than anyone waits.
const SLOWEST_BPS: u64 = 64_000;

/// Faster than this, the shaper itself is what is measured.
const FASTEST_BPS: u64 = 1_000_000_000;

/// No link on Earth is longer, but for one over a satellite far away.
const LONGEST: Duration = Duration::from_secs(2);

/// A bandwidth each way and a round trip: `5mbit,75ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WrittenShape {
    bandwidth_bps: u64,
    round_trip: Duration,
}

impl WrittenShape {
    /// The same as the shaper takes it.
    pub fn shape(self) -> Shape {
        Shape {
            bandwidth_bps: self.bandwidth_bps,
            round_trip: self.round_trip,
            cuts: None,
        }
    }

    /// The same as documents say it.
    pub fn published(self) -> LinkShape {
        LinkShape {
            bandwidth_bps: self.bandwidth_bps,
            round_trip_ns: self.round_trip.into(),
        }
    }
}

impl TryFrom<String> for WrittenShape {
    type Error = String;

    fn try_from(text: String) -> Result<WrittenShape, String> {
        text.parse()
    }
}

impl From<WrittenShape> for String {
    fn from(shape: WrittenShape) -> String {
        shape.to_string()
    }
}

impl FromStr for WrittenShape {
    type Err = String;

    fn from_str(text: &str) -> Result<WrittenShape, String> {
        let (rate, delay) = text
            .split_once(',')
            .ok_or("write a bandwidth and a round trip, such as 5mbit,75ms")?;
        let bandwidth_bps = bits_per_second(rate.trim()).ok_or_else(|| {
            format!("`{rate}` is no bandwidth from 64kbit to 1gbit: write a number and kbit, mbit or gbit, such as 5mbit")
        })?;
        let round_trip: Duration = delay
            .trim()
            .parse::<humantime::Duration>()
            .map(Into::into)
            .ok()
            .filter(|&delay| delay <= LONGEST)
            .ok_or_else(|| {
                format!("`{delay}` is no round trip of up to 2 s: write a time such as 75ms")
            })?;
        Ok(WrittenShape {
            bandwidth_bps,
            round_trip,
        })
    }
}

/// A bandwidth as users write it, such as 5mbit, within what the shaper can do.
pub fn bits_per_second(text: &str) -> Option<u64> {
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let bps = number.parse::<f64>().ok()? * unit;
    let limits = SLOWEST_BPS as f64..=FASTEST_BPS as f64;
    limits.contains(&bps).then(|| bps.round() as u64)
}

impl fmt::Display for WrittenShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = self.bandwidth_bps as f64 / 1e6;
        write!(
            f,
            "{mbit}mbit,{}",
            humantime::format_duration(self.round_trip)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_a_bandwidth_and_a_round_trip() {
        for (text, bandwidth_bps, millis) in [
            ("5mbit,75ms", 5_000_000, 75),
            ("0.5gbit, 0ms", 500_000_000, 0),
            ("64kbit,2s", 64_000, 2_000),
        ] {
            let round_trip = Duration::from_millis(millis);
            let shape = WrittenShape {
                bandwidth_bps,
                round_trip,
            };
            assert_eq!(text.parse(), Ok(shape), "{text}");
            assert_eq!(shape.to_string().parse(), Ok(shape), "{shape}");
        }
    }

    #[test]
    fn what_is_no_shape_is_refused_with_an_example() {
        for text in [
            "",
            "5mbit",
            "5,75ms",
            "5mbps,75ms",
            "63kbit,1ms",
            "1.1gbit,1ms",
            "NaNmbit,1ms",
            "-5mbit,1ms",
        ] {
            let refused = text.parse::<WrittenShape>().expect_err(text);
            assert!(refused.contains("5mbit"), "{text}: {refused}");
        }
        for text in ["5mbit,", "5mbit,75", "5mbit,-1ms", "5mbit,3s"] {
            let refused = text.parse::<WrittenShape>().expect_err(text);
            assert!(refused.contains("75ms"), "{text}: {refused}");
        }
    }
}
