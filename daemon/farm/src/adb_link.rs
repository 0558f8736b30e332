//! The link to a phone over ADB. Whatever fails on the way to its agent is met with the recovery
//! ladder; the agent works on meanwhile, and its journal is followed again once it is found.

mod climb;
mod recovery;
mod usb_port;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::adb::{AdbError, Address, Fault, Identity, Phone, Route, capabilities};
use crate::folders::make_private;
use crate::provision::{Installed, Provision, token};
use crate::quarantine::Quarantine;
use crate::{Connection, ConnectionError, Link, LinkError};
use climb::Climb;
use layerlab_profiles::sha256;

pub use recovery::{Ladder, Rung, Way};

/// How a link deals with trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long to wait for a phone that is unplugged, or for a person at its prompt.
    pub patience: Duration,
    /// Whether a phone may be booted anew.
    pub may_reboot: bool,
    /// How long a phone that was given up is left alone.
    pub quarantine: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            patience: Duration::from_secs(600),
            may_reboot: true,
            quarantine: Duration::from_secs(3600),
        }
    }
}

/// A link to one phone. While it exists, no other layerlab of this host uses the phone.
pub struct AdbLink {
    route: Route,
    serial: String,
    /// The phone's network address, if that is how it is reached.
    network: Option<Address>,
    identity: Identity,
    provision: Provision,
    policy: Policy,
    quarantine: Quarantine,
    token: String,
    known: Mutex<Known>,
    _lock: File,
}

/// What is known about the phone's present boot.
#[derive(Clone, Debug, Default)]
struct Known {
    boot_id: Option<String>,
    installed: Option<Installed>,
}

impl AdbLink {
    /// A link to the phone that `route` lists as `serial`, which must be there. Its files on this host
    /// are in the folder `state`.
    pub async fn open(
        route: impl Into<Route>,
        serial: &str,
        provision: Provision,
        policy: Policy,
        state: &Path,
    ) -> Result<AdbLink, AdbError> {
        let route = route.into();
        let name = route.name_of(serial);
        let network = serial.parse().ok();
        let quarantine = Quarantine::in_folder(state);
        refuse_quarantined(&quarantine, &[&name, serial])?;
        // A phone that was never reached was not proved to be bad: it is neither booted nor left alone.
        let gentle = Policy {
            may_reboot: false,
            ..policy
        };
        let mut climb = Climb::start(&route, serial, network.as_ref(), gentle);
        let (phone, identity) = loop {
            match who(&route, serial).await {
                Ok(found) => break found,
                Err(error) => climb.after(error).await?,
            };
        };
        refuse_quarantined(&quarantine, &[&identity.serial])?;
        if !phone.has_shell_v2().await? {
            return Err(AdbError::TooOld {
                name,
                feature: "shell protocol version 2",
            });
        }
        let lock = lock(state, &name, &identity.serial)?;
        let capabilities = phone.capabilities().await?;
        capabilities::record(
            &file(state, &identity.serial, "json"),
            &identity,
            &capabilities,
        )?;
        Ok(AdbLink {
            token: token(state, &identity.serial)?,
            serial: serial.to_owned(),
            known: Mutex::default(),
            route,
            network,
            identity,
            provision,
            policy,
            quarantine,
            _lock: lock,
        })
    }

    /// Which phone it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The phone, if it is there and still the same.
    async fn find(&self) -> Result<(Phone, Identity), AdbError> {
        let (phone, identity) = who(&self.route, &self.serial).await?;
        if identity.serial != self.identity.serial {
            return Err(AdbError::Swapped {
                name: phone.name().to_owned(),
                expected: self.identity.serial.clone(),
                found: identity.serial,
            });
        }
        Ok((phone, identity))
    }

    /// The phone itself, to ask it what the agent does not know.
    pub async fn phone(&self) -> Result<Phone, AdbError> {
        Ok(self.find().await?.0)
    }

    /// One attempt to reach the agent.
    async fn attempt(&self, anew: bool) -> Result<Connection, AttemptError> {
        let (phone, identity) = self.find().await?;
        let known = self.known();
        let same_boot = known.boot_id.as_deref() == Some(&identity.boot_id);
        if !same_boot && known.boot_id.is_some() {
            tracing::warn!(
                phone = phone.name(),
                "the phone was booted anew; its agent is started again"
            );
        }
        let installed = match known.installed.filter(|_| same_boot) {
            Some(installed) => installed,
            None => {
                self.provision
                    .install(&phone, &identity, &self.token)
                    .await?
            }
        };
        let started = self
            .provision
            .start(&phone, &installed, &self.token, anew)
            .await?;
        if started {
            tracing::info!(phone = phone.name(), "the agent was started");
        }
        let stream = phone
            .open_agent(&installed.program, &installed.socket)
            .await?;
        let connection = Connection::open(stream, &self.token).await?;
        self.remember(Known {
            boot_id: Some(identity.boot_id),
            installed: Some(installed),
        });
        Ok(connection)
    }

    // What is known is replaced as a whole, so that a panic elsewhere leaves nothing half-written.
    fn known(&self) -> Known {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn remember(&self, now: Known) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn climb(&self) -> Climb<'_> {
        Climb::start(
            &self.route,
            &self.serial,
            self.network.as_ref(),
            self.policy,
        )
    }

    /// Puts a phone that was given up for its own faults into quarantine. One that is gone, or that its server cannot talk
    /// to, is not: who plugs it in again has mended it.
    fn judge(&self, error: AdbError) -> AdbError {
        let AdbError::GivenUp { name, last } = &error else {
            return error;
        };
        if !matches!(last.fault(), Some(Fault::Shell | Fault::Agent)) {
            return error;
        }
        let reason = last.to_string();
        match self
            .quarantine
            .add(&self.identity.serial, &reason, self.policy.quarantine)
        {
            Ok(entry) => {
                tracing::error!(phone = name, %reason, until = %entry.until, "into quarantine")
            }
            Err(error) => tracing::error!(phone = name, %error, "cannot be put into quarantine"),
        }
        error
    }
}

impl Link for AdbLink {
    fn kind(&self) -> &'static str {
        self.route.kind()
    }

    async fn push_file(&self, sha256: &str, content: &[u8]) -> Result<(), LinkError> {
        let mut climb = self.climb();
        loop {
            let pushed = match self.find().await {
                Ok((phone, _)) => self.provision.push_file(&phone, sha256, content).await,
                Err(error) => Err(error),
            };
            match pushed {
                Ok(()) => return Ok(()),
                Err(error) => climb
                    .after(error)
                    .await
                    .map_err(|error| self.judge(error))?,
            };
        }
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let mut climb = self.climb();
        let mut anew = false;
        loop {
            let error = match self.attempt(anew).await {
                Ok(connection) => return Ok(connection),
                Err(AttemptError::Adb(error)) => error,
                // What the agent itself says is not the ladder's to judge.
                Err(AttemptError::Agent(error)) if !error.is_transient() => {
                    return Err(error.into());
                }
                Err(AttemptError::Agent(error)) => AdbError::Lost {
                    subject: format!("the agent on {}", self.route.name_of(&self.serial)),
                    reason: error.to_string(),
                    fault: Fault::Agent,
                },
            };
            anew = climb
                .after(error)
                .await
                .map_err(|error| self.judge(error))?;
        }
    }
}

/// The phone that `route` lists as `serial`, and which one that is.
async fn who(route: &Route, serial: &str) -> Result<(Phone, Identity), AdbError> {
    let phone = Phone::find(route, serial).await?;
    let identity = phone.identity().await?;
    Ok((phone, identity))
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Adb(#[from] AdbError),
    #[error(transparent)]
    Agent(#[from] ConnectionError),
}

fn refuse_quarantined(quarantine: &Quarantine, names: &[&str]) -> Result<(), AdbError> {
    match quarantine.of(names)? {
        None => Ok(()),
        Some(entry) => Err(AdbError::Quarantined {
            until: entry.until_here(),
            name: entry.phone,
            reason: entry.reason,
        }),
    }
}

/// The lock of a phone: two daemons that both measure on it would spoil each other's numbers.
fn lock(state: &Path, name: &str, serial: &str) -> Result<File, AdbError> {
    let path = file(state, serial, "lock");
    let own = |source| AdbError::Own {
        path: path.clone(),
        source,
    };
    make_private(state).map_err(own)?;
    std::fs::create_dir_all(state.join("phones")).map_err(own)?;
    let file = File::create(&path).map_err(own)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AdbError::InUse {
            name: name.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(own(error)),
    }
}

/// A file about one phone. Its name is made from the serial, which may contain anything.
fn file(state: &Path, serial: &str, extension: &str) -> PathBuf {
    let digest = &sha256(serial.as_bytes())[..32];
    state.join("phones").join(format!("{digest}.{extension}"))
}
