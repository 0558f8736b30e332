//! Gates before servers, which can be closed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What is before a server: open, it passes everything on; closed, it hangs up on everybody.
#[derive(Debug)]
pub struct Gate {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<Mutex<GateState>>,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    /// Both ends of whatever is passing.
    passing: Vec<Box<dyn End>>,
}

impl std::fmt::Debug for GateState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let passing = self.passing.len();
        write!(f, "closed: {}, passing: {passing}", self.is_closed)
    }
}

/// One end of a connection.
trait End: Read + Write + Send {
    fn another(&self) -> io::Result<Box<dyn End>>;
    fn hang_up(&self, how: Shutdown) -> io::Result<()>;
}

impl End for TcpStream {
    fn another(&self) -> io::Result<Box<dyn End>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn hang_up(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl End for UnixStream {
    fn another(&self) -> io::Result<Box<dyn End>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn hang_up(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl Gate {
    /// An open gate before the server at `address`, for as long as the process lives. What goes to the server becomes what
    /// `change` makes of it.
    pub fn before(address: SocketAddr, change: fn(&mut [u8])) -> Gate {
        let connect = move || Ok(Box::new(TcpStream::connect(address)?) as Box<dyn End>);
        Gate::with(connect, change)
    }

    /// An open gate before the PostgreSQL server of tests that has the database at `url`, and the URL of that database through it.
    pub fn before_database(url: &str) -> (Gate, String) {
        let (user, place) = url.split_once('@').expect("a user");
        let (folder, database) = place.split_once('/').expect("a database");
        let socket = Path::new(&folder.replace("%2F", "/")).join(".s.PGSQL.5432");
        let connect = move || Ok(Box::new(UnixStream::connect(&socket)?) as Box<dyn End>);
        let gate = Gate::with(connect, |_| {});
        let through = format!("{user}@{}/{database}?sslmode=disable", gate.address);
        (gate, through)
    }

    fn with(
        connect: impl Fn() -> io::Result<Box<dyn End>> + Send + 'static,
        change: fn(&mut [u8]),
    ) -> Gate {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let gate = Gate {
            address: listener.local_addr().expect("it is bound"),
            state: Arc::default(),
        };
        let state = Arc::clone(&gate.state);
        thread::spawn(move || {
            for guest in listener.incoming().flatten() {
                let _ = pass(&state, &guest, &connect, change);
            }
        });
        gate
    }

    /// Hangs up on everybody, and on whoever comes.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        for end in state.passing.drain(..) {
            let _ = end.hang_up(Shutdown::Both);
        }
    }

    /// Lets everybody pass again.
    pub fn open(&self) {
        lock(&self.state).is_closed = false;
    }
}

fn lock(state: &Mutex<GateState>) -> MutexGuard<'_, GateState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pass(
    state: &Mutex<GateState>,
    guest: &TcpStream,
    connect: impl Fn() -> io::Result<Box<dyn End>>,
    change: fn(&mut [u8]),
) -> io::Result<()> {
    let mut state = lock(state);
    if state.is_closed {
        return guest.shutdown(Shutdown::Both);
    }
    let server = connect()?;
    state.passing.extend([guest.another()?, server.another()?]);
    let (from_guest, to_guest) = (guest.another()?, guest.another()?);
    let (from_server, to_server) = (server.another()?, server);
    thread::spawn(move || carry(from_guest, to_server, change));
    thread::spawn(move || carry(from_server, to_guest, |_| {}));
    Ok(())
}

fn carry(mut from: Box<dyn End>, mut to: Box<dyn End>, change: fn(&mut [u8])) -> io::Result<()> {
    let mut portion = vec![0; 1 << 16];
    loop {
        // One that was hung up on says so, too.
        let count = from.read(&mut portion).unwrap_or(0);
        if count == 0 {
            return to.hang_up(Shutdown::Write);
        }
        change(&mut portion[..count]);
        to.write_all(&portion[..count])?;
    }
}
