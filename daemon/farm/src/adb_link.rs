//! The link to a phone over ADB. Whatever fails on the way to its agent is met with the recovery
//! ladder; the agent works on meanwhile, and its journal is followed again once it is found.

mod climb;
mod recovery;
mod usb_port;
mod whereabouts;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::adb::{AdbError, Fault, Identity, Phone, Route, Values, capabilities};
use crate::folders::make_private;
use crate::provision::{Installed, Provision, token};
use crate::quarantine::Quarantine;
use crate::{Connection, ConnectionError, Link, LinkError};
use climb::Climb;
use layerlab_profiles::link::PhoneAttached;
use layerlab_profiles::{document, sha256};
use whereabouts::Whereabouts;

pub use recovery::{Ladder, Rung, RungCounts, Way};

/// How a link deals with trouble.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How long to wait for a phone that is unplugged, or for a person at its prompt.
    pub patience: Duration,
    /// Whether a phone may be booted anew.
    pub may_reboot: bool,
    /// How long a phone that was given up is left alone.
    pub quarantine: Duration,
    /// Where failures are counted.
    pub failures: RungCounts,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            patience: Duration::from_secs(600),
            may_reboot: true,
            quarantine: Duration::from_secs(3600),
            failures: RungCounts::default(),
        }
    }
}

/// A link to one phone. While it exists, no other layerlab of this host uses the phone.
pub struct AdbLink {
    whereabouts: Whereabouts,
    identity: Identity,
    /// What it said of itself when the link was opened.
    described: document::Phone,
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
        let whereabouts = Whereabouts::new(route.into(), serial);
        let quarantine = Quarantine::in_folder(state);
        refuse_quarantined(&quarantine, &[&whereabouts.name(), serial])?;
        // A phone that was never reached was not proved to be bad: it is neither booted nor left alone.
        let gentle = Policy {
            may_reboot: false,
            ..policy.clone()
        };
        let mut climb = Climb::start(&whereabouts, &gentle);
        let (phone, identity) = loop {
            match who(&whereabouts).await {
                Ok(found) => break found,
                Err(error) => climb.after(error).await?,
            };
        };
        let whereabouts = whereabouts.of(&identity);
        let name = whereabouts.name();
        refuse_quarantined(&quarantine, &[&name, &identity.serial])?;
        if !phone.has_shell_v2().await? {
            return Err(AdbError::TooOld {
                name,
                feature: "shell protocol version 2",
            });
        }
        let lock = lock(state, &name, &identity.serial)?;
        let capabilities = phone.capabilities().await?;
        let battery = phone.battery().await?;
        capabilities::record(
            &file(state, &identity.serial, "json"),
            &identity,
            whereabouts.address().map(|_| serial),
            &capabilities,
        )?;
        Ok(AdbLink {
            token: token(state, &identity.serial)?,
            known: Mutex::default(),
            whereabouts,
            described: describe(&identity, &capabilities, &battery),
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

    /// What to call it: by its serial, with `@HOST:PORT` where another server leads to it.
    pub fn name(&self) -> String {
        self.whereabouts.name()
    }

    /// What the phone is reached by now.
    pub fn attached(&self) -> PhoneAttached {
        match self.whereabouts.is_on_network() {
            true => PhoneAttached::Network,
            false => PhoneAttached::Cable,
        }
    }

    /// The phone, if it is there and still the same, or has another address by now.
    async fn find(&self) -> Result<(Phone, Identity), AdbError> {
        let error = match who(&self.whereabouts).await {
            Ok((phone, identity)) if identity.serial == self.identity.serial => {
                return Ok((phone, identity));
            }
            Ok((phone, identity)) => AdbError::Swapped {
                name: phone.name().to_owned(),
                expected: self.identity.serial.clone(),
                found: identity.serial,
            },
            Err(error) => error,
        };
        let rows = self.whereabouts.route().phones().await;
        let moved = match &rows {
            Ok(rows) => self.whereabouts.moved(rows).await,
            Err(_) => None,
        };
        moved.ok_or(error)
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
        Climb::start(&self.whereabouts, &self.policy)
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
        self.whereabouts.route().kind()
    }

    fn described(&self) -> Option<document::Phone> {
        Some(self.described.clone())
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
                    subject: format!("the agent on {}", self.name()),
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

/// The phone where it was seen last, and which one that is.
async fn who(whereabouts: &Whereabouts) -> Result<(Phone, Identity), AdbError> {
    let phone = whereabouts.phone().await?;
    let identity = phone.identity().await?;
    Ok((phone, identity))
}

/// What profiles say of the phone.
fn describe(identity: &Identity, capabilities: &Values, battery: &Values) -> document::Phone {
    let said = |key| capabilities.text(key).map(str::to_owned);
    document::Phone {
        serial: identity.serial.clone(),
        manufacturer: said("manufacturer"),
        model: said("model"),
        soc: said("soc_model"),
        android: said("android_version"),
        build: said("build_fingerprint"),
        security_patch: said("security_patch"),
        abi: Some(identity.abi.clone()).filter(|abi| !abi.is_empty()),
        battery_health: battery.text("health").map(str::to_owned),
    }
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
            reason: entry.why(),
            name: entry.phone,
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
