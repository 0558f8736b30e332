//! What time it is: the host's own clock, or one that starts at a chosen moment and runs with tokio's, which tests pause.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};

/// Slept at most at once: the host's clock may be set, or the host may have slept.
const LONGEST: Duration = Duration::from_secs(30);

/// Where the lab has the time from, so that tests can let nights pass at once.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The host's.
    Host,
    /// One that showed `start` at `began`.
    From {
        /// What it showed.
        start: Timestamp,
        /// When, by tokio's clock, it showed that.
        began: Instant,
    },
}

impl Clock {
    /// A clock that shows `start` now.
    pub fn starting(start: Timestamp) -> Clock {
        Clock::From {
            start,
            began: Instant::now(),
        }
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Host => Timestamp::now(),
            Clock::From { start, began } => {
                let since =
                    SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(since).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Waits until it shows `at`, for ever if that is none. May end earlier.
    pub async fn sleep_until(&self, at: Option<Timestamp>) {
        let left = |at: Timestamp| {
            let left = at.duration_since(self.now());
            Duration::try_from(left).unwrap_or(Duration::ZERO)
        };
        match (self, at) {
            (Clock::Host, Some(at)) => sleep(left(at).min(LONGEST)).await,
            (Clock::Host, None) => sleep(LONGEST).await,
            // A millisecond later rather than a nanosecond too early, at which nothing has changed yet.
            (Clock::From { .. }, Some(at)) => {
                sleep_until(Instant::now() + left(at) + Duration::from_millis(1)).await;
            }
            (Clock::From { .. }, None) => std::future::pending().await,
        }
    }
}
