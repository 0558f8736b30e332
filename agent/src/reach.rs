//! The way to an edge server, and the signs of life of what takes a while, for the daemon that asked for it and listens.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use layerlab_edge::{Cancel, Client, EdgeError, Patience, Shape, Shaper, Token};
use layerlab_protocol::{Response, ShapedLink};

/// How often the daemon is told that the agent is at work.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// What this program calls itself to servers.
pub(crate) const PROGRAM: &str = concat!("layerlab-agent ", env!("CARGO_PKG_VERSION"));

/// Does `work`, and says by `send` once a second how much of it is done, and of how much. `cancel` ends work of which nothing can
/// be said any more.
pub(crate) fn with_signs_of_life<T>(
    cancel: &Cancel,
    send: &(impl Fn(Response) -> io::Result<()> + Sync),
    progress: impl Fn() -> (u64, u64) + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let (ended, until) = channel::<()>();
    thread::scope(|threads| {
        threads.spawn(|| {
            let until = until;
            while until.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
                let (done, of) = progress();
                // Nobody waits for what cannot be said.
                if send(Response::LinkProgress { done, of }).is_err() {
                    cancel.cancel();
                }
            }
        });
        let done = work();
        drop(ended);
        done
    })
}

/// A server that answers.
pub(crate) struct Reached {
    pub(crate) client: Client,
    /// What stands between, for as long as it runs.
    pub(crate) _shaper: Option<Shaper>,
    /// Whether the server is on this device itself.
    pub(crate) loopback: bool,
}

/// Connects to `server`, whose secret is `token`, through a shaper if there is to be one. `cancel` ends whatever is waited for on
/// the connection.
///
/// # Errors
/// When the server does not answer or refuses, in a sentence.
pub(crate) fn reach(
    server: &str,
    token: &str,
    shape: Option<ShapedLink>,
    cancel: &Cancel,
) -> Result<Reached, String> {
    let token = Token::from_hex(token).ok_or("what should be a token is none")?;
    let said = |error: EdgeError| error.to_string();
    let patience = Patience::default();
    let direct = Client::connect(server, &token, PROGRAM, patience).map_err(said)?;
    let address = direct.peer().map_err(said)?;
    let loopback = address.ip().to_canonical().is_loopback();
    let (client, shaper) = match shape {
        None => (direct, None),
        Some(shape) => {
            drop(direct);
            let shape = Shape {
                bandwidth_bps: shape.bandwidth_bps,
                round_trip: shape.round_trip_ns.into(),
                cuts: None,
            };
            let shaper = Shaper::start(address, shape);
            let shaper = shaper.map_err(|source| said(EdgeError::Shaper { source }))?;
            let way: [SocketAddr; 1] = [shaper.address()];
            let client = Client::connect_by_way_of(&way, server, &token, PROGRAM, patience);
            (client.map_err(said)?, Some(shaper))
        }
    };
    client.cut_by(cancel).map_err(said)?;
    Ok(Reached {
        client,
        _shaper: shaper,
        loopback,
    })
}
