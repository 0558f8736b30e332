//! One process that feeds a reader with inputs, and what holds it: a deadline for each input, and memory that ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::mutate;
use super::targets::Target;

/// The most memory that a reader may take, in bytes.
pub const MEMORY: u64 = 1 << 30;

/// The longest that a reader may take for one input: much longer than any needs on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The exit status of a process whose reader did not answer.
pub const HUNG: u8 = 3;

/// How often it is looked whether a reader hangs.
const LOOK: Duration = Duration::from_millis(500);

/// What became of some inputs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many inputs were accepted.
    pub accepted: u64,
    /// The longest time that an input took.
    pub longest: Duration,
}

/// Feeds inputs `first` to before `end` to `target`, which may use `folder`, and writes the number of the current one into
/// `progress`, so that it is known if this process dies. An input that takes too long ends it with [`HUNG`]. An input that
/// makes the reader panic is given to `tell` at once, with the message, since a later one may end the process.
///
/// # Panics
/// When the operating system refuses the limit, or progress cannot be written.
pub fn feed(
    target: &Target,
    first: u64,
    end: u64,
    folder: &Path,
    progress: &File,
    tell: impl Fn(u64, &str),
) -> Outcome {
    let limit = Rlimit {
        current: Some(MEMORY),
        maximum: Some(MEMORY),
    };
    setrlimit(Resource::Data, limit).expect("a process may limit itself");
    // Panics are told by `tell`, with their place, which only the hook is given.
    let place = Arc::new(Mutex::new(String::new()));
    let hook = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        let mut place = hook.lock().unwrap_or_else(PoisonError::into_inner);
        *place = panic.location().map_or(String::new(), ToString::to_string);
    }));
    let current = Arc::new(AtomicU64::new(first));
    watch(Arc::clone(&current));
    let mut outcome = Outcome::default();
    for index in first..end {
        current.store(index, Ordering::Relaxed);
        progress
            .write_all_at(&index.to_le_bytes(), 0)
            .expect("room for eight bytes");
        let input = mutate::input(target.format, &target.seeds, index);
        let begin = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| (target.read)(&input, folder))) {
            Ok(accepted) => outcome.accepted += u64::from(accepted),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                let place = place.lock().unwrap_or_else(PoisonError::into_inner);
                let message = format!("{} at {place}", text.unwrap_or("no message"));
                tell(index, &message);
            }
        }
        outcome.longest = outcome.longest.max(begin.elapsed());
    }
    outcome
}

/// Ends the process if the current input does not change within the deadline.
fn watch(current: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let (mut seen, mut since) = (current.load(Ordering::Relaxed), Instant::now());
        loop {
            std::thread::sleep(LOOK);
            let now = current.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > DEADLINE {
                std::process::exit(i32::from(HUNG));
            }
        }
    });
}
