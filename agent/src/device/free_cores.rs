//! Waits for cores that other programs leave free: a thread that shares its core is timed with what else runs there.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::CoresWait;

/// Where the kernel says how many threads run or wait for a core.
const LOADAVG: &str = "loadavg";

/// Where the kernel lists the cores.
const STAT: &str = "stat";

/// How long a measurement waits in all for cores that stay taken. Time in which they were free is given back, so that it waits at
/// most as long as it measures.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long it waits until it looks again.
const LOOK: Duration = Duration::from_micros(500);

/// What is left of the patience with a machine that has other things to do.
#[derive(Debug)]
pub(super) struct FreeCores {
    proc: PathBuf,
    cores: u32,
    patience: Duration,
    looked: Instant,
}

impl FreeCores {
    /// Of the machine whose kernel's files are under `proc`.
    pub(super) fn of(proc: &Path) -> FreeCores {
        let stat = fs::read_to_string(proc.join(STAT)).unwrap_or_default();
        let is_core = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|number| number.starts_with(|one: char| one.is_ascii_digit()))
        };
        FreeCores {
            proc: proc.to_owned(),
            cores: stat.lines().filter(is_core).count() as u32,
            patience: PATIENCE,
            looked: Instant::now(),
        }
    }

    /// Waits until so many threads have cores of their own, as long as there is patience, and says whether they have, and how
    /// long that took. `None` where the kernel does not tell.
    pub(super) fn wait_for(&mut self, threads: u32) -> Option<CoresWait> {
        let begin = Instant::now();
        let answer = |has_cores| {
            Some(CoresWait {
                has_cores,
                waited: begin.elapsed().into(),
            })
        };
        let mut is_first_look = true;
        loop {
            let since = self.looked.elapsed();
            self.looked = Instant::now();
            if self.are_free(threads)? {
                if is_first_look {
                    self.patience = (self.patience + since).min(PATIENCE);
                }
                return answer(true);
            }
            if !is_first_look {
                self.patience = self.patience.saturating_sub(since);
            }
            if self.patience.is_zero() {
                return answer(false);
            }
            is_first_look = false;
            thread::sleep(LOOK);
        }
    }

    /// Whether so many threads, and no more than all cores, would run beside what runs now.
    fn are_free(&self, threads: u32) -> Option<bool> {
        let others = running(&fs::read_to_string(self.proc.join(LOADAVG)).ok()?)?;
        let cores = (self.cores > 0).then_some(self.cores)?;
        Some(others + threads.min(cores) <= cores)
    }
}

/// How many threads run or wait for a core, but the one that asks.
fn running(loadavg: &str) -> Option<u32> {
    let (running, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<u32>().ok()?.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: u32, running: u32) -> tempfile::TempDir {
        let proc = tempfile::tempdir().expect("a folder");
        let mut stat = "cpu  1 2 3 4 5 6 7 8 9 0\n".to_owned();
        for core in 0..cores {
            stat += &format!("cpu{core} 1 2 3 4 5 6 7 8 9 0\n");
        }
        fs::write(proc.path().join(STAT), stat + "ctxt 1\n").expect("room");
        set_running(proc.path(), running);
        proc
    }

    fn set_running(proc: &Path, running: u32) {
        let text = format!("0.50 0.40 0.30 {running}/96 8272\n");
        fs::write(proc.join(LOADAVG), text).expect("room");
    }

    #[test]
    fn threads_have_cores_where_nothing_else_takes_them() {
        // The thread that asks is one of those that run.
        for (cores, running, threads, expected) in [
            (2, 1, 2, true),
            (2, 2, 2, false),
            (2, 2, 1, true),
            (8, 5, 4, true),
            (8, 6, 4, false),
            (2, 1, 9, true),
        ] {
            let proc = machine(cores, running);
            let are_free = FreeCores::of(proc.path()).are_free(threads);
            assert_eq!(are_free, Some(expected), "{cores} {running} {threads}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_tell_is_not_waited_for() {
        let nothing = tempfile::tempdir().expect("a folder");
        assert_eq!(FreeCores::of(nothing.path()).wait_for(1), None);
        let odd = machine(2, 1);
        fs::write(odd.path().join(LOADAVG), "no numbers").expect("room");
        assert_eq!(FreeCores::of(odd.path()).wait_for(1), None);
    }

    #[test]
    fn patience_ends_and_grows_again_while_cores_are_free() {
        let proc = machine(2, 2);
        let mut free = FreeCores::of(proc.path());
        free.patience = LOOK * 4;
        let waited = free.wait_for(2).expect("it tells");
        assert!(!waited.has_cores && waited.waited >= (LOOK * 3).into());
        assert_eq!(free.patience, Duration::ZERO);
        // Without patience nobody waits.
        assert!(!free.wait_for(2).expect("it tells").has_cores);
        set_running(proc.path(), 1);
        thread::sleep(LOOK);
        assert!(free.wait_for(2).expect("it tells").has_cores);
        assert!(free.patience >= LOOK, "{free:?}");
    }

    #[test]
    fn cores_that_become_free_end_the_wait() {
        let proc = machine(2, 2);
        let mut free = FreeCores::of(proc.path());
        // However busy this machine is, it comes to it.
        free.patience = Duration::from_secs(600);
        let path = proc.path().to_owned();
        let other = thread::spawn(move || set_running(&path, 1));
        while !free.wait_for(2).expect("it tells").has_cores {}
        other.join().expect("nothing to fail");
        assert!(free.patience > Duration::ZERO);
    }
}
