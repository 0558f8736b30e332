//! Waiting for what must come: an event with a deadline, and a sentence that says what was awaited.

use std::time::{Duration, Instant};

/// The longest wait for what takes seconds, on a machine that is busy with other work.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The shortest time between two looks.
const GLANCE: Duration = Duration::from_millis(20);

/// How long to rest after a look that took this long, so that who waits leaves the machine to what is awaited: a look may
/// read a whole lab.
fn rest(look: Duration) -> Duration {
    GLANCE.max(4 * look)
}

/// Waits until `has_come`, at most [`DEADLINE`]; then the test fails with `awaited` and what `clue` tells.
#[track_caller]
pub fn wait_for(awaited: &str, mut has_come: impl FnMut() -> bool, clue: impl FnOnce() -> String) {
    let end = Instant::now() + DEADLINE;
    loop {
        let begun = Instant::now();
        if has_come() {
            return;
        }
        assert!(Instant::now() < end, "{}\n{}", in_vain(awaited), clue());
        std::thread::sleep(rest(begun.elapsed()));
    }
}

/// Waits until `look` finds something, at most [`DEADLINE`]; then the test fails with `awaited`.
pub async fn wait_until<T>(awaited: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        let begun = Instant::now();
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{}", in_vain(awaited));
        tokio::time::sleep(rest(begun.elapsed())).await;
    }
}

/// The sentence about what did not come.
pub fn in_vain(awaited: &str) -> String {
    format!("waited {} s in vain for {awaited}", DEADLINE.as_secs())
}
