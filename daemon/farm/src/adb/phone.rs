//! One phone that can be talked to, as long as it stays plugged in.

use std::sync::Arc;
use std::time::Duration;

use super::direct::DirectPhone;
use super::endpoint::Stream;
use super::error::AdbError;
use super::fault::Fault;
use super::list::{Row, State};
use super::route::Route;
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
    name: String,
    pub(super) way: Way,
}

/// How it is talked to.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// By this server's connection with this number.
    Server { server: Server, transport: u32 },
    /// By a process of ours.
    Direct(Arc<DirectPhone>),
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
    pub fn new(route: &Route, row: &Row) -> Result<Phone, AdbError> {
        Phone::called(route.name_of(&row.serial), route, row)
    }

    /// The phone in `row`, if it can be used; errors call it `name`.
    pub(crate) fn called(name: String, route: &Route, row: &Row) -> Result<Phone, AdbError> {
        if row.state != State::Ready {
            let state = row.state.clone();
            return Err(AdbError::Unusable { name, state });
        }
        let way = match (route, row.transport) {
            (Route::Server(server), Some(transport)) => Way::Server {
                server: server.clone(),
                transport,
            },
            (Route::Server(_), None) => {
                return Err(AdbError::TooOld {
                    name,
                    feature: "transport number in the server's list",
                });
            }
            (Route::Direct(direct), _) => match direct.find(&row.serial) {
                Some(phone) => Way::Direct(phone),
                None => return Err(AdbError::Absent { name }),
            },
        };
        Ok(Phone { name, way })
    }

    /// The phone called `serial`, as `route` lists it now.
    pub async fn find(route: &Route, serial: &str) -> Result<Phone, AdbError> {
        let rows = route.phones().await?;
        let row = rows.iter().find(|row| row.serial == serial);
        let row = row.ok_or_else(|| AdbError::Absent {
            name: route.name_of(serial),
        })?;
        Phone::new(route, row)
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
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

    /// Whether exit status and errors can be told from output: its adbd must do so, unless its shell is made to.
    pub async fn has_shell_v2(&self) -> Result<bool, AdbError> {
        let Way::Server { server, transport } = &self.way else {
            return Ok(true);
        };
        let features = server.features_of(*transport).await?;
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
            match &self.way {
                Way::Server { server, transport } => {
                    let mut wire = server.to_phone(*transport, &self.name).await?;
                    shell::run(&mut wire, command, stdin).await
                }
                Way::Direct(phone) => phone.run(command, stdin).await,
            }
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

    /// Connects to the agent that listens on an abstract socket on the phone. A server leads the connection there itself: a
    /// forwarded port would be open to everybody on the host, would outlive layerlab, and would be on the other
    /// host where the server is. Without one, the agent's own `program` on the phone does.
    pub async fn open_agent(&self, program: &str, socket: &str) -> Result<Stream, AdbError> {
        within(&self.name, "open a socket", Fault::Agent, OPEN, async {
            match &self.way {
                Way::Server { server, transport } => {
                    let mut wire = server.to_phone(*transport, &self.name).await?;
                    wire.about(&self.name, Fault::Agent);
                    let service = format!("localabstract:{socket}");
                    wire.request(&service, "open the agent's socket").await?;
                    Ok(wire.stream)
                }
                Way::Direct(phone) => {
                    let stream = phone.open_agent(program, socket).await?;
                    Ok(Box::new(stream) as Stream)
                }
            }
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
