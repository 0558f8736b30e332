//! What ends a thread that waits for connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Connecting to oneself takes far less.
const DEADLINE: Duration = Duration::from_secs(1);

/// Connects to who listens at `address` on this machine, so that it looks whether it should stop; whether that worked.
pub(crate) fn wake(mut address: SocketAddr) -> bool {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    TcpStream::connect_timeout(&address, DEADLINE).is_ok()
}
