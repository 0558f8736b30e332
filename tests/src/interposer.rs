//! An adb server that is none: it stands before a real one, tells lies about its phones, and spoils
//! what passes. For what the real server and the real adbd cannot be made to do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What is done to the bytes between layerlab and phones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Bytes pass as they are.
    None,
    /// The connection is cut after so many bytes.
    CutAfter(u64),
    /// The byte at this place is another one.
    CorruptAt(u64),
    /// The byte at this place of what comes back from a phone's agent is another one.
    CorruptBackAt(u64),
    /// Nothing passes after so many bytes, and nothing is closed.
    StallAfter(u64),
    /// Each portion of bytes is late by so many milliseconds.
    Delay(u64),
}

/// A server before the server.
pub struct Interposer {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    real: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
    sent: AtomicU64,
    calls: AtomicU64,
}

struct State {
    /// The list of phones, as told to layerlab; `None`: the real one.
    list: Option<String>,
    version: u64,
    /// The fault, and how often it still happens. Delays last as long as they are set.
    fault: (Fault, u32),
}

impl Interposer {
    /// Stands before the server at the socket `real`.
    pub fn before(real: PathBuf) -> Interposer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            real,
            state: Mutex::new(State {
                list: None,
                version: 0,
                fault: (Fault::None, 0),
            }),
            changed: Condvar::new(),
            sent: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // Whoever breaks off is layerlab's business.
                thread::spawn(move || shared.serve(stream));
            }
        });
        Interposer { address, shared }
    }

    /// Tells layerlab this list of phones from now on; `None`: the real one.
    pub fn list(&self, list: Option<&str>) {
        let mut state = self.shared.state.lock().expect("no panic");
        state.list = list.map(str::to_owned);
        state.version += 1;
        self.shared.changed.notify_all();
    }

    /// Spoils connections to phones, `times` of those that carry enough bytes for it.
    pub fn spoil(&self, fault: Fault, times: u32) {
        self.shared.state.lock().expect("no panic").fault = (fault, times);
    }

    /// How many bytes layerlab has sent to phones, requests included.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// How often layerlab has had the server call a phone at a network address.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// How many connections to phones will yet be spoiled.
    pub fn left_to_spoil(&self) -> u32 {
        self.shared.state.lock().expect("no panic").fault.1
    }
}

impl Shared {
    fn serve(self: Arc<Shared>, mut client: TcpStream) -> io::Result<()> {
        let request = read_text(&mut client)?;
        if request.starts_with("host:connect:") {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let list = self.state.lock().expect("no panic").list.clone();
        match (request.as_str(), list) {
            ("host:devices-l", Some(list)) => {
                client.write_all(b"OKAY")?;
                write_text(&client, &list)
            }
            ("host:track-devices-l", Some(_)) => self.track(client),
            _ => self.pass(client, &request),
        }
    }

    fn track(&self, mut client: TcpStream) -> io::Result<()> {
        client.write_all(b"OKAY")?;
        let mut told = None;
        loop {
            let mut state = self.state.lock().expect("no panic");
            while told == Some(state.version) {
                state = self.changed.wait(state).expect("no panic");
            }
            told = Some(state.version);
            let Some(list) = state.list.clone() else {
                // The real list is followed from here on, by another connection.
                return client.shutdown(Shutdown::Both);
            };
            drop(state);
            write_text(&client, &list)?;
        }
    }

    fn pass(self: Arc<Shared>, client: TcpStream, request: &str) -> io::Result<()> {
        let server = UnixStream::connect(&self.real)?;
        client.set_nodelay(true)?;
        write_text(&server, request)?;
        let to_phone = request.starts_with("host:transport");
        let to_agent = Arc::new(AtomicBool::new(false));
        let (from_server, to_client) = (server.try_clone()?, client.try_clone()?);
        let (shared, from_agent) = (Arc::clone(&self), Arc::clone(&to_agent));
        let back = thread::spawn(move || {
            let _ = shared.carry_back(from_server, &to_client, &from_agent);
            let _ = to_client.shutdown(Shutdown::Write);
        });
        let _ = self.carry(client, &server, to_phone, &to_agent);
        let _ = server.shutdown(Shutdown::Write);
        let _ = back.join();
        Ok(())
    }

    /// Whether `fault` happens now.
    fn happens(&self, fault: Fault) -> bool {
        let mut state = self.state.lock().expect("no panic");
        if state.fault.0 != fault || state.fault.1 == 0 {
            return false;
        }
        state.fault.1 -= 1;
        true
    }

    fn carry(
        &self,
        mut from: TcpStream,
        mut to: &UnixStream,
        to_phone: bool,
        to_agent: &AtomicBool,
    ) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        let mut passed: u64 = 0;
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            if passed == 0 {
                let asked = String::from_utf8_lossy(&buffer[..read]);
                to_agent.store(asked.contains("localabstract:"), Ordering::Relaxed);
            }
            let portion = &mut buffer[..read];
            let until = passed + read as u64;
            let fault = self.state.lock().expect("no panic").fault.0;
            match fault {
                Fault::CutAfter(place) | Fault::StallAfter(place) | Fault::CorruptAt(place)
                    if !to_phone || !(passed..until).contains(&place) => {}
                Fault::CutAfter(place) if self.happens(fault) => {
                    to.write_all(&portion[..(place - passed) as usize])?;
                    to.shutdown(Shutdown::Both)?;
                    return from.shutdown(Shutdown::Both);
                }
                Fault::StallAfter(place) if self.happens(fault) => {
                    to.write_all(&portion[..(place - passed) as usize])?;
                    // Swallowed, until the other side gives up.
                    while from.read(&mut buffer)? > 0 {}
                    return Ok(());
                }
                Fault::CorruptAt(place) if self.happens(fault) => {
                    portion[(place - passed) as usize] ^= 0x55;
                }
                Fault::Delay(milliseconds) if to_phone => {
                    thread::sleep(Duration::from_millis(milliseconds));
                }
                _ => {}
            }
            to.write_all(portion)?;
            passed = until;
            if to_phone {
                self.sent.fetch_add(read as u64, Ordering::Relaxed);
            }
        }
    }

    fn carry_back(
        &self,
        mut from: UnixStream,
        mut to: &TcpStream,
        from_agent: &AtomicBool,
    ) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        let mut passed: u64 = 0;
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            let until = passed + read as u64;
            let fault = self.state.lock().expect("no panic").fault.0;
            if let Fault::CorruptBackAt(place) = fault
                && from_agent.load(Ordering::Relaxed)
                && (passed..until).contains(&place)
                && self.happens(fault)
            {
                // No text has it: it is noticed wherever it stands.
                buffer[(place - passed) as usize] |= 0x80;
            }
            to.write_all(&buffer[..read])?;
            passed = until;
        }
    }
}

fn read_text(stream: &mut TcpStream) -> io::Result<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let digits = std::str::from_utf8(&length).map_err(io::Error::other)?;
    let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

fn write_text(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:04x}{text}", text.len()).as_bytes())
}
