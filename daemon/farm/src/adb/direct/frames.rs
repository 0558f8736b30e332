//! What layerlab and the child process that speaks to one phone without an adb server say to each other, over the child's
//! standard input and output: one byte of kind, four of length, little-endian, and that many of content. A child does one
//! thing at a time, and ends when its standard input does.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::super::address::Address;

/// The subcommand of layerlab that is the child. Not for people.
pub const CHILD_COMMAND: &str = "direct-child";

/// What stands for a target where a child is to look for phones.
pub const LOOK: &str = "look";

/// The most bytes of one frame: as much as the child's library takes of a file in one go.
pub const LARGEST_DATA: usize = 65_535;

/// No frame is longer. Data that come from the phone may be as long as adb's longest packet.
const LONGEST: usize = 2 << 20;

const REQUEST: u8 = b'R';
const ANSWER: u8 = b'A';
const DATA: u8 = b'D';

/// How one phone is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Its adbd listens at a network address.
    Network(Address),
    /// It is at a USB port of this host, with this serial.
    Usb(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Network(address) => write!(f, "tcp:{address}"),
            Target::Usb(serial) => write!(f, "usb:{serial}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("tcp", address)) => Ok(Target::Network(address.parse()?)),
            Some(("usb", serial)) => Ok(Target::Usb(serial.to_owned())),
            _ => Err("write tcp:HOST:PORT or usb:SERIAL".to_owned()),
        }
    }
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// To the child.
    Request(Request),
    /// From the child.
    Answer(Answer),
    /// To the phone or from it, as the request before says. To the phone, no bytes are the end of a file.
    Data(Vec<u8>),
}

/// What the child is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Run a command. Data go to its standard input and come from its standard output until it has [`Ended`](Answer::Ended).
    /// Whoever is to be sent data must write something first.
    Exec {
        /// For the phone's shell.
        command: String,
    },
    /// Write a file, of which the content follows as data.
    Push {
        /// Where.
        path: String,
    },
}

/// What the child says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The phone greeted us. Comes first.
    Ready,
    /// The command is over; how it went is not known.
    Ended,
    /// The file was sent. Whether it arrived whole is not known.
    Pushed,
    /// Nothing more can be done over this connection. Comes last.
    Failed(Failure),
    /// All phones that are seen now. Only from a child that looks for phones, first at once and then after each change.
    Seen(Vec<Sighting>),
}

/// Why a phone cannot be talked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// What the system or the library said.
    pub reason: String,
}

/// A sort of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nothing answers at its address.
    Unreachable,
    /// What answers there says nothing that a phone says.
    Mute,
    /// It does not accept our key.
    Unauthorized,
    /// No such phone is at a USB port.
    Absent,
    /// This user may not open its USB device.
    NoPermissions,
    /// Another program has its USB device.
    Busy,
    /// The connection broke off, or what came over it is no sense.
    Lost,
}

/// A phone that was seen, on USB or by its name on the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// How it is reached, as [`Target`] writes it.
    pub target: String,
    /// What it calls itself.
    pub description: String,
    /// Its USB port, such as `1-4.2`.
    pub usb_path: Option<String>,
    /// What keeps it from being used, as far as that is seen.
    pub obstacle: Option<FailureKind>,
}

impl Failure {
    /// A failure of this sort.
    pub fn new(kind: FailureKind, reason: impl fmt::Display) -> Failure {
        Failure {
            kind,
            reason: reason.to_string(),
        }
    }

    /// The connection failed.
    pub fn lost(reason: impl fmt::Display) -> Failure {
        Failure::new(FailureKind::Lost, reason)
    }
}

impl Frame {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Neither requests nor answers hold anything that JSON cannot.
        let (kind, content) = match self {
            Frame::Request(request) => (REQUEST, serde_json::to_vec(request).unwrap_or_default()),
            Frame::Answer(answer) => (ANSWER, serde_json::to_vec(answer).unwrap_or_default()),
            Frame::Data(bytes) => return Frame::data(bytes),
        };
        framed(kind, &content)
    }

    /// The frame of `bytes`.
    pub fn data(bytes: &[u8]) -> Vec<u8> {
        framed(DATA, bytes)
    }

    fn decode(kind: u8, content: Vec<u8>) -> io::Result<Frame> {
        Ok(match kind {
            REQUEST => Frame::Request(serde_json::from_slice(&content)?),
            ANSWER => Frame::Answer(serde_json::from_slice(&content)?),
            DATA => Frame::Data(content),
            _ => return Err(nonsense()),
        })
    }

    /// The next frame; nothing where the other end is gone. Blocks.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut head = [0; 5];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (kind, length) = parse(head)?;
        let mut content = vec![0; length];
        from.read_exact(&mut content)?;
        Frame::decode(kind, content).map(Some)
    }

    /// The next frame; the end of the stream is an error. Dropping the future may lose a part of it.
    pub async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
        let mut head = [0; 5];
        from.read_exact(&mut head).await?;
        let (kind, length) = parse(head)?;
        let mut content = vec![0; length];
        from.read_exact(&mut content).await?;
        Frame::decode(kind, content)
    }
}

fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(5 + content.len());
    frame.push(kind);
    frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

fn parse(head: [u8; 5]) -> io::Result<(u8, usize)> {
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    match length <= LONGEST {
        true => Ok((kind, length)),
        false => Err(nonsense()),
    }
}

fn nonsense() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "this is not layerlab's protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let path = "/data/local/tmp/\u{1f4f1} ' \n".to_owned();
        let frames = [
            Frame::Request(Request::Push { path }),
            Frame::Data(vec![0, b'\n', 255]),
            Frame::Data(Vec::new()),
            Frame::Answer(Answer::Failed(Failure::lost("it went"))),
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let (mut blocking, mut waiting) = (&bytes[..], &bytes[..]);
        for frame in &frames {
            assert_eq!(
                Frame::read(&mut blocking).expect("sound").as_ref(),
                Some(frame)
            );
            assert_eq!(&Frame::receive(&mut waiting).await.expect("sound"), frame);
        }
        assert_eq!(Frame::read(&mut blocking).expect("an end"), None);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [
            &b"D\xff\xff\xff\xff"[..],
            b"X\0\0\0\0",
            b"R\x02\0\0\0{}",
            b"D\x05\0\0\0ab",
        ] {
            assert!(Frame::read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn targets_are_read_as_they_were_written() {
        for text in ["tcp:127.0.0.1:5555", "tcp:[::1]:5555", "usb:R58: x"] {
            let target: Target = text.parse().expect("a target");
            assert_eq!(target.to_string(), text);
        }
        assert!("tcp:nowhere".parse::<Target>().is_err());
    }
}
