//! How long answers may take.

use std::time::Duration;

/// How long an answer may take that carries little.
const ANSWER: Duration = Duration::from_secs(20);

/// What is slower than a mebibyte a second is given up.
const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// How long carrying so many bytes may take.
pub(crate) fn carrying(bytes: u64) -> Duration {
    ANSWER + Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND)
}
