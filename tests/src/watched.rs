//! A link to an agent that tests kill.

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use layerlab::device::local::LocalLink;
use layerlab::device::{Connection, Link, LinkError};

/// A link that knows how often it was connected, and to which process last.
pub struct Watched {
    link: LocalLink,
    connections: AtomicU64,
    agent: AtomicU32,
}

impl Watched {
    /// Watches `link`.
    pub fn new(link: LocalLink) -> Watched {
        Watched {
            link,
            connections: AtomicU64::new(0),
            agent: AtomicU32::new(0),
        }
    }

    /// How often it was connected.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Kills the agent that it was connected to last.
    pub fn kill_agent(&self) {
        let process = self.agent.load(Ordering::Relaxed);
        // A process that is gone already was killed by the kill before.
        let _ = Command::new("kill")
            .args(["-KILL", &process.to_string()])
            .output();
    }
}

impl Link for Watched {
    fn kind(&self) -> &'static str {
        self.link.kind()
    }

    async fn push_file(&self, sha256: &str, onnx: &[u8]) -> Result<(), LinkError> {
        self.link.push_file(sha256, onnx).await
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let connection = self.link.connect().await?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        let process = self
            .link
            .agent_process()
            .await
            .expect("a connected agent runs");
        self.agent.store(process, Ordering::Relaxed);
        Ok(connection)
    }
}
