//! Quantities that cannot be confused: each is an integer of one unit, named by its constructor.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A duration, or an instant since a clock's own start, in nanoseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// The empty duration.
    pub const ZERO: Nanos = Nanos(0);

    /// A duration of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Nanos(nanos)
    }

    /// A duration of `micros` microseconds; saturates after 584 years.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros.saturating_mul(1_000))
    }

    /// A duration of `millis` milliseconds; saturates after 584 years.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// The duration in whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The duration in milliseconds, for display and plots only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The same duration as a quantity that can become negative in a difference.
    ///
    /// Saturates at 292 years.
    pub fn signed(self) -> SignedNanos {
        SignedNanos(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

impl From<std::time::Duration> for Nanos {
    /// Saturates after 584 years.
    fn from(duration: std::time::Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(nanos: Nanos) -> Self {
        std::time::Duration::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// Saturates at zero: a difference that may be negative is [`SignedNanos`].
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(terms: I) -> Nanos {
        terms.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signed().fmt(f)
    }
}

/// A difference of durations in nanoseconds: a derived time, which noise can make negative.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct SignedNanos(i64);

impl SignedNanos {
    /// No time at all.
    pub const ZERO: SignedNanos = SignedNanos(0);

    /// A difference of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        SignedNanos(nanos)
    }

    /// The difference in whole nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Half of the difference, rounded towards negative infinity, so that equal inputs round alike
    /// whatever their sign.
    pub const fn half(self) -> Self {
        SignedNanos(self.0.div_euclid(2))
    }
}

impl Add for SignedNanos {
    type Output = SignedNanos;
    fn add(self, other: SignedNanos) -> SignedNanos {
        SignedNanos(self.0.saturating_add(other.0))
    }
}

impl Sub for SignedNanos {
    type Output = SignedNanos;
    fn sub(self, other: SignedNanos) -> SignedNanos {
        SignedNanos(self.0.saturating_sub(other.0))
    }
}

impl Sum for SignedNanos {
    fn sum<I: Iterator<Item = SignedNanos>>(terms: I) -> SignedNanos {
        terms.fold(SignedNanos::ZERO, Add::add)
    }
}

impl fmt::Display for SignedNanos {
    /// Four significant digits in the largest unit that leaves a number of at least one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&in_thousands(self.0, ["ns", "µs", "ms", "s"]))
    }
}

/// An energy in nanojoules, or a difference of two.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct NanoJoules(i64);

impl NanoJoules {
    /// An energy of `nanojoules` nanojoules.
    pub const fn from_nanojoules(nanojoules: i64) -> Self {
        NanoJoules(nanojoules)
    }

    /// The energy in whole nanojoules.
    pub const fn as_nanojoules(self) -> i64 {
        self.0
    }
}

impl fmt::Display for NanoJoules {
    /// Four significant digits in the largest unit that leaves a number of at least one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&in_thousands(self.0, ["nJ", "µJ", "mJ", "J"]))
    }
}

/// Four significant digits in the largest of these units, each a thousand of the one before, that leaves a number of at least
/// one.
fn in_thousands(value: i64, units: [&str; 4]) -> String {
    let (scale, unit) = match value.unsigned_abs() {
        0..1_000 => return format!("{value} {}", units[0]),
        1_000..1_000_000 => (1e3, units[1]),
        1_000_000..1_000_000_000 => (1e6, units[2]),
        _ => (1e9, units[3]),
    };
    let value = value as f64 / scale;
    let decimals = match value.abs() {
        v if v < 10.0 => 3,
        v if v < 100.0 => 2,
        _ => 1,
    };
    format!("{value:.decimals$} {unit}")
}

/// A temperature in thousandths of a degree Celsius.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct MilliCelsius(i64);

impl MilliCelsius {
    /// A temperature of `millicelsius` thousandths of a degree.
    pub const fn from_millicelsius(millicelsius: i64) -> Self {
        MilliCelsius(millicelsius)
    }

    /// The temperature in thousandths of a degree.
    pub const fn as_millicelsius(self) -> i64 {
        self.0
    }
}

impl fmt::Display for MilliCelsius {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} °C", self.0 as f64 / 1000.0))
    }
}

/// A size in bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes at all, as a tensor without elements has.
    pub const ZERO: Bytes = Bytes(0);

    /// A size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Bytes(bytes)
    }

    /// The size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(terms: I) -> Bytes {
        terms.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..1_024 => format!("{} B", self.0),
            1_024..1_048_576 => format!("{:.1} KiB", self.0 as f64 / 1024.0),
            1_048_576..1_073_741_824 => format!("{:.1} MiB", self.0 as f64 / 1_048_576.0),
            _ => format!("{:.1} GiB", self.0 as f64 / 1_073_741_824.0),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_with_four_digits_and_their_unit() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.234 µs"),
            (12_345_678, "12.35 ms"),
            (123_456_789, "123.5 ms"),
            (3_400_000_000, "3.400 s"),
            (-12_345, "-12.35 µs"),
        ] {
            assert_eq!(SignedNanos::from_nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn energies_read_likewise() {
        for (nanojoules, text) in [(12, "12 nJ"), (-1_500_000, "-1.500 mJ")] {
            assert_eq!(NanoJoules::from_nanojoules(nanojoules).to_string(), text);
        }
    }

    #[test]
    fn half_rounds_down_on_both_sides_of_zero() {
        for (nanos, half) in [(5, 2), (4, 2), (-4, -2), (-5, -3)] {
            assert_eq!(SignedNanos::from_nanos(nanos).half().as_nanos(), half);
        }
    }

    #[test]
    fn sizes_read_in_binary_units() {
        for (bytes, text) in [(0, "0 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB")] {
            assert_eq!(Bytes::from_bytes(bytes).to_string(), text);
        }
    }
}
