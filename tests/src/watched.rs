//! Links that are watched, and the agents behind them, which tests kill.

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use layerlab_farm::AdbLink;
use layerlab_farm::local::LocalLink;
use layerlab_farm::{Connection, Link, LinkError};

/// A link whose agent may be a process of this machine.
pub trait HasAgent: Link {
    /// That process, if it is one.
    fn agent(&self) -> impl Future<Output = Option<u32>> + Send;
}

impl HasAgent for LocalLink {
    async fn agent(&self) -> Option<u32> {
        self.agent_process().await
    }
}

impl HasAgent for AdbLink {
    async fn agent(&self) -> Option<u32> {
        None
    }
}

/// A link that knows how often it was connected, and to which process last.
pub struct Watched<L> {
    link: L,
    connections: AtomicU64,
    agent: AtomicU32,
}

impl<L: HasAgent> Watched<L> {
    /// Watches `link`.
    pub fn new(link: L) -> Watched<L> {
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
        assert_ne!(process, 0, "it is no process of this machine");
        // A process that is gone already was killed by the kill before.
        let _ = Command::new("kill")
            .args(["-KILL", &process.to_string()])
            .output();
    }
}

impl<L: HasAgent> Link for Watched<L> {
    fn kind(&self) -> &'static str {
        self.link.kind()
    }

    async fn push_file(&self, sha256: &str, onnx: &[u8]) -> Result<(), LinkError> {
        self.link.push_file(sha256, onnx).await
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let connection = self.link.connect().await?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        let process = self.link.agent().await.unwrap_or_default();
        self.agent.store(process, Ordering::Relaxed);
        Ok(connection)
    }
}
