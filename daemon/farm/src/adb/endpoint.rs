//! Where an adb server listens.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

use super::address::Address;

/// How often to knock at a socket whose queue is full.
const POLL: Duration = Duration::from_millis(5);

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A port: everybody on that host can use the server, and so its phones.
    Port(Address),
    /// A socket in the file system: whoever may write to it can use the server.
    Socket(PathBuf),
}

/// A connection to a server.
pub type Stream = Box<dyn Bytes>;

/// Bytes in both directions.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

impl Endpoint {
    /// Connects to it. Waits as long as it is there and takes nobody: the caller knows the deadline.
    pub(super) async fn connect(&self) -> io::Result<Stream> {
        match self {
            Endpoint::Port(address) => {
                let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
                // Requests are small and each waits for its answer.
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Endpoint::Socket(path) => loop {
                match UnixStream::connect(path).await {
                    // Its queue is full, where a port would let us wait; that is no reason to take it for dead.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(POLL).await,
                    connected => return Ok(Box::new(connected?)),
                }
            },
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Port(address) => address.fmt(f),
            Endpoint::Socket(path) => path.display().fmt(f),
        }
    }
}
