//! What a device's agent does together with an edge server for as long as this program listens.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_campaign::{File, Tunnel, port_here};
use layerlab_farm::adb::Printable;
use layerlab_farm::{Connection, ConnectionError, Link as _};
use layerlab_profiles::document::Device;
use layerlab_protocol::{Refusal, Request, Response};
use tokio::time::timeout;

use crate::adb::{self, AdbArgs, Opened, PhoneArgs};
use crate::campaign::{agent_program, campaign_failure};
use crate::exit::{Code, ExitWith, Failure};

/// How long the agent may say nothing: longer than finding a server takes and loading a network, and far longer than from one
/// sign of life to the next.
const SILENCE: Duration = Duration::from_secs(60);

/// Which device and which server.
pub(crate) struct ErrandTo<'a> {
    /// The device, as users name it.
    pub(crate) device: &'a str,
    /// The server, as the device reaches it.
    pub(crate) server: &'a str,
    /// Whether it reaches one on this machine through adb.
    pub(crate) tunnel: bool,
    /// What to do again if it fails, in words.
    pub(crate) again: &'static str,
}

/// A connection to an agent that is to do something with a server.
pub(crate) struct Errand {
    connection: Connection,
    device: String,
    server: String,
    again: &'static str,
    /// Both are there for as long as the agent is at work.
    _tunnel: Option<Tunnel>,
    _opened: Opened,
}

impl Errand {
    /// Makes the device ready, with these files.
    pub(crate) async fn prepare<'f>(
        to: ErrandTo<'_>,
        files: impl IntoIterator<Item = File<'f>>,
        agent: Option<PathBuf>,
        adb: &AdbArgs,
        phone: &PhoneArgs,
    ) -> Result<Errand, Failure> {
        let opened = adb::open(to.device, agent_program(agent)?, adb, phone).await?;
        let mut server = to.server.to_owned();
        let tunnel = match (to.tunnel, &opened) {
            (false, _) => None,
            (true, Opened::Adb(link)) => {
                let phone = link.phone().await.exit_with(Code::Device)?;
                let port = port_here(to.server).exit_with(Code::Usage)?;
                let tunnel = Tunnel::open(phone, port).await.exit_with(Code::Device)?;
                server = tunnel.address();
                Some(tunnel)
            }
            (true, Opened::Local(_)) => {
                let error = anyhow!("--tunnel is for phones, and {} is none", to.device);
                return Err(Failure::new(Code::Usage, error));
            }
        };
        for file in files {
            let pushed = opened.push_file(file.sha256, file.content).await;
            pushed.exit_with(Code::Device)?;
        }
        let connected = opened.connect().await;
        Ok(Errand {
            connection: connected.map_err(|error| campaign_failure(error.into()))?,
            device: Printable(to.device).to_string(),
            server,
            again: to.again,
            _tunnel: tunnel,
            _opened: opened,
        })
    }

    /// The device that was found.
    pub(crate) fn found(&self) -> &Device {
        &self.connection.hello.device
    }

    /// Where the device reaches the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Has the agent begin. Dropping this ends what it does.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<(), Failure> {
        let sent = self.connection.send(request).await;
        sent.map_err(|error| self.lost(&error))
    }

    /// What the agent says next, signs of life apart, of which `progress` hears.
    pub(crate) async fn hear(&mut self, progress: impl Fn(u64, u64)) -> Result<Response, Failure> {
        loop {
            let heard = timeout(SILENCE, self.connection.receive()).await;
            let heard = heard.map_err(|_| {
                self.failed(format_args!(
                    "has said nothing for {} s; see whether the phone is awake, and {}",
                    SILENCE.as_secs(),
                    self.again
                ))
            })?;
            match heard.map_err(|error| self.lost(&error))? {
                Response::LinkReached { .. } => {}
                Response::LinkProgress { done, of } => progress(done, of),
                Response::LinkFailed { message } => {
                    let error = anyhow!("{}: {}", self.device, Printable(&message));
                    return Err(Failure::new(Code::Device, error));
                }
                Response::Refused { refusal, message } => {
                    let remedy = match refusal {
                        Refusal::Busy => "",
                        _ => "; install the agent that came with layerlab",
                    };
                    let message = Printable(&message);
                    return Err(self.failed(format_args!("refused: {message}{remedy}")));
                }
                response => return Ok(response),
            }
        }
    }

    /// It said something else than it was asked for.
    pub(crate) fn other_answer(&self) -> Failure {
        self.failed(
            "said something else than it was asked for; install the agent that came with layerlab",
        )
    }

    fn lost(&self, error: &ConnectionError) -> Failure {
        self.failed(format_args!(
            "did not come to the end, for {error}; see whether phone and agent still run, and {}",
            self.again
        ))
    }

    fn failed(&self, what: impl Display) -> Failure {
        Failure::new(Code::Device, anyhow!("the agent on {} {what}", self.device))
    }
}
