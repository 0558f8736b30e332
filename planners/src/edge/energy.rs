//! Energy and power as integers of one unit each, so that sums are exact.

use std::fmt;
use std::ops::Add;

use layerlab_profiles::Nanos;

/// Energy that the phone spends, in nanojoules (1 mW for 1 µs is 1 nJ).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Energy(u64);

impl Energy {
    /// No energy at all.
    pub const ZERO: Energy = Energy(0);

    /// An energy of `nanojoules` nanojoules.
    pub const fn from_nanojoules(nanojoules: u64) -> Energy {
        Energy(nanojoules)
    }

    /// The energy in whole nanojoules.
    pub const fn as_nanojoules(self) -> u64 {
        self.0
    }

    /// The energy in millijoules, for display and plots only.
    pub fn as_millijoules_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Energy {
    type Output = Energy;
    /// Saturates after 18 gigajoules.
    fn add(self, other: Energy) -> Energy {
        Energy(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3} mJ", self.as_millijoules_f64()))
    }
}

/// Power that the phone draws, in microwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Power(u64);

impl Power {
    /// No power at all.
    pub const ZERO: Power = Power(0);

    /// A power of `microwatts` microwatts.
    pub const fn from_microwatts(microwatts: u64) -> Power {
        Power(microwatts)
    }

    /// The power in whole microwatts.
    pub const fn as_microwatts(self) -> u64 {
        self.0
    }

    /// What this power spends in `time`, rounded to the nearest nanojoule; saturates.
    pub fn over(self, time: Nanos) -> Energy {
        let femtojoules = u128::from(self.0) * u128::from(time.as_nanos());
        let nanojoules = (femtojoules + 500_000) / 1_000_000;
        Energy(u64::try_from(nanojoules).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} mW", self.0 as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_milliwatt_spends_a_nanojoule_in_a_microsecond() {
        let power = Power::from_microwatts(1_000);
        let spent = |nanos| power.over(Nanos::from_nanos(nanos)).as_nanojoules();
        assert_eq!([1_000, 1_499, 1_500, 0].map(spent), [1, 1, 2, 0]);
        let most = Power::from_microwatts(u64::MAX);
        let energy = most.over(Nanos::from_nanos(u64::MAX));
        assert_eq!(energy.as_nanojoules(), u64::MAX);
    }

    #[test]
    fn quantities_read_with_their_units() {
        assert_eq!(
            Energy::from_nanojoules(1_994_200_000).to_string(),
            "1994.200 mJ"
        );
        assert_eq!(Power::from_microwatts(1_773_758).to_string(), "1773.8 mW");
    }
}
