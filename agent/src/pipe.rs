//! The agent's socket as standard input and output, for a daemon that reaches the phone without an adb server.
//!
//! What the daemon sends is passed on as it is. What the agent sends is framed: two bytes of length, little-endian, and so
//! many bytes. A frame without content is a beat. The library at the other end can only write between two things that
//! it reads, so beats come whenever the agent is silent: soon after it spoke, when an answer is likely, and then ever
//! less often.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process;
use std::thread;
use std::time::Duration;

/// How soon after the agent spoke the first beat comes.
const FIRST_BEAT: Duration = Duration::from_millis(2);

/// The longest time between beats: so long a daemon may wait until it can send something unasked.
const LAST_BEAT: Duration = Duration::from_millis(256);

/// The most bytes of one frame.
const FRAME: usize = 32 * 1024;

/// Passes on what comes from either side until one of them ends.
///
/// # Errors
/// When the agent's connection or standard output fails.
pub fn run(agent: UnixStream) -> io::Result<()> {
    let mut to_agent = agent.try_clone()?;
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut to_agent);
        // The daemon is gone: nobody reads what the agent may yet say.
        process::exit(0);
    });
    frame(agent, &mut io::stdout().lock())
}

fn frame(mut agent: UnixStream, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 2 + FRAME];
    // Says that the agent is there.
    send(&mut buffer, 0, out)?;
    let mut beat = FIRST_BEAT;
    loop {
        agent.set_read_timeout(Some(beat))?;
        match agent.read(&mut buffer[2..]) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                send(&mut buffer, length, out)?;
                beat = FIRST_BEAT;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                send(&mut buffer, 0, out)?;
                beat = (beat * 2).min(LAST_BEAT);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends the frame whose `length` bytes are in `buffer` already.
fn send(buffer: &mut [u8], length: usize, out: &mut impl Write) -> io::Result<()> {
    let head = u16::try_from(length).map_err(io::Error::other)?;
    buffer[..2].copy_from_slice(&head.to_le_bytes());
    out.write_all(&buffer[..2 + length])?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_says_is_whole_between_beats() {
        let (mut agent, ours) = UnixStream::pair().expect("sockets");
        let said: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let expected = said.clone();
        let speaking = thread::spawn(move || agent.write_all(&said));
        let mut framed = Vec::new();
        frame(ours, &mut framed).expect("memory takes everything");
        speaking.join().expect("no panic").expect("it is read");
        let (mut rest, mut heard, mut beats) = (&framed[..], Vec::new(), 0);
        while let Some((head, after)) = rest.split_first_chunk::<2>() {
            let (content, after) = after.split_at(usize::from(u16::from_le_bytes(*head)));
            heard.extend_from_slice(content);
            beats += usize::from(content.is_empty());
            rest = after;
        }
        assert_eq!(heard, expected);
        assert!(beats >= 1, "the first frame says that the agent is there");
        assert_eq!(framed[..2], [0, 0]);
    }
}
