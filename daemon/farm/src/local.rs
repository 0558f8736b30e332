//! The link to this host itself: the agent is a child process. It measures the host, or plays a
//! simulated phone.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rand::Rng;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::discovery::Choice;
use super::host_runtimes::HostRuntimes;
use super::{Connection, Link, LinkError};

/// How long the agent may take from its start until it listens: it loads its runtimes and tries their processors first.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// The agent's exit code for a device file that cannot be used.
const AGENT_BAD_INPUT: i32 = 3;

/// How much of the agent's last words is shown.
const LAST_WORDS_BYTES: usize = 2_000;

/// A link to an agent that is a child of this process. Dropping it kills the agent.
pub struct LocalLink {
    program: PathBuf,
    /// The simulated device's file; `None` for the host itself.
    device_file: Option<PathBuf>,
    runtimes: HostRuntimes,
    folder: PathBuf,
    /// Removed with the link, unless the folder is to be kept.
    _temporary: Option<TempDir>,
    token: String,
    child: Mutex<Option<Agent>>,
}

struct Agent {
    process: Child,
    /// The agent ends when this is closed, however layerlab ends.
    _stdin: Option<ChildStdin>,
}

impl LocalLink {
    /// A link to an agent run from `program` for `device`, with a state folder of its own that is removed with the
    /// link.
    pub fn new(program: PathBuf, device: Choice) -> std::io::Result<LocalLink> {
        let temporary = tempfile::Builder::new().prefix("layerlab-").tempdir()?;
        let folder = temporary.path().to_owned();
        Ok(LocalLink {
            _temporary: Some(temporary),
            ..LocalLink::kept_in(program, device, folder)?
        })
    }

    /// A link to an agent whose state folder is `folder`, where its journals outlive this process.
    pub fn kept_in(
        program: PathBuf,
        device: Choice,
        folder: PathBuf,
    ) -> std::io::Result<LocalLink> {
        std::fs::create_dir_all(&folder)?;
        let device_file = match device {
            Choice::Host => None,
            Choice::File(path) => Some(path),
            Choice::BuiltIn(name, toml) => {
                let path = folder.join(format!("{name}.toml"));
                std::fs::write(&path, toml)?;
                Some(path)
            }
        };
        let token = format!("{:032x}", rand::rng().random::<u128>());
        Ok(LocalLink {
            program,
            device_file,
            runtimes: HostRuntimes::default(),
            folder,
            _temporary: None,
            token,
            child: Mutex::new(None),
        })
    }

    /// The same with these runtimes beside the agent's own, if the device is the host itself.
    pub fn with_runtimes(self, runtimes: HostRuntimes) -> LocalLink {
        LocalLink { runtimes, ..self }
    }

    /// The process id of the agent, while it runs. For tests that kill it.
    pub async fn agent_process(&self) -> Option<u32> {
        self.child
            .lock()
            .await
            .as_ref()
            .and_then(|agent| agent.process.id())
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("agent.socket")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("agent.log")
    }

    async fn start(&self) -> Result<Agent, LinkError> {
        let no_agent = |source| LinkError::NoAgent {
            program: self.program.clone(),
            source,
        };
        let log = std::fs::File::create(self.log()).map_err(no_agent)?;
        let mut command = Command::new(&self.program);
        command
            .arg("serve")
            .arg("--until-stdin-ends")
            .arg(format!("--listen=unix:{}", self.socket().display()))
            .arg("--state")
            .arg(&self.folder)
            .env("LAYERLAB_AGENT_TOKEN", &self.token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        for (name, value) in self.runtimes.environment() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(file) = &self.device_file {
            command.arg("--device").arg(file);
        }
        let mut process = command.spawn().map_err(no_agent)?;
        let stdin = process.stdin.take();
        let mut first_line = String::new();
        if let Some(stdout) = process.stdout.take() {
            let mut lines = BufReader::new(stdout);
            // An error reads as the end of the output: the agent has died.
            let _ = timeout(START_DEADLINE, lines.read_line(&mut first_line))
                .await
                .map_err(|_| LinkError::Deadline {
                    what: "start to listen",
                    deadline: START_DEADLINE,
                })?;
        }
        if first_line.trim_end() == "listening" {
            return Ok(Agent {
                process,
                _stdin: stdin,
            });
        }
        let status = timeout(START_DEADLINE, process.wait())
            .await
            .map_err(|_| LinkError::Deadline {
                what: "end",
                deadline: START_DEADLINE,
            })?
            .map_err(no_agent)?;
        let said = last_line(&self.log());
        if status.code() == Some(AGENT_BAD_INPUT) {
            let message = said
                .strip_prefix("layerlab-agent: ")
                .unwrap_or(&said)
                .to_owned();
            return Err(LinkError::Refused { message });
        }
        Err(LinkError::DiedAtStart {
            status: status.to_string(),
            said,
        })
    }
}

impl Link for LocalLink {
    fn kind(&self) -> &'static str {
        "local"
    }

    async fn push_file(&self, sha256: &str, content: &[u8]) -> Result<(), LinkError> {
        let files = self.folder.join("files");
        let path = files.join(sha256);
        let failed = |source| LinkError::Storage {
            path: path.clone(),
            source,
        };
        if tokio::fs::try_exists(&path).await.map_err(failed)? {
            return Ok(());
        }
        tokio::fs::create_dir_all(&files).await.map_err(failed)?;
        let partial = files.join(format!("{sha256}.partial"));
        tokio::fs::write(&partial, content).await.map_err(failed)?;
        tokio::fs::rename(&partial, &path).await.map_err(failed)
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let mut child = self.child.lock().await;
        let running = child
            .as_mut()
            .is_some_and(|agent| matches!(agent.process.try_wait(), Ok(None)));
        if !running {
            *child = Some(self.start().await?);
        }
        let stream = UnixStream::connect(self.socket())
            .await
            .map_err(|error| LinkError::Connection(error.into()))?;
        Ok(Connection::open(stream, &self.token).await?)
    }
}

/// The last line of the agent's log, as much of it as a person wants to read.
fn last_line(log: &Path) -> String {
    let mut text = String::new();
    // No log, no last words.
    let _ = std::fs::File::open(log).and_then(|mut file| file.read_to_string(&mut text));
    let line = text
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or_default();
    line.chars().take(LAST_WORDS_BYTES).collect()
}
