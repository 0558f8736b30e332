//! A way to a server that loses an answer.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;

use tempfile::TempDir;

/// The file of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// Stands between a store and its server. When it is told to, it passes a commit on to the server and cuts the connection when
/// the answer comes.
pub(super) struct ForgetfulProxy {
    _folder: TempDir,
    /// The URL of the database through it.
    pub(super) url: String,
    is_to_forget: Arc<AtomicBool>,
}

impl ForgetfulProxy {
    pub(super) fn before(url: &str) -> ForgetfulProxy {
        let (user, rest) = url.split_once('@').expect("a user");
        let (server, database) = rest.split_once('/').expect("a database");
        let server = server.replace("%2F", "/");
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let here = folder.path().to_str().expect("UTF-8").replace('/', "%2F");
        let is_to_forget = Arc::new(AtomicBool::new(false));
        spawn({
            let is_to_forget = Arc::clone(&is_to_forget);
            move || {
                for client in listener.incoming() {
                    let Ok(client) = client else { return };
                    let server = UnixStream::connect(format!("{server}/{SOCKET}"));
                    pass_on(client, server.expect("a server"), &is_to_forget);
                }
            }
        });
        ForgetfulProxy {
            _folder: folder,
            url: format!("{user}@{here}/{database}"),
            is_to_forget,
        }
    }

    pub(super) fn forget_the_next_commit(&self) {
        self.is_to_forget.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_forgotten(&self) -> bool {
        !self.is_to_forget.load(Ordering::SeqCst)
    }
}

fn pass_on(client: UnixStream, server: UnixStream, is_to_forget: &Arc<AtomicBool>) {
    let ends = || {
        let client = client.try_clone().expect("a descriptor");
        (client, server.try_clone().expect("a descriptor"))
    };
    let is_forgetting = Arc::new(AtomicBool::new(false));
    spawn({
        let (mut client, mut server) = ends();
        let (is_to_forget, is_forgetting) = (Arc::clone(is_to_forget), Arc::clone(&is_forgetting));
        move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(count @ 1..) = client.read(&mut bytes) {
                let is_commit = bytes[..count].windows(6).any(|word| word == b"COMMIT");
                if is_commit && is_to_forget.swap(false, Ordering::SeqCst) {
                    is_forgetting.store(true, Ordering::SeqCst);
                }
                if server.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = server.shutdown(std::net::Shutdown::Both);
        }
    });
    let (mut client, mut server) = ends();
    spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut bytes) {
            if is_forgetting.load(Ordering::SeqCst) || client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(std::net::Shutdown::Both);
    });
}
