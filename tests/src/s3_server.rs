//! An S3 server of the tests' own: moto, which keeps buckets in its memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::skip::skip;

/// Where `tests/s3-server/wheels` puts it, below the repository's root.
const WHEELS: &str = "target/s3-server";

/// What the server asks of whoever does not come with a bucket's policy; it does not look at the signature.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// A server, which ends when this is dropped or this process ends.
#[derive(Debug)]
pub struct S3Server {
    /// Where it listens.
    pub address: SocketAddr,
    server: Child,
}

/// The server that the tests of a program share; none if it cannot be had, which is said.
pub fn s3_server() -> Option<&'static S3Server> {
    static SHARED: OnceLock<Option<S3Server>> = OnceLock::new();
    SHARED.get_or_init(|| S3Server::new(&[])).as_ref()
}

impl S3Server {
    /// A server that a test has for itself; none if it cannot be had, which is said. It encrypts with a certificate and its key,
    /// if they are named.
    pub fn new(certificate: &[&Path]) -> Option<S3Server> {
        // The root of the repository is somewhere above each of its crates.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().find(|it| it.join(".ci").is_dir())?;
        let wheels = root.join(WHEELS);
        if !wheels.join("requirements.txt").exists() {
            let remedy = format!("run tests/s3-server/wheels {WHEELS}");
            skip("an S3 server", &remedy);
            return None;
        }
        let mut server = Command::new("python3")
            .arg(root.join("tests/s3-server/serve.py"))
            .args(certificate)
            .env("PYTHONPATH", wheels)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut port = String::new();
        let said = server.stdout.take().expect("it is piped");
        let read = BufReader::new(said).read_line(&mut port);
        read.expect("the server's port");
        let port: u16 = port.trim().parse().expect("a port");
        Some(S3Server {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            server,
        })
    }

    /// The name of a new, empty bucket.
    pub fn bucket(&self) -> String {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("lab-{}-{number}", std::process::id());
        self.ask("PUT", &name, b"");
        name
    }

    /// Puts a file into a bucket, past whoever else uses it.
    pub fn put(&self, bucket: &str, name: &str, content: &[u8]) {
        self.ask("PUT", &format!("{bucket}/{name}"), content);
    }

    /// The names of the files in a bucket.
    pub fn list(&self, bucket: &str) -> Vec<String> {
        let listed = self.ask("GET", &format!("{bucket}?list-type=2"), b"");
        let keys = listed.split("<Key>").skip(1);
        let keys = keys.filter_map(|rest| rest.split_once("</Key>"));
        keys.map(|(key, _)| key.to_owned()).collect()
    }

    /// Lets nobody in any more whom it does not know, and it knows nobody.
    pub fn know_nobody(&self) {
        self.ask("POST", "moto-api/reset-auth", b"0");
    }

    /// Asks it for something, which must be done.
    fn ask(&self, method: &str, path: &str, content: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let head = format!(
            "{method} /{path} HTTP/1.0\r\nHost: {}\r\n{SIGNED}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            content.len()
        );
        let (mut answer, head) = (String::new(), head.as_bytes());
        let sent = stream.write_all(head);
        sent.and_then(|()| stream.write_all(content))
            .and_then(|()| stream.read_to_string(&mut answer))
            .expect("it answers");
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('2'), "{method} {path}: {answer}");
        answer
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}
