//! What another program prints, waited for no longer than a deadline.

use std::io::{self, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// More than any program prints that is asked here; the rest would be no answer.
const LONGEST: usize = 256 * 1024;

/// How often it is looked whether there is more.
const POLL: Duration = Duration::from_millis(2);

/// What `command` prints until it ends.
///
/// # Errors
/// When there is no such program, or it has not ended within `deadline`, or it prints without end. It is killed then.
pub(super) fn answer_of(command: &mut Command, deadline: Duration) -> io::Result<String> {
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let answer = read_until(&mut child, begin + deadline);
    if answer.is_err() {
        // It may have ended meanwhile, which is what is wanted.
        let _ = child.kill();
        // A program that hangs in the kernel dies late. Nobody waits for it but this thread.
        thread::spawn(move || child.wait());
    }
    answer
}

fn read_until(child: &mut Child, deadline: Instant) -> io::Result<String> {
    let mut output = child.stdout.take().map(without_blocking).transpose()?;
    let mut told = Vec::new();
    let mut portion = [0; 4096];
    loop {
        let read = match &mut output {
            Some(pipe) => pipe.read(&mut portion),
            None => Err(ErrorKind::WouldBlock.into()),
        };
        match read {
            // What it started itself may hold the other end on: its own end counts.
            Ok(0) => output = None,
            Ok(read) => told.extend_from_slice(&portion[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if output.is_none() && child.try_wait()?.is_some() {
                    return Ok(String::from_utf8_lossy(&told).into_owned());
                }
                if Instant::now() >= deadline {
                    return Err(ErrorKind::TimedOut.into());
                }
                thread::sleep(POLL);
            }
            Err(error) => return Err(error),
        }
        if told.len() > LONGEST {
            return Err(io::Error::other("it prints without end"));
        }
    }
}

/// The pipe, of which a read gives what there is.
fn without_blocking(pipe: ChildStdout) -> io::Result<ChildStdout> {
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    Ok(pipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test may wait for a program that answers at once.
    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_ends_is_heard_to_its_end() {
        let long = answer_of(&mut shell("seq 1 30000"), LONG).expect("an answer");
        assert!(long.starts_with("1\n2\n") && long.ends_with("\n30000\n"));
        let nothing = answer_of(&mut shell("exit 3"), LONG).expect("no word is an answer");
        assert_eq!(nothing, "");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_at_the_deadline() {
        let begin = Instant::now();
        let mut sleeper = shell("echo hello; exec sleep 600");
        let error = answer_of(&mut sleeper, Duration::from_millis(50)).expect_err("it hangs");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
    }

    #[test]
    fn a_program_that_prints_without_end_is_killed() {
        let error = answer_of(&mut shell("exec yes"), LONG).expect_err("it prints on");
        assert_eq!(error.to_string(), "it prints without end");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = answer_of(&mut Command::new("/nowhere/dumpsys"), LONG).expect_err("none");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
