//! adb's messages on their way between a phone and the library. Each is passed on as a whole, and what a phone says of a
//! stream that is over is not. The library says OKAY to the end of a stream, whereupon adbd ends it once more; it reads for a
//! moment after each stream, takes what comes too late for the answer to its next request, and loses its place where a
//! message comes in two parts.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU32, Ordering};

/// Six numbers of four bytes: the command, two that it is about, the length of the content, its sum, and the command's
/// complement.
const HEAD: usize = 24;

/// No content is longer: as much as the library says that it takes.
const LONGEST: usize = 1 << 20;

const OPEN: [u8; 4] = *b"OPEN";
const OKAY: [u8; 4] = *b"OKAY";
const WRITE: [u8; 4] = *b"WRTE";
const CLOSE: [u8; 4] = *b"CLSE";

/// The command after which all that follows is encrypted.
pub(crate) const ENCRYPT: [u8; 4] = *b"STLS";

/// The library's number of the one stream that it has open; 0 where the phone has closed it.
#[derive(Debug, Default)]
pub(crate) struct OpenStream(AtomicU32);

/// A whole message.
#[derive(Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The next message; nothing where the other end is gone.
    ///
    /// # Errors
    /// When the connection fails, or what comes is no message.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Message>> {
        let mut bytes = vec![0; HEAD];
        if from.read(&mut bytes[..1])? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut bytes[1..])?;
        let message = Message(bytes);
        let length = message.number(3) as usize;
        if message.number(5) != !message.number(0) || length > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it does not speak adb's protocol",
            ));
        }
        let Message(mut bytes) = message;
        bytes.resize(HEAD + length, 0);
        from.read_exact(&mut bytes[HEAD..])?;
        Ok(Some(Message(bytes)))
    }

    pub(crate) fn command(&self) -> [u8; 4] {
        self.number(0).to_le_bytes()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn number(&self, index: usize) -> u32 {
        let at = 4 * index;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

impl OpenStream {
    /// Takes notice of what the library says.
    pub(crate) fn note(&self, message: &Message) {
        if message.command() == OPEN {
            self.0.store(message.number(1), Ordering::SeqCst);
        }
    }

    /// Whether the library is to hear what the phone says: it is of no stream, or of the open one, up to its end.
    pub(crate) fn admits(&self, message: &Message) -> bool {
        let stream = message.number(2);
        match message.command() {
            CLOSE => {
                let closed = self
                    .0
                    .compare_exchange(stream, 0, Ordering::SeqCst, Ordering::SeqCst);
                stream != 0 && closed.is_ok()
            }
            OKAY | WRITE => stream == self.0.load(Ordering::SeqCst),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(command: &[u8; 4], first: u32, second: u32, content: &[u8]) -> Vec<u8> {
        let command = u32::from_le_bytes(*command);
        let numbers = [command, first, second, content.len() as u32, 0, !command];
        let head = numbers.iter().flat_map(|number| number.to_le_bytes());
        head.chain(content.iter().copied()).collect()
    }

    fn read(bytes: &[u8]) -> Message {
        Message::read(&mut &bytes[..]).expect("sound").expect("one")
    }

    #[test]
    fn messages_are_read_one_after_the_other() {
        let both = [message(b"WRTE", 1, 2, b"yes"), message(b"CLSE", 1, 2, b"")];
        let stream = both.concat();
        let mut rest = &stream[..];
        for expected in &both {
            let message = Message::read(&mut rest).expect("sound").expect("one");
            assert_eq!(message.bytes(), expected);
        }
        assert!(Message::read(&mut rest).expect("an end").is_none());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let mut damaged = message(b"WRTE", 1, 2, b"yes");
        damaged[20] ^= 1;
        let mut endless = message(b"WRTE", 1, 2, b"");
        endless[15] = 0xff;
        let whole = message(b"WRTE", 1, 2, b"yes");
        for bytes in [
            &damaged[..],
            &endless[..],
            &whole[..whole.len() - 1],
            b"SSH-2.0-OpenSSH_9.2p1\r\n.......",
        ] {
            assert!(Message::read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_of_a_stream_that_is_over_is_not_heard() {
        let open = OpenStream::default();
        open.note(&read(&message(b"OPEN", 7, 0, b"exec:true\0")));
        open.note(&read(&message(b"WRTE", 9, 3, b"")));
        let hears = |command, stream| open.admits(&read(&message(command, 3, stream, b"")));
        assert!(hears(b"OKAY", 7) && hears(b"WRTE", 7) && hears(b"CLSE", 7));
        // Once more, because the library said OKAY to it.
        for late in [b"CLSE", b"OKAY", b"WRTE"] {
            assert!(!hears(late, 7), "{late:?}");
        }
        open.note(&read(&message(b"OPEN", 8, 0, b"exec:true\0")));
        assert!(!hears(b"CLSE", 7) && hears(b"CLSE", 8));
        assert!(hears(b"CNXN", 0));
    }
}
