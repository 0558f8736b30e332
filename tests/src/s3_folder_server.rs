//! An S3 server whose files are in a folder, s3s-fs: it may be killed and started again.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::root;
use crate::skip::skip;
use crate::wait::wait_for;

/// Where `tests/s3-server/folder-server` puts it, below the repository's root.
const PLACE: &str = "target/s3s-fs";

/// Who may use it.
pub const KEY: &str = "key";

/// What that one signs with.
pub const SECRET: &str = "topsecret";

/// A server, which ends when this is dropped or the thread that started it ends.
#[derive(Debug)]
pub struct S3FolderServer {
    /// Where it listens.
    pub address: SocketAddr,
    folder: TempDir,
    program: PathBuf,
    server: Option<Child>,
}

impl S3FolderServer {
    /// A server that a test has for itself; none if it cannot be had, which is said.
    pub fn new() -> Option<S3FolderServer> {
        let program = root().join(PLACE).join("bin/s3s-fs");
        if !program.exists() {
            let remedy = format!("run tests/s3-server/folder-server {PLACE}");
            skip("an S3 server that keeps its files", &remedy);
            return None;
        }
        // It is free for as long as nobody else is given it.
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut server = S3FolderServer {
            address: listener.local_addr().expect("it is bound"),
            folder: tempfile::tempdir().expect("a folder"),
            program,
            server: None,
        };
        drop(listener);
        server.start();
        Some(server)
    }

    /// Starts it, if it does not run, and returns when it listens.
    #[track_caller]
    pub fn start(&mut self) {
        if self.server.is_none() {
            let server = Command::new("setpriv")
                .args(["--pdeathsig", "KILL"])
                .arg(&self.program)
                .args(["--access-key", KEY, "--secret-key", SECRET])
                .args(["--host", &self.address.ip().to_string()])
                .args(["--port", &self.address.port().to_string()])
                .arg(self.folder.path())
                .stdout(Stdio::null())
                .spawn();
            self.server = Some(server.expect("setpriv is there"));
        }
        let listens = || TcpStream::connect(self.address).is_ok();
        wait_for("an S3 server", listens, String::new);
    }

    /// Kills it, as a power cut would; [`S3FolderServer::start`] starts it again.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("it runs");
            server.wait().expect("it ran");
        }
    }

    /// Makes a new, empty bucket.
    pub fn bucket(&self, name: &str) {
        std::fs::create_dir(self.folder.path().join(name)).expect("a new one");
    }

    /// How many files there are whose names are `prefix`, which begins with the bucket, and one word more.
    pub fn files_in(&self, prefix: &str) -> usize {
        let files = std::fs::read_dir(self.folder.path().join(prefix));
        files.expect("it is there").count()
    }
}

impl Drop for S3FolderServer {
    fn drop(&mut self) {
        self.kill();
    }
}
