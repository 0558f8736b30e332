//! Commands on the phone: the service `shell,v2`, which keeps standard output, standard error and the
//! exit status apart. Packets of one byte of kind, four of length, and that many of content.

use tokio::io::AsyncWriteExt;

use super::error::AdbError;
use super::wire::Wire;

/// Kinds of packets.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;
const CLOSE_STDIN: u8 = 4;

/// As much of standard input as goes into one packet: below what every adbd takes.
const CHUNK: usize = 32 * 1024;

/// A command that writes more than this writes nonsense.
pub(super) const MOST_OUTPUT: usize = 16 << 20;

/// What a command on the phone did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit status.
    pub status: u8,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The last thing that it said, for an error message.
    pub fn last_words(&self) -> String {
        let of = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let line = text.lines().rfind(|line| !line.trim().is_empty());
            line.map(|line| line.chars().take(2_000).collect::<String>())
        };
        of(&self.stderr)
            .or_else(|| of(&self.stdout))
            .unwrap_or_default()
    }
}

/// Runs `command` over a connection that is switched to the phone, with `stdin` as its input.
pub(super) async fn run(wire: &mut Wire, command: &str, stdin: &[u8]) -> Result<Output, AdbError> {
    wire.request(&format!("shell,v2,raw:{command}"), "run a command")
        .await?;
    let mut packets = Vec::with_capacity(stdin.len() + 64);
    for chunk in stdin.chunks(CHUNK) {
        packets.push(STDIN);
        packets.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        packets.extend_from_slice(chunk);
    }
    packets.extend_from_slice(&[CLOSE_STDIN, 0, 0, 0, 0]);
    // A command may end without reading its input: then the answer, not the write, says how it went.
    let _ = wire.stream.write_all(&packets).await;
    let mut output = Output::default();
    loop {
        let mut head = [0; 5];
        wire.read(&mut head).await?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length + output.stdout.len() + output.stderr.len() > MOST_OUTPUT {
            let error = std::io::Error::other("the command writes without end");
            return Err(wire.lost(&error));
        }
        let mut content = vec![0; length];
        wire.read(&mut content).await?;
        match kind {
            STDOUT => output.stdout.extend(content),
            STDERR => output.stderr.extend(content),
            EXIT => {
                output.status = content.first().copied().unwrap_or(u8::MAX);
                return Ok(output);
            }
            // Later versions may have more kinds; those that there are do not come from the phone.
            _ => {}
        }
    }
}
