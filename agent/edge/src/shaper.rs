//! A slow link, made of a fast one: a proxy in this process that lets bytes through at a rate, holds them back for a
//! delay, and cuts connections at random if it is told to.
//!
//! The rate is a token bucket that holds no more than the piece that is passed on, so that a transfer of S bytes takes S
//! divided by the rate, and not less by what a bucket had saved. When a piece is passed on follows from when it came and
//! from the pieces before it, not from when a thread woke up: what is late once makes nothing else late.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::listening::wake;

/// The server behind the shaper is on a fast link.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// A connection on which nothing comes for this long is cut.
const IDLE_DEADLINE: Duration = Duration::from_secs(600);

/// An end that takes nothing for this long is gone.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);

/// As much as fits in one packet; and no more than is copied in one go.
const PIECE_BYTES: std::ops::RangeInclusive<u64> = 1_500..=65_536;

/// How far ahead of the rate bytes are read. The rest waits in the sender's own buffers, as on a slow link.
const AHEAD: Duration = Duration::from_millis(10);

/// What a link is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bit/s, each way.
    pub bandwidth_bps: u64,
    /// The delay that is added to a round trip, half of it each way.
    pub round_trip: Duration,
    /// Where connections are cut; nowhere if absent.
    pub cuts: Option<Cuts>,
}

/// Connections that are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// How many bytes a connection carries on average until it is cut, both ways together.
    pub mean_bytes: u64,
    /// What it is drawn from for each connection.
    pub seed: u64,
}

/// A proxy that shapes, until it is dropped.
pub struct Shaper {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    shape: Shape,
    stopping: AtomicBool,
    open: Mutex<BTreeMap<u64, [TcpStream; 2]>>,
}

impl Shaper {
    /// Shapes what goes to and comes from `server`, for who connects to [`Shaper::address`].
    ///
    /// # Errors
    /// When it cannot listen, or no thread can be started.
    pub fn start(server: SocketAddr, shape: Shape) -> io::Result<Shaper> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server,
            shape,
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("edge-shaper".to_owned())
            .spawn(move || accepting.accept(&listener))?;
        Ok(Shaper {
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Where to connect to instead of to the server. Only this machine can.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Shaper {
    /// Cuts all connections.
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let open = self
            .shared
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for streams in open.values() {
            cut(streams);
        }
        drop(open);
        if let (true, Some(accepting)) = (wake(self.address), self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

fn cut(streams: &[TcpStream; 2]) {
    for stream in streams {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for (number, stream) in (0..).zip(listener.incoming()) {
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            let shared = Arc::clone(&self);
            // Whoever cannot be served finds the connection closed.
            let _ = stream.and_then(|near| {
                thread::Builder::new().spawn(move || {
                    let _ = shared.carry(number, near);
                    let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
                    open.remove(&number);
                })
            });
        }
    }

    /// Carries one connection to its end.
    fn carry(&self, number: u64, near: TcpStream) -> io::Result<()> {
        let far = TcpStream::connect_timeout(&self.server, CONNECT_DEADLINE)?;
        for stream in [&near, &far] {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(IDLE_DEADLINE))?;
            stream.set_write_timeout(Some(WRITE_DEADLINE))?;
        }
        let both = [near, far];
        let copy =
            || -> io::Result<[TcpStream; 2]> { Ok([both[0].try_clone()?, both[1].try_clone()?]) };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, copy()?);
        drop(open);
        let left = AtomicI64::new(self.bytes_until_cut(number));
        let half = self.shape.round_trip / 2;
        let ways = [(0, 1, half), (1, 0, self.shape.round_trip - half)];
        thread::scope(|threads| {
            for (from, to, delay) in ways {
                let (sender, receiver) = channel();
                let (from, to) = (&both[from], &both[to]);
                let (both, left) = (&both, &left);
                threads.spawn(move || {
                    if !self.take(from, delay, left, &sender) {
                        cut(both);
                    }
                });
                threads.spawn(move || {
                    if pass_on(to, &receiver).is_err() {
                        cut(both);
                    }
                });
            }
        });
        Ok(())
    }

    /// How many bytes a connection carries; exponentially distributed, as for a link that is as likely to be lost in one
    /// moment as in another.
    fn bytes_until_cut(&self, number: u64) -> i64 {
        let Some(cuts) = self.shape.cuts else {
            return i64::MAX;
        };
        let mut rng = ChaCha8Rng::seed_from_u64(cuts.seed);
        rng.set_stream(number);
        let uniform: f64 = rng.random();
        (-(1.0 - uniform).ln() * cuts.mean_bytes as f64) as i64
    }

    /// Takes what comes, and says by when each piece has crossed the link. False when the connection is to be cut.
    fn take(
        &self,
        mut from: &TcpStream,
        delay: Duration,
        left: &AtomicI64,
        crossing: &Sender<(Instant, Vec<u8>)>,
    ) -> bool {
        let in_a_millisecond = self.shape.bandwidth_bps / 8 / 1_000;
        let size = in_a_millisecond.clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end());
        let mut piece = vec![0; size as usize];
        let mut free_from = Instant::now();
        loop {
            let count = match from.read(&mut piece) {
                // The other direction may go on: only this one is over.
                Ok(0) => return true,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            // A piece has far fewer than 2^63 bytes.
            if left.fetch_sub(count as i64, Ordering::SeqCst) < count as i64 {
                return false;
            }
            let now = Instant::now();
            free_from = free_from.max(now) + self.time_of(count);
            let crossed = free_from + delay;
            if crossing.send((crossed, piece[..count].to_vec())).is_err() {
                return false;
            }
            if let Some(ahead) = free_from.checked_duration_since(now + AHEAD) {
                thread::sleep(ahead);
            }
        }
    }

    /// How long so many bytes keep the link.
    fn time_of(&self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8_000_000_000 / u128::from(self.shape.bandwidth_bps.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Passes on each piece when it has crossed the link.
fn pass_on(mut to: &TcpStream, crossing: &Receiver<(Instant, Vec<u8>)>) -> io::Result<()> {
    for (crossed, piece) in crossing {
        thread::sleep(crossed.saturating_duration_since(Instant::now()));
        to.write_all(&piece)?;
    }
    to.shutdown(Shutdown::Write)
}
