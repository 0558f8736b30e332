//! How fast the link is at each moment: always the same, or as recorded.

use layerlab_profiles::{Bytes, Nanos};

use super::super::uplink::Uplink;

/// How many intervals of a trace an estimate looks back on.
const LOOK_BACK: u64 = 10;

/// The link's bandwidth over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayBandwidth {
    /// Always the same, in bits per second.
    Constant(u64),
    /// As recorded, and from the beginning again at its end.
    Trace {
        /// How long each interval is, above 0.
        interval: Nanos,
        /// The bytes that the link carried in each interval, evenly; at least one interval.
        bytes: Vec<u64>,
    },
}

impl ReplayBandwidth {
    /// When the last byte of `size` has left if sending starts at `start`; none if that is never.
    pub(in super::super) fn sent(&self, start: Nanos, size: Bytes) -> Option<Nanos> {
        match self {
            ReplayBandwidth::Constant(bps) => {
                let sending = Uplink::new(*bps, Nanos::ZERO).sending(size)?;
                start
                    .as_nanos()
                    .checked_add(sending.as_nanos())
                    .map(Nanos::from_nanos)
            }
            ReplayBandwidth::Trace { interval, bytes } => {
                sent_by_trace(interval.as_nanos(), bytes, start.as_nanos(), size)
            }
        }
    }

    /// What a phone believes the bandwidth to be at `now`, in bits per second: of a trace, the mean of the last ten intervals
    /// that are over, or the first interval's where none is.
    pub(super) fn estimate_bps(&self, now: Nanos) -> u64 {
        match self {
            ReplayBandwidth::Constant(bps) => *bps,
            ReplayBandwidth::Trace { interval, bytes } => {
                let interval = interval.as_nanos().max(1);
                let over = now.as_nanos() / interval;
                let first = over.saturating_sub(LOOK_BACK);
                let last = over.max(first + 1);
                let carried = (first..last).map(|index| u128::from(of_interval(bytes, index)));
                let bits = carried.sum::<u128>() * 8 * 1_000_000_000;
                let nanos = u128::from(last - first) * u128::from(interval);
                u64::try_from(bits / nanos).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The bytes of the interval `index`, the trace repeating itself.
fn of_interval(bytes: &[u64], index: u64) -> u64 {
    let place = index % (bytes.len() as u64).max(1);
    bytes.get(place as usize).copied().unwrap_or(0)
}

/// Carries `size` interval by interval, in units of a byte times the interval, so that nothing is rounded before the end.
fn sent_by_trace(interval: u64, bytes: &[u64], start: u64, size: Bytes) -> Option<Nanos> {
    let unit = u128::from(interval);
    let carried: u128 = bytes.iter().map(|&bytes| u128::from(bytes)).sum();
    if interval == 0 || carried == 0 {
        return None;
    }
    let mut left = u128::from(size.as_bytes()) * unit;
    let mut now = start;
    // Whole rounds of the trace carry the same wherever they begin.
    let round = carried.saturating_mul(unit);
    let rounds = left.saturating_sub(1) / round;
    left -= rounds * round;
    let length = u128::from(interval) * bytes.len() as u128;
    now = u64::try_from(u128::from(now).checked_add(rounds.checked_mul(length)?)?).ok()?;
    loop {
        let index = now / interval;
        let end = index.checked_add(1)?.checked_mul(interval)?;
        let rate = u128::from(of_interval(bytes, index));
        let most = rate * u128::from(end - now);
        if left <= most {
            let needed = if rate == 0 { 0 } else { left.div_ceil(rate) };
            return Some(Nanos::from_nanos(now + u64::try_from(needed).ok()?));
        }
        left -= most;
        now = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(bytes: &[u64]) -> ReplayBandwidth {
        ReplayBandwidth::Trace {
            interval: Nanos::from_millis(100),
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn a_trace_carries_its_bytes_and_repeats_itself() {
        let trace = trace(&[1_000, 0, 3_000]);
        let sent = |start, size| {
            let sent = trace.sent(Nanos::from_millis(start), Bytes::from_bytes(size));
            sent.expect("it carries something").as_nanos() / 1_000_000
        };
        assert_eq!(sent(0, 500), 50);
        assert_eq!(sent(0, 1_000), 100);
        assert_eq!(sent(0, 2_500), 250);
        assert_eq!(sent(50, 3_500), 300);
        assert_eq!(sent(50, 4_000), 350);
        // 4,000 bytes a round.
        assert_eq!(sent(0, 40_500), 3_050);
    }

    #[test]
    fn an_even_trace_is_a_constant_link() {
        let (even, constant) = (trace(&[12_500; 7]), ReplayBandwidth::Constant(1_000_000));
        for (start, size) in [(0, 1), (33_333_333, 40_000), (999_999_999, 7)] {
            let (start, size) = (Nanos::from_nanos(start), Bytes::from_bytes(size));
            assert_eq!(even.sent(start, size), constant.sent(start, size));
            assert_eq!(even.estimate_bps(start), constant.estimate_bps(start));
        }
    }

    #[test]
    fn an_estimate_looks_back_and_never_ahead() {
        let trace = trace(&[1_000, 2_000, 9_000]);
        let estimate = |millis| trace.estimate_bps(Nanos::from_millis(millis));
        assert_eq!(
            [estimate(0), estimate(150), estimate(200)],
            [80_000, 80_000, 120_000]
        );
    }

    #[test]
    fn a_link_that_carries_nothing_never_ends() {
        for link in [trace(&[0, 0]), trace(&[]), ReplayBandwidth::Constant(0)] {
            assert_eq!(link.sent(Nanos::ZERO, Bytes::from_bytes(1)), None);
            assert_eq!(link.estimate_bps(Nanos::from_millis(500)), 0);
        }
    }
}
