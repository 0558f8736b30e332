//! The agent's socket at the other end of a command on the phone, as a stream: `layerlab-agent pipe`.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::task::AbortHandle;

use super::super::text::quote;
use super::frames::{Answer, Failure, Frame, LARGEST_DATA};
use super::process::{PhoneProcess, receive};

/// As much as may wait for one who does not read.
const ROOM: usize = 64 * 1024;

/// Connects to the agent that listens on the abstract socket `socket`, through `program` on the phone; nothing if nobody
/// listens.
///
/// The child belongs to the stream and is killed with it, or with the task. That it lost its phone is told to `lost`.
pub(super) async fn open(
    mut child: PhoneProcess,
    program: &str,
    socket: &str,
    lost: impl FnOnce(Failure) + Send + 'static,
) -> Result<Option<(DuplexStream, AbortHandle)>, Failure> {
    let command = format!(
        "exec {} pipe --to {} 2>/dev/null",
        quote(program),
        quote(&format!("abstract:{socket}"))
    );
    child.begin(&command).await?;
    // It says something once it is connected, and nothing if nobody listens.
    let mut frames = Unframe::default();
    let first = match child.receive().await? {
        Frame::Data(bytes) => frames.take(&bytes),
        _ => return Ok(None),
    };
    let (ours, theirs) = duplex(ROOM);
    let task = tokio::spawn(async move {
        if let Err(failure) = carry(child, ours, frames, first).await {
            lost(failure);
        }
    });
    Ok(Some((theirs, task.abort_handle())))
}

/// Carries bytes both ways until either end is gone.
async fn carry(
    mut child: PhoneProcess,
    ours: DuplexStream,
    mut frames: Unframe,
    first: Vec<u8>,
) -> Result<(), Failure> {
    let (from_child, to_child) = child.halves();
    let (mut from_daemon, mut to_daemon) = split(ours);
    let up = async {
        let mut buffer = vec![0; LARGEST_DATA];
        loop {
            let length = from_daemon.read(&mut buffer).await?;
            if length == 0 {
                return io::Result::Ok(());
            }
            to_child.write_all(&Frame::data(&buffer[..length])).await?;
        }
    };
    let down = async {
        // Where the daemon is gone, the other direction says so.
        let _ = to_daemon.write_all(&first).await;
        loop {
            match receive(from_child).await? {
                Frame::Data(bytes) => {
                    let _ = to_daemon.write_all(&frames.take(&bytes)).await;
                }
                Frame::Answer(Answer::Ended) => return Ok(()),
                _ => return Err(Failure::lost("the pipe to the agent said nonsense")),
            }
        }
    };
    tokio::select! {
        up = up => up.map_err(Failure::lost),
        down = down => down,
    }
}

/// Takes the frames of `layerlab-agent pipe` apart: two bytes of length, and that many.
#[derive(Default)]
struct Unframe {
    received: Vec<u8>,
}

impl Unframe {
    /// What is whole of all that has come; beats are nothing.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let (mut content, mut rest) = (Vec::new(), &self.received[..]);
        while let Some((head, after)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_le_bytes(*head));
            let Some((frame, after)) = after.split_at_checked(length) else {
                break;
            };
            content.extend_from_slice(frame);
            rest = after;
        }
        self.received = rest.to_vec();
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_apart_wherever_they_were_cut() {
        let framed = b"\0\0\x03\0one\0\0\0\0\x05\0\0\x02\0xy\x01\0.";
        for size in 1..framed.len() {
            let mut frames = Unframe::default();
            let taken = framed.chunks(size).flat_map(|chunk| frames.take(chunk));
            assert_eq!(taken.collect::<Vec<u8>>(), b"one\0\x02\0xy.", "{size}");
        }
    }
}
