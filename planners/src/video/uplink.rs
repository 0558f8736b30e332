//! The phone's way to the server.

use layerlab_profiles::{Bytes, Nanos};

/// A link of constant bandwidth, which carries one frame at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    bandwidth_bps: u64,
    round_trip: Nanos,
}

impl Uplink {
    /// A link of `bandwidth_bps` bits per second (B), 0 where nothing can be sent, and a `round_trip` that includes the
    /// answer's way back (L in cbo, T_c in fastva).
    pub fn new(bandwidth_bps: u64, round_trip: Nanos) -> Uplink {
        Uplink {
            bandwidth_bps,
            round_trip,
        }
    }

    /// B, in bits per second.
    pub fn bandwidth_bps(&self) -> u64 {
        self.bandwidth_bps
    }

    /// The round trip, not including the time that sending takes.
    pub fn round_trip(&self) -> Nanos {
        self.round_trip
    }

    /// S/B, rounded up to whole nanoseconds: how long sending `size` occupies the link. None if it takes for ever, or longer
    /// than 584 years.
    pub fn sending(&self, size: Bytes) -> Option<Nanos> {
        let bit_nanos = u128::from(size.as_bytes()) * 8 * 1_000_000_000;
        if self.bandwidth_bps == 0 {
            return None;
        }
        let nanos = bit_nanos.div_ceil(u128::from(self.bandwidth_bps));
        u64::try_from(nanos).ok().map(Nanos::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_takes_the_bits_over_the_bandwidth_rounded_up() {
        let link = |bps| Uplink::new(bps, Nanos::ZERO);
        let sending = |bps, bytes| link(bps).sending(Bytes::from_bytes(bytes));
        assert_eq!(sending(1_000_000, 125_000), Some(Nanos::from_millis(1_000)));
        assert_eq!(sending(3_000_000_000, 1), Some(Nanos::from_nanos(3)));
        assert_eq!(sending(0, 1), None);
        assert_eq!(sending(1, u64::MAX), None);
    }
}
