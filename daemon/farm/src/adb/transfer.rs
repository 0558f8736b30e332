//! Files to the phone, and from it: the `sync:` service, and proof that what arrived is what was sent.
//! A file becomes visible under its name when it is whole.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use layerlab_profiles::{Hash, sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::Instant;

use super::direct::DirectPhone;
use super::endpoint::Stream;
use super::error::AdbError;
use super::fault::Fault;
use super::phone::{Phone, Way};
use super::server::Server;
use super::text::quote;
use super::wire::{Wire, within};

/// How long a transfer may take besides its bytes.
const BASE: Duration = Duration::from_secs(30);

/// A link that is slower than this is broken: USB 2 brings forty times as much.
const SLOWEST_BYTES_PER_S: u64 = 1 << 20;

/// The longest portion of a file that adbd takes.
const PORTION: usize = 64 * 1024;

/// As much of a file as is read in one go.
const READ_AHEAD: usize = 1 << 20;

/// An error message of adbd's that is longer than this is none.
const LONGEST_MESSAGE: u32 = 4096;

/// A regular file, for its owner alone. What it shall be in the end is said once it is whole.
const PRIVATE_FILE: u32 = 0o100_600;

/// What a phone without room says.
const NO_ROOM: &str = "No space left";

/// A file to be sent, with its proof.
#[derive(Clone, Debug)]
pub struct Content<'a> {
    source: Source<'a>,
    size: u64,
    sha256: String,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Read while it is sent: a farm's phones are all sent the same files at the same time.
    File(PathBuf),
}

impl<'a> Content<'a> {
    /// What `bytes` are.
    pub fn new(bytes: impl Into<Cow<'a, [u8]>>) -> Content<'a> {
        let bytes = bytes.into();
        Content {
            size: bytes.len() as u64,
            sha256: sha256(&bytes),
            source: Source::Bytes(bytes),
        }
    }

    /// Bytes whose SHA-256 is known. If it is another one, they are refused when they have arrived.
    pub fn with_sha256(bytes: &'a [u8], sha256: &str) -> Content<'a> {
        Content {
            size: bytes.len() as u64,
            sha256: sha256.to_owned(),
            source: Source::Bytes(bytes.into()),
        }
    }

    /// What the file at `path` holds now. If it holds something else later, that is refused, too.
    pub fn file(path: &Path) -> io::Result<Content<'static>> {
        let mut file = std::io::BufReader::with_capacity(READ_AHEAD, std::fs::File::open(path)?);
        let (mut size, mut hash) = (0, Hash::default());
        loop {
            let portion = file.fill_buf()?;
            if portion.is_empty() {
                break;
            }
            hash.update(portion);
            let length = portion.len();
            size += length as u64;
            file.consume(length);
        }
        Ok(Content {
            size,
            sha256: hash.finish(),
            source: Source::File(path.to_owned()),
        })
    }

    /// Its SHA-256 in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The size in bytes, as it must be on the phone after a transfer.
    pub fn size(&self) -> u64 {
        self.size
    }

    async fn reader(&self) -> io::Result<Box<dyn AsyncRead + Send + Unpin + '_>> {
        Ok(match &self.source {
            Source::Bytes(bytes) => Box::new(&bytes[..]),
            Source::File(path) => {
                let file = tokio::fs::File::open(path).await?;
                Box::new(BufReader::with_capacity(READ_AHEAD, file))
            }
        })
    }
}

/// Who proves that what arrived is what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The phone's own programs, size and SHA-256, before the file gets its name.
    Phone,
    /// The phone's own programs the size; the agent the SHA-256, which the file is named by, before it uses the file.
    Agent,
}

/// How long a push took.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    /// Sending the bytes.
    pub transfer: Duration,
    /// Proving them, as far as that is done now, and naming the file.
    pub proof: Duration,
}

fn deadline(bytes: u64) -> Duration {
    BASE + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
}

impl Phone {
    /// Puts `content` at `path` on the phone, with `mode`. What was there is replaced once the new file
    /// is whole and `prover` finds it right. The folder must be there.
    pub async fn push(
        &self,
        content: &Content<'_>,
        path: &str,
        mode: u32,
        prover: Prover,
    ) -> Result<Pushed, AdbError> {
        let partial = format!("{path}.partial");
        let pushed = self
            .send_and_place(content, &partial, path, mode, prover)
            .await;
        let error = match pushed {
            Err(error) => error,
            pushed => return pushed,
        };
        // Where there is no link, nothing can be removed; the next push overwrites it.
        let _ = self.shell(&format!("rm -f {}", quote(&partial)), b"").await;
        Err(self.full(error, content, path))
    }

    async fn send_and_place(
        &self,
        content: &Content<'_>,
        partial: &str,
        path: &str,
        mode: u32,
        prover: Prover,
    ) -> Result<Pushed, AdbError> {
        let begin = Instant::now();
        self.send(content, partial).await?;
        let transfer = begin.elapsed();
        let (from, to) = (quote(partial), quote(path));
        let (look, expected) = match prover {
            Prover::Phone => (look(&from), (content.size(), content.sha256.clone())),
            Prover::Agent => (size(&from), (content.size(), String::new())),
        };
        // One question instead of two.
        let command = format!(
            "found=$({look}) && set -- $found && echo \"$1 $2\" \
             && if [ \"$1 $2\" = '{} {}' ]; then chmod {mode:o} {from} && mv -f {from} {to}; fi",
            expected.0, expected.1
        );
        let limit = deadline(content.size());
        let output = self.shell_within(&command, b"", limit).await?;
        let found = parse(&self.checked("put a file in place", output)?.text());
        if found != expected {
            return Err(self.damaged(path, &expected, &found));
        }
        let proof = begin.elapsed() - transfer;
        tracing::debug!(
            phone = self.name(),
            path,
            bytes = content.size(),
            ?transfer,
            ?proof,
            "pushed"
        );
        Ok(Pushed { transfer, proof })
    }

    /// Reads the file at `path` on the phone.
    pub async fn pull(&self, path: &str) -> Result<Vec<u8>, AdbError> {
        let proof = self.proof_of(path, deadline(0)).await?;
        let limit = deadline(proof.0);
        let bytes = within(self.name(), "send a file", Fault::Shell, limit, async {
            match &self.way {
                Way::Server { server, transport } => {
                    let mut wire = self.sync(server, *transport).await?;
                    let answer = receive(&mut wire.stream, path, proof.0).await;
                    answered(&wire, "send a file", answer)
                }
                Way::Direct(phone) => {
                    let output = phone.run(&format!("cat {}", quote(path)), b"").await?;
                    Ok(self.checked("send a file", output)?.stdout)
                }
            }
        })
        .await?;
        let found = (bytes.len() as u64, sha256(&bytes));
        // A file that grew or changed meanwhile is told apart neither from a damaged one, nor need it be.
        if found == proof {
            return Ok(bytes);
        }
        Err(self.damaged(path, &proof, &found))
    }

    async fn send(&self, content: &Content<'_>, path: &str) -> Result<(), AdbError> {
        let limit = deadline(content.size());
        within(self.name(), "take a file", Fault::Shell, limit, async {
            match &self.way {
                Way::Server { server, transport } => {
                    let mut wire = self.sync(server, *transport).await?;
                    let mut bytes = content.reader().await.map_err(|error| wire.lost(&error))?;
                    let answer = send(&mut wire.stream, path, &mut bytes).await;
                    answered(&wire, "take a file", answer)
                }
                Way::Direct(phone) => {
                    self.refuse_without_room(phone, content.size(), path)
                        .await?;
                    let mut bytes = content.reader().await.map_err(|error| AdbError::Lost {
                        subject: self.name().to_owned(),
                        reason: error.to_string(),
                        fault: Fault::Shell,
                    })?;
                    phone.push(path, &mut bytes).await
                }
            }
        })
        .await
    }

    /// Without a server nobody says why a transfer broke off. What would not fit is not begun.
    async fn refuse_without_room(
        &self,
        phone: &DirectPhone,
        bytes: u64,
        path: &str,
    ) -> Result<(), AdbError> {
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let room = format!("stat -f -c '%a %S' {}", quote(folder));
        let output = phone.run(&room, b"").await?;
        let text = self.checked("say how much room it has", output)?.text();
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(blocks), Some(size)) if bytes > u64::saturating_mul(blocks, size) => {
                Err(AdbError::Refused {
                    subject: self.name().to_owned(),
                    what: "take a file",
                    message: NO_ROOM.to_owned(),
                    fault: Fault::Shell,
                })
            }
            _ => Ok(()),
        }
    }

    async fn sync(&self, server: &Server, transport: u32) -> Result<Wire, AdbError> {
        let mut wire = server.to_phone(transport, self.name()).await?;
        wire.request("sync:", "take or send files").await?;
        Ok(wire)
    }

    /// Whether the file at `path` is `content`.
    pub async fn holds(&self, content: &Content<'_>, path: &str) -> Result<bool, AdbError> {
        let there = format!("test -f {}", quote(path));
        if self.shell(&there, b"").await?.status != 0 {
            return Ok(false);
        }
        let found = self.proof_of(path, deadline(content.size())).await?;
        Ok(found == (content.size(), content.sha256.clone()))
    }

    fn damaged(&self, path: &str, expected: &(u64, String), found: &(u64, String)) -> AdbError {
        let show = |(bytes, sha256): &(u64, String)| match sha256.is_empty() {
            true => format!("{bytes} bytes"),
            false => format!("{bytes} bytes with SHA-256 {sha256}"),
        };
        AdbError::Damaged {
            name: self.name().to_owned(),
            path: path.to_owned(),
            expected: show(expected),
            found: show(found),
        }
    }

    /// The size and the hash of a file on the phone.
    async fn proof_of(&self, path: &str, limit: Duration) -> Result<(u64, String), AdbError> {
        let output = self.shell_within(&look(&quote(path)), b"", limit).await?;
        Ok(parse(&self.checked("hash a file", output)?.text()))
    }

    /// A refusal for want of room is said as such: trying again is of no use.
    fn full(&self, error: AdbError, content: &Content<'_>, path: &str) -> AdbError {
        match &error {
            AdbError::Refused { message, .. } if message.contains(NO_ROOM) => {
                AdbError::StorageFull {
                    name: self.name().to_owned(),
                    path: path.to_owned(),
                    bytes: content.size(),
                }
            }
            _ => error,
        }
    }
}

/// The command that says the size of a file.
fn size(quoted: &str) -> String {
    format!("stat -L -c %s {quoted}")
}

/// The command that says the size and the hash of a file.
fn look(quoted: &str) -> String {
    format!("{} && sha256sum <{quoted}", size(quoted))
}

/// What these commands said. Nonsense is no bytes, with no hash.
fn parse(said: &str) -> (u64, String) {
    let mut words = said.split_whitespace();
    let size = words.next().and_then(|size| size.parse().ok());
    let hash = words.next().unwrap_or_default();
    (size.unwrap_or_default(), hash.to_owned())
}

/// What a transfer gave; on the inside, adbd's reason why it gave nothing.
type Answer<T> = io::Result<Result<T, String>>;

fn answered<T>(wire: &Wire, what: &'static str, answer: Answer<T>) -> Result<T, AdbError> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(message)) => Err(wire.refused(what, message)),
        Err(error) => Err(wire.lost(&error)),
    }
}

/// Sends `bytes` to the file at `path`. Adbd may refuse them at any time, and then takes them all
/// before it notices that nobody wants them: its answer is read while they are sent.
async fn send(
    stream: &mut Stream,
    path: &str,
    bytes: &mut (dyn AsyncRead + Send + Unpin),
) -> Answer<()> {
    let (mut from_phone, mut to_phone) = tokio::io::split(stream);
    let mut answer = pin!(async {
        let (id, length) = head(&mut from_phone).await?;
        match &id {
            b"OKAY" => Ok(Ok(())),
            b"FAIL" => Ok(Err(message(&mut from_phone, length).await?)),
            _ => Err(nonsense(id)),
        }
    });
    let sent = async {
        let target = format!("{path},{PRIVATE_FILE}");
        let mut packet = packet(b"SEND", target.len(), target.as_bytes());
        to_phone.write_all(&packet).await?;
        packet.resize(8 + PORTION, 0);
        packet[..4].copy_from_slice(b"DATA");
        loop {
            let length = bytes.read(&mut packet[8..]).await?;
            if length == 0 {
                break;
            }
            packet[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            to_phone.write_all(&packet[..8 + length]).await?;
        }
        // What stands for the length is the time of the file's last change.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        to_phone
            .write_all(&self::packet(b"DONE", now.as_secs() as usize, b""))
            .await
    };
    tokio::select! {
        answer = &mut answer => answer,
        sent = sent => match sent {
            Ok(()) => answer.await,
            Err(error) => Err(error),
        },
    }
}

/// Reads the file at `path`, which has about `size` bytes.
async fn receive(stream: &mut Stream, path: &str, size: u64) -> Answer<Vec<u8>> {
    let request = packet(b"RECV", path.len(), path.as_bytes());
    stream.write_all(&request).await?;
    let mut bytes = Vec::new();
    loop {
        let (id, length) = head(stream).await?;
        match &id {
            // A file that grows for ever has an end here.
            b"DATA" if length as usize <= PORTION && bytes.len() as u64 <= size => {
                let end = bytes.len();
                bytes.resize(end + length as usize, 0);
                stream.read_exact(&mut bytes[end..]).await?;
            }
            b"DONE" => return Ok(Ok(bytes)),
            b"FAIL" => return Ok(Err(message(stream, length).await?)),
            _ => return Err(nonsense(id)),
        }
    }
}

fn packet(id: &[u8; 4], number: usize, content: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(8 + content.len().max(PORTION));
    packet.extend_from_slice(id);
    packet.extend_from_slice(&(number as u32).to_le_bytes());
    packet.extend_from_slice(content);
    packet
}

/// The kind of a packet, and a number: mostly the length of what follows.
async fn head(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<([u8; 4], u32)> {
    let mut id = [0; 4];
    stream.read_exact(&mut id).await?;
    Ok((id, stream.read_u32_le().await?))
}

async fn message(stream: &mut (impl AsyncReadExt + Unpin), length: u32) -> io::Result<String> {
    let mut message = vec![0; length.min(LONGEST_MESSAGE) as usize];
    stream.read_exact(&mut message).await?;
    Ok(String::from_utf8_lossy(&message).into_owned())
}

fn nonsense(found: [u8; 4]) -> io::Error {
    io::Error::other(format!(
        "`{}` is not of adb's transfers",
        found.escape_ascii()
    ))
}
