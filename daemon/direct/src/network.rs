//! A phone at a network address. The library is given a connection within this process, from which bytes are passed on:
//! it takes no notice of the end of a connection, gives up what is not written within two seconds, and cannot tell an owner
//! who says no from a lost phone.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use adb_client::ADBDeviceExt;
use adb_client::tcp::ADBTcpDevice;
use layerlab_farm::adb::Address;
use layerlab_farm::adb::direct::frames::{Failure, FailureKind};

use crate::messages::{ENCRYPT, Message, OpenStream};
use crate::outbox::Outbox;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// As much as is passed on in one go where it is encrypted.
const PORTION: usize = 64 * 1024;

/// The first word that a phone says; nothing before it.
type FirstWord = Arc<OnceLock<[u8; 4]>>;

/// Opens the phone that listens at `address`.
pub(crate) fn open(
    address: &Address,
    key: &Path,
    outbox: Outbox,
) -> Result<Box<dyn ADBDeviceExt>, Failure> {
    let phone = connect(address).map_err(|error| Failure::new(FailureKind::Unreachable, error))?;
    let first_word = FirstWord::default();
    let inner = relay(phone, &first_word, outbox).map_err(Failure::lost)?;
    match ADBTcpDevice::new_with_custom_private_key(inner, key) {
        Ok(device) => Ok(device.boxed()),
        Err(error) => Err(ungreeted(&first_word, &error.to_string())),
    }
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for found in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Passes bytes on between `phone` and whoever connects first to the address that is returned.
fn relay(phone: TcpStream, first_word: &FirstWord, outbox: Outbox) -> io::Result<SocketAddr> {
    phone.set_nodelay(true)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let first_word = Arc::clone(first_word);
    thread::spawn(move || {
        let carried = carry(&listener, phone, &first_word);
        // Until it has greeted us, a phone that hangs up has said why, or nothing.
        let said = carried
            .err()
            .map_or("it closed the connection".to_owned(), |error| {
                error.to_string()
            });
        outbox.fail(match outbox.is_ready() {
            true => Failure::lost(said),
            false => ungreeted(&first_word, &said),
        })
    });
    Ok(address)
}

/// Returns when the phone is gone.
fn carry(listener: &TcpListener, mut phone: TcpStream, first_word: &FirstWord) -> io::Result<()> {
    let (mut library, _) = listener.accept()?;
    library.set_nodelay(true)?;
    let (mut from_library, mut to_phone) = (library.try_clone()?, phone.try_clone()?);
    let open_stream = Arc::new(OpenStream::default());
    // Whatever the library writes is taken at once: it does not wait for long.
    let (to_writer, portions) = channel::<Vec<u8>>();
    let noting = Arc::clone(&open_stream);
    thread::spawn(move || {
        // The other direction says that the phone is gone.
        let _ = take(&mut from_library, &noting, &to_writer);
    });
    thread::spawn(move || {
        for portion in portions {
            if to_phone.write_all(&portion).is_err() {
                return;
            }
        }
    });
    while let Some(message) = Message::read(&mut phone)? {
        let _ = first_word.set(message.command());
        if open_stream.admits(&message) {
            library.write_all(message.bytes())?;
        }
        if message.command() == ENCRYPT {
            return io::copy(&mut phone, &mut library).map(drop);
        }
    }
    Ok(())
}

/// Takes what the library says, until it says no more.
fn take(
    library: &mut TcpStream,
    open_stream: &OpenStream,
    to_writer: &Sender<Vec<u8>>,
) -> io::Result<()> {
    let send = |bytes: &[u8]| to_writer.send(bytes.to_vec()).map_err(io::Error::other);
    while let Some(message) = Message::read(library)? {
        open_stream.note(&message);
        send(message.bytes())?;
        if message.command() == ENCRYPT {
            break;
        }
    }
    let mut buffer = vec![0; PORTION];
    while let length @ 1.. = library.read(&mut buffer)? {
        send(&buffer[..length])?;
    }
    Ok(())
}

/// Why a phone did not greet us: one that first asked for a key or a certificate did not accept ours.
fn ungreeted(first_word: &FirstWord, reason: &str) -> Failure {
    match first_word.get() {
        Some(b"AUTH" | &ENCRYPT) => Failure::new(FailureKind::Unauthorized, reason),
        _ => Failure::new(
            FailureKind::Mute,
            format!("what answers there is no phone's adbd: {reason}"),
        ),
    }
}
