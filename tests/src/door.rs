//! A door before a virtual phone, whose adbd lets everybody in: it asks for a key first, as phones do, and knows one, or has
//! an owner who accepts any, or none who does. Or one that hangs up at first.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use rsa::pkcs8::DecodePrivateKey;
use rsa::{Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};

const AUTH: &[u8; 4] = b"AUTH";

/// What AUTH is about.
const TOKEN: u32 = 1;
const SIGNATURE: u32 = 2;
const PUBLIC_KEY: u32 = 3;

/// What the door asks to be signed, as if it were a hash by SHA-1.
const ASKED: &[u8; 20] = b"what phones ask once";

/// What signatures of such hashes begin with (PKCS #1).
const SHA1: [u8; 15] = [
    0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00, 0x04, 0x14,
];

/// Who is let in.
#[derive(Clone, Debug)]
pub enum Owner {
    /// Whoever has signed with the key in this file.
    Knows(PathBuf),
    /// Whoever shows a key.
    Accepts,
    /// Nobody.
    Sleeps,
}

/// Stands before the phone at `phone` for as long as the process lives. Returns where.
pub fn before(phone: &str, owner: Owner) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let phone = phone.to_owned();
    thread::spawn(move || {
        for guest in listener.incoming().flatten() {
            let (phone, owner) = (phone.clone(), owner.clone());
            // Guests come and go.
            thread::spawn(move || welcome(guest, &phone, &owner));
        }
    });
    address
}

/// Stands before the phone at `phone`, hangs up on the first `times` guests and lets all others in. Returns where.
pub fn hanging_up(phone: &str, times: usize) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let phone = phone.to_owned();
    thread::spawn(move || {
        for guest in listener.incoming().flatten().skip(times) {
            let phone = phone.clone();
            thread::spawn(move || carry(guest, TcpStream::connect(phone)?));
        }
    });
    address
}

fn welcome(mut guest: TcpStream, phone: &str, owner: &Owner) -> io::Result<()> {
    let greeting = Message::read(&mut guest)?;
    Message::auth(TOKEN, ASKED).write(&mut guest)?;
    let signature = Message::read(&mut guest)?;
    assert_eq!(signature.about(), (AUTH, SIGNATURE));
    let is_in = match owner {
        Owner::Knows(key) => is_by(key, &signature.content),
        Owner::Accepts | Owner::Sleeps => false,
    };
    if !is_in {
        Message::auth(TOKEN, ASKED).write(&mut guest)?;
        let key = Message::read(&mut guest)?;
        assert_eq!(key.about(), (AUTH, PUBLIC_KEY));
        if !matches!(owner, Owner::Accepts) {
            // Whoever waits, waits in vain.
            return guest.read(&mut [0]).map(drop);
        }
    }
    let mut inside = TcpStream::connect(phone)?;
    greeting.write(&mut inside)?;
    carry(guest, inside)
}

/// Passes bytes on in both directions until the guest is gone.
fn carry(mut guest: TcpStream, mut inside: TcpStream) -> io::Result<()> {
    let (mut from_inside, mut to_guest) = (inside.try_clone()?, guest.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_inside, &mut to_guest);
        to_guest.shutdown(std::net::Shutdown::Both)
    });
    io::copy(&mut guest, &mut inside)?;
    inside.shutdown(std::net::Shutdown::Both)
}

fn is_by(key: &Path, signature: &[u8]) -> bool {
    let text = std::fs::read_to_string(key).expect("a key");
    let key = RsaPrivateKey::from_pkcs8_pem(&text).expect("a key as adb writes it");
    let signed = [&SHA1[..], ASKED].concat();
    RsaPublicKey::from(&key)
        .verify(Pkcs1v15Sign::new_unprefixed(), &signed, signature)
        .is_ok()
}

/// One of adb's messages.
struct Message {
    head: [u8; 24],
    content: Vec<u8>,
}

impl Message {
    fn auth(about: u32, content: &[u8]) -> Message {
        let command = u32::from_le_bytes(*AUTH);
        let sum = content.iter().map(|byte| u32::from(*byte)).sum();
        let words = [command, about, 0, content.len() as u32, sum, !command];
        let mut head = [0; 24];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Message {
            head,
            content: content.to_vec(),
        }
    }

    fn read(from: &mut TcpStream) -> io::Result<Message> {
        let mut head = [0; 24];
        from.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
        let mut content = vec![0; length as usize];
        from.read_exact(&mut content)?;
        Ok(Message { head, content })
    }

    fn write(&self, to: &mut TcpStream) -> io::Result<()> {
        to.write_all(&[&self.head[..], &self.content].concat())
    }

    /// The command, and what it is about.
    fn about(&self) -> (&[u8; 4], u32) {
        let (command, rest) = self.head.split_first_chunk().expect("24 bytes");
        let (about, _) = rest.split_first_chunk().expect("20 bytes");
        (command, u32::from_le_bytes(*about))
    }
}
