//! Somebody on another machine than the lab's: their own folders, and commands that ask the lab over the web.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::lab::Lab;
use crate::layerlab;

/// Somebody elsewhere.
pub struct Guest {
    folder: TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Guest {
    /// Somebody who has not logged in anywhere, and whose commands ask the lab at `url`.
    pub fn of(url: &str) -> Guest {
        Guest {
            folder: tempfile::tempdir().expect("a folder"),
            environment: vec![("LAYERLAB_LAB", url.to_owned())],
        }
    }

    /// The same with a variable.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Guest {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// The same with a new token of `lab`.
    #[must_use]
    pub fn with_role(self, lab: &Lab, role: &str) -> Guest {
        let name = format!("a.{role}");
        let token = lab.succeed(&["token", "create", &name, "--role", role]);
        self.with("LAYERLAB_TOKEN", token.trim())
    }

    /// A file of theirs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command of theirs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = layerlab();
        command.args(arguments);
        command.env("LAYERLAB_STATE", self.path("state"));
        command.env("LAYERLAB_DATA", self.path("data"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("layerlab runs")
    }

    /// The same with `input` to read.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may end before it has read all.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must end with this exit code, and says so much.
    #[track_caller]
    pub fn fail(&self, arguments: &[&str], code: i32, said: &str) {
        fails(&self.run(arguments), code, said);
    }
}

/// That a command ended with this exit code, and one sentence that has `said` in it.
#[track_caller]
pub fn fails(output: &Output, code: i32, said: &str) {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(said), "{said:?} is not in {error:?}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Something that answers requests as it is told, by their paths, and lives as long as the test.
pub fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(path) = asked(&stream) else { continue };
            let _ = stream.write_all(&answer(&path));
        }
    });
    format!("http://{address}")
}

/// The path of a request, of which the head is read.
fn asked(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    Some(first.split(' ').nth(1)?.to_owned())
}

/// An answer of a lab of this version.
pub fn from_a_lab(version: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nlayerlab-version: {version}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A port of this machine at which nobody listens.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it listens").port()
}

/// The files of a folder and of those in it, with their contents.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut contents = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            contents.extend(self::contents(&path).into_iter().map(|(inner, content)| {
                let name = path.file_name().expect("a name");
                (Path::new(name).join(inner), content)
            }));
        } else {
            let content = std::fs::read(&path).expect("it is there");
            contents.push((path.file_name().expect("a name").into(), content));
        }
    }
    contents.sort();
    contents
}
