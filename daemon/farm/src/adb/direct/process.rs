//! The child process that speaks to one phone. Whoever drops it kills it: its library can neither be interrupted nor told
//! how long to wait.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::super::shell::MOST_OUTPUT;
use super::frames::{
    Answer, CHILD_COMMAND, Failure, FailureKind, Frame, LARGEST_DATA, Request, Target,
};

/// How long a phone may take to greet us. For ten seconds of it its owner is asked whether this host may debug it.
const GREETING: Duration = Duration::from_secs(15);

/// Which program is run as a child, and with which key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    pub(super) layerlab: &'a Path,
    /// The private key that phones know this host by. Made if it is not there.
    pub(super) key: &'a Path,
}

/// A child that has a connection to its phone.
#[derive(Debug)]
pub(super) struct PhoneProcess {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl PhoneProcess {
    /// Starts a child, which connects to the phone at `target`.
    pub(super) async fn start(
        program: Program<'_>,
        target: &Target,
    ) -> Result<PhoneProcess, Failure> {
        let mut child = PhoneProcess::spawn(program, &target.to_string())?;
        match timeout(GREETING, child.receive()).await {
            Ok(Ok(Frame::Answer(Answer::Ready))) => Ok(child),
            Ok(Ok(other)) => Err(unexpected(&other)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::new(
                FailureKind::Unreachable,
                format!("it says nothing for {} s", GREETING.as_secs()),
            )),
        }
    }

    /// Starts a child for `what`, which may say anything.
    pub(super) fn spawn(program: Program<'_>, what: &str) -> Result<PhoneProcess, Failure> {
        let failed = |error: io::Error| {
            Failure::lost(format!(
                "cannot run {}: {error}",
                program.layerlab.display()
            ))
        };
        let mut process = Command::new(program.layerlab)
            .arg(CHILD_COMMAND)
            .arg("--key")
            .arg(program.key)
            .args(["--", what])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // What interrupts layerlab does not end it in the middle of what is still to be done, such as restoring a phone.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Failure::lost("it has no standard input and output"));
        };
        Ok(PhoneProcess {
            process,
            to,
            from: BufReader::new(from),
        })
    }

    /// Whether it runs: it ends when it loses its phone.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Runs `command` with `input`, and returns all that it writes.
    pub(super) async fn exec(&mut self, command: &str, input: &[u8]) -> Result<Vec<u8>, Failure> {
        self.begin(command).await?;
        let input: Vec<u8> = input.chunks(LARGEST_DATA).flat_map(Frame::data).collect();
        let PhoneProcess { to, from, .. } = self;
        // Both at once: a command may write before it has read everything. Where the child is gone, its last words say why.
        let (_, output) = tokio::join!(to.write_all(&input), collect(from));
        output
    }

    /// Starts `command`, which is spoken with by [`receive`](Self::receive) and [`halves`](Self::halves).
    pub(super) async fn begin(&mut self, command: &str) -> Result<(), Failure> {
        let command = command.to_owned();
        send(&mut self.to, &Request::Exec { command }).await
    }

    /// Writes what `bytes` gives to the file at `path`.
    pub(super) async fn push(
        &mut self,
        path: &str,
        bytes: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<(), Failure> {
        let PhoneProcess { to, from, .. } = self;
        let path = path.to_owned();
        send(to, &Request::Push { path }).await?;
        let sent = async {
            let mut buffer = vec![0; LARGEST_DATA];
            loop {
                let length = bytes.read(&mut buffer).await?;
                to.write_all(&Frame::data(&buffer[..length])).await?;
                if length == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        let mut answer = std::pin::pin!(receive(from));
        // A failure comes in the middle.
        let answer = tokio::select! {
            answer = &mut answer => answer?,
            // Where the child is gone, its last words say why.
            _ = sent => answer.await?,
        };
        match answer {
            Frame::Answer(Answer::Pushed) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// The next thing it says. A failure is an error.
    pub(super) async fn receive(&mut self) -> Result<Frame, Failure> {
        receive(&mut self.from).await
    }

    /// Both directions, for a command that is talked to.
    pub(super) fn halves(&mut self) -> (&mut BufReader<ChildStdout>, &mut ChildStdin) {
        (&mut self.from, &mut self.to)
    }
}

async fn send(to: &mut ChildStdin, request: &Request) -> Result<(), Failure> {
    let frame = Frame::Request(request.clone()).encode();
    to.write_all(&frame).await.map_err(Failure::lost)
}

/// The next thing that a child says. A failure is an error.
pub(super) async fn receive(from: &mut BufReader<ChildStdout>) -> Result<Frame, Failure> {
    match Frame::receive(from).await {
        Ok(Frame::Answer(Answer::Failed(failure))) => Err(failure),
        Ok(frame) => Ok(frame),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Failure::lost("the process that speaks to it ended"))
        }
        Err(error) => Err(Failure::lost(error)),
    }
}

/// All that a command writes.
async fn collect(from: &mut BufReader<ChildStdout>) -> Result<Vec<u8>, Failure> {
    let mut output = Vec::new();
    loop {
        match receive(from).await? {
            Frame::Data(bytes) if output.len() + bytes.len() <= MOST_OUTPUT => {
                output.extend_from_slice(&bytes);
            }
            Frame::Data(_) => return Err(Failure::lost("the command writes without end")),
            Frame::Answer(Answer::Ended) => return Ok(output),
            other => return Err(unexpected(&other)),
        }
    }
}

fn unexpected(frame: &Frame) -> Failure {
    let what = match frame {
        Frame::Data(bytes) => format!("{} bytes", bytes.len()),
        other => format!("{other:?}"),
    };
    Failure::lost(format!("the process that speaks to it said {what} unasked"))
}
