//! A way to a server that loses an answer, or a question, or is cut.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use tempfile::TempDir;

/// The file of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// Stands between a store and its server.
pub(super) struct ForgetfulProxy {
    _folder: TempDir,
    /// The URL of the database through it.
    pub(super) url: String,
    way: Arc<Way>,
}

/// What becomes of what goes through.
#[derive(Default)]
struct Way {
    state: Mutex<WayState>,
}

#[derive(Default)]
struct WayState {
    /// What is done to the next commit.
    next_commit: Option<Loss>,
    is_cut: bool,
    /// Both ends of all connections.
    ends: Vec<UnixStream>,
}

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    /// It is passed on, and the connection is cut when the answer comes.
    Answer,
    /// The connection is cut in its place.
    Question,
}

impl Way {
    fn state(&self) -> std::sync::MutexGuard<'_, WayState> {
        self.state.lock().expect("no panic")
    }
}

impl ForgetfulProxy {
    pub(super) fn before(url: &str) -> ForgetfulProxy {
        let (user, rest) = url.split_once('@').expect("a user");
        let (server, database) = rest.split_once('/').expect("a database");
        let server = server.replace("%2F", "/");
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let here = folder.path().to_str().expect("UTF-8").replace('/', "%2F");
        let way = Arc::new(Way::default());
        spawn({
            let way = Arc::clone(&way);
            move || {
                for client in listener.incoming() {
                    let Ok(client) = client else { return };
                    let server = UnixStream::connect(format!("{server}/{SOCKET}"));
                    pass_on(client, server.expect("a server"), &way);
                }
            }
        });
        ForgetfulProxy {
            _folder: folder,
            url: format!("{user}@{here}/{database}"),
            way,
        }
    }

    /// Passes the next commit on, and cuts the connection when the answer comes.
    pub(super) fn forget_the_next_commit(&self) {
        self.way.state().next_commit = Some(Loss::Answer);
    }

    /// Cuts the connection in the place of the next commit.
    pub(super) fn lose_the_next_commit(&self) {
        self.way.state().next_commit = Some(Loss::Question);
    }

    /// Whether the commit came that was to be forgotten or lost.
    pub(super) fn has_forgotten(&self) -> bool {
        self.way.state().next_commit.is_none()
    }

    /// Lets nothing through, until it is mended.
    pub(super) fn cut(&self) {
        let mut state = self.way.state();
        state.is_cut = true;
        for end in state.ends.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn mend(&self) {
        self.way.state().is_cut = false;
    }
}

fn pass_on(client: UnixStream, server: UnixStream, way: &Arc<Way>) {
    let ends = || {
        let client = client.try_clone().expect("a descriptor");
        (client, server.try_clone().expect("a descriptor"))
    };
    {
        let mut state = way.state();
        let (client, server) = ends();
        if state.is_cut {
            let _ = client.shutdown(Shutdown::Both);
            return;
        }
        state.ends.extend([client, server]);
    }
    let loss = Arc::new(Mutex::new(None));
    spawn({
        let (mut client, mut server) = ends();
        let (way, loss) = (Arc::clone(way), Arc::clone(&loss));
        move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(count @ 1..) = client.read(&mut bytes) {
                if bytes[..count].windows(6).any(|word| word == b"COMMIT") {
                    let next = way.state().next_commit.take();
                    *loss.lock().expect("no panic") = next;
                    if next == Some(Loss::Question) {
                        break;
                    }
                }
                if server.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = server.shutdown(Shutdown::Both);
        }
    });
    let (mut client, mut server) = ends();
    spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut bytes) {
            let is_lost = loss.lock().expect("no panic").is_some();
            if is_lost || client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    });
}
