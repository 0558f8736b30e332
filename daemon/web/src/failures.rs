//! How often wrong tokens came from where. A token cannot be guessed; who tries would only keep the lab busy.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many wrong tokens of one address are each told that they are wrong.
pub(crate) const MOST: u32 = 20;

/// After this they are forgotten.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// Of so many addresses it is remembered.
const MOST_ADDRESSES: usize = 1024;

/// How often wrong tokens came from each address.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Failures {
    /// Notes a wrong token from `address` at `now`; whether there were too many.
    pub(crate) fn note(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= MOST_ADDRESSES && !addresses.contains_key(&address) {
            addresses.retain(|_, (since, _)| now.duration_since(*since) < PERIOD);
            if addresses.len() >= MOST_ADDRESSES {
                return true;
            }
        }
        let (since, failures) = addresses.entry(address).or_insert((now, 0));
        if now.duration_since(*since) >= PERIOD {
            (*since, *failures) = (now, 0);
        }
        *failures = failures.saturating_add(1);
        *failures > MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_failures_of_an_address_are_noticed_until_they_are_forgotten() {
        let (failures, now) = (Failures::default(), Instant::now());
        let address = |last| IpAddr::from([127, 0, 0, last]);
        for _ in 0..MOST {
            assert!(!failures.note(address(1), now));
        }
        assert!(failures.note(address(1), now));
        assert!(!failures.note(address(2), now));
        assert!(!failures.note(address(1), now + PERIOD));
    }

    #[test]
    fn memory_is_bounded() {
        let (failures, now) = (Failures::default(), Instant::now());
        for number in 0..5000_u32 {
            failures.note(IpAddr::from(number.to_be_bytes()), now);
        }
        let kept = failures.0.lock().expect("nobody panicked").len();
        assert_eq!(kept, MOST_ADDRESSES);
        // Later there is room again.
        assert!(!failures.note(IpAddr::from([9, 9, 9, 9]), now + PERIOD));
    }
}
