//! A server on this machine, and who asks it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use layerlab_edge::{Client, EdgeError, Patience, Server, ServerLimits, Token};

/// The secret of all tests.
pub(crate) fn token() -> Token {
    Token::new([7; 32])
}

/// A server that listens on a port of its own.
pub(crate) fn server(limits: ServerLimits) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    Server::start(listener, token(), "test 1".to_owned(), limits).expect("a thread")
}

/// Connects with `token`.
pub(crate) fn connect_with(token: &Token, address: SocketAddr) -> Result<Client, EdgeError> {
    Client::connect(&address.to_string(), token, "test 1", patience())
}

/// Connects with the right token.
pub(crate) fn connect(address: SocketAddr) -> Result<Client, EdgeError> {
    connect_with(&token(), address)
}

/// Long enough for a busy machine.
pub(crate) fn patience() -> Patience {
    Patience {
        silence: Duration::from_secs(60),
        ..Patience::default()
    }
}
