//! One phone that the server can talk to, as long as it stays plugged in.

use std::time::Duration;

use super::endpoint::Stream;
use super::error::AdbError;
use super::fault::Fault;
use super::list::{Row, State};
use super::server::Server;
use super::shell::{self, Output};
use super::wire::within;

/// How long a command on the phone may take. Hashing a large file on a slow phone takes longest.
const COMMAND: Duration = Duration::from_secs(60);

/// How long a phone may take for the cheapest command of all.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// How long opening a socket on the phone may take.
const OPEN: Duration = Duration::from_secs(5);

/// A phone in the state `ready`.
#[derive(Clone, Debug)]
pub struct Phone {
    server: Server,
    name: String,
    transport: u32,
}

/// Which phone it is, and since when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The phone's own serial, which does not depend on how it is reached.
    pub serial: String,
    /// Another one after each boot.
    pub boot_id: String,
    /// The binary interface of its processor, such as `arm64-v8a`.
    pub abi: String,
}

impl Phone {
    /// The phone in `row`, if it can be used.
    pub fn new(server: &Server, row: &Row) -> Result<Phone, AdbError> {
        Phone::called(server.name_of(&row.serial), server, row)
    }

    /// The phone in `row`, if it can be used; errors call it `name`.
    pub(crate) fn called(name: String, server: &Server, row: &Row) -> Result<Phone, AdbError> {
        match (&row.state, row.transport) {
            (State::Ready, Some(transport)) => Ok(Phone {
                server: server.clone(),
                name,
                transport,
            }),
            (State::Ready, None) => Err(AdbError::TooOld {
                name,
                feature: "transport number in the server's list",
            }),
            (state, _) => Err(AdbError::Unusable {
                name,
                state: state.clone(),
            }),
        }
    }

    /// The phone called `name`, as the server sees it now.
    pub async fn find(server: &Server, serial: &str) -> Result<Phone, AdbError> {
        let rows = server.phones().await?;
        let row = rows.iter().find(|row| row.serial == serial);
        let row = row.ok_or_else(|| AdbError::Absent {
            name: server.name_of(serial),
        })?;
        Phone::new(server, row)
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server that leads to it.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server's number for the connection to it.
    pub(super) fn transport(&self) -> u32 {
        self.transport
    }

    /// Which phone it is. Also the sign of life that counts: it needs the server, adbd and a shell.
    pub async fn identity(&self) -> Result<Identity, AdbError> {
        // The serial comes last: whatever it contains, the rest is read before it.
        let command = "cat /proc/sys/kernel/random/boot_id && getprop ro.product.cpu.abi && getprop ro.serialno";
        let output = self.shell_within(command, b"", SIGN_OF_LIFE).await?;
        let output = self.checked("say who it is", output)?.text();
        let mut lines = output.splitn(3, '\n');
        let mut line = || lines.next().unwrap_or_default().trim().to_owned();
        Ok(Identity {
            boot_id: line(),
            abi: line(),
            serial: line(),
        })
    }

    /// Whether its adbd can tell exit status and errors from output.
    pub async fn has_shell_v2(&self) -> Result<bool, AdbError> {
        let features = self.server.features_of(self.transport).await?;
        Ok(features.iter().any(|feature| feature == "shell_v2"))
    }

    /// Runs `command` with `stdin` as its input. Whatever comes from outside must be quoted.
    pub async fn shell(&self, command: &str, stdin: &[u8]) -> Result<Output, AdbError> {
        self.shell_within(command, stdin, COMMAND).await
    }

    /// Runs `command`, given up after `deadline`.
    pub async fn shell_within(
        &self,
        command: &str,
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<Output, AdbError> {
        within(&self.name, "run a command", Fault::Shell, deadline, async {
            let mut wire = self.server.to_phone(self.transport, &self.name).await?;
            shell::run(&mut wire, command, stdin).await
        })
        .await
    }

    /// Runs `command`, which must succeed.
    pub async fn succeed(
        &self,
        what: &'static str,
        command: &str,
        stdin: &[u8],
    ) -> Result<Output, AdbError> {
        let output = self.shell(command, stdin).await?;
        self.checked(what, output)
    }

    pub(super) fn checked(&self, what: &'static str, output: Output) -> Result<Output, AdbError> {
        if output.status == 0 {
            return Ok(output);
        }
        Err(AdbError::Command {
            name: self.name.clone(),
            what,
            status: output.status,
            said: output.last_words(),
        })
    }

    /// Opens an abstract socket on the phone. The server leads the connection there itself: a forwarded
    /// port would be open to everybody on the host, would outlive layerlab, and would be on the other
    /// host where the server is.
    pub async fn open_socket(&self, socket: &str) -> Result<Stream, AdbError> {
        within(&self.name, "open a socket", Fault::Agent, OPEN, async {
            let mut wire = self.server.to_phone(self.transport, &self.name).await?;
            wire.about(&self.name, Fault::Agent);
            let service = format!("localabstract:{socket}");
            wire.request(&service, "open the agent's socket").await?;
            Ok(wire.stream)
        })
        .await
    }

    /// Boots the phone anew. Whether it does is seen by its going away.
    pub async fn reboot(&self) -> Result<(), AdbError> {
        // The shell may die before it can say how it went.
        match self.shell_within("reboot", b"", SIGN_OF_LIFE).await {
            Ok(output) => self.checked("reboot", output).map(drop),
            Err(AdbError::Lost { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
