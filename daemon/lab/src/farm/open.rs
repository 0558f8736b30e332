//! Devices are seen, opened and left as they were found.

mod played;

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};

use super::{Farm, lock};
use crate::dispatcher::Message;
use crate::record::Device;
use layerlab_farm::adb::{AdbError, Fleet, Found, Phone, Row, State as RowState};
use layerlab_farm::agents::Agents;
use layerlab_farm::discovery::{self, Choice};
use layerlab_farm::local::LocalLink;
use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::provision::{DEFAULT_CACHE_BYTES, Provision};
use layerlab_farm::{AdbLink, Policy};
use layerlab_farm::{Connection, Link, LinkError};
use layerlab_profiles::document;
use played::{played, simulated};

/// A device that is open.
pub enum OpenDevice {
    /// An agent on this host.
    Local(Box<LocalLink>),
    /// An agent on a phone, reached over ADB.
    Phone {
        /// The way to it.
        link: Box<AdbLink>,
        /// Whether it was made quiet, and is to be restored.
        quieted: bool,
    },
}

impl OpenDevice {
    /// The phone, if it is one.
    pub(super) async fn phone(&self) -> Result<Option<Phone>, LinkError> {
        match self {
            OpenDevice::Local(_) => Ok(None),
            OpenDevice::Phone { link, .. } => Ok(Some(link.phone().await?)),
        }
    }

    /// Undoes what was done to measure in quiet. A phone that is gone is restored when it is next seen.
    pub(super) async fn restore(&self) {
        let OpenDevice::Phone {
            link,
            quieted: true,
        } = self
        else {
            return;
        };
        let restored = match link.phone().await {
            Ok(phone) => phone.restore().await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => {
                if let Some(complaint) = restored.complaint() {
                    tracing::warn!("{complaint}");
                }
            }
            Err(error) => tracing::warn!(%error, "a phone could not be restored"),
        }
    }
}

impl Link for OpenDevice {
    fn kind(&self) -> &'static str {
        match self {
            OpenDevice::Local(link) => link.kind(),
            OpenDevice::Phone { link, .. } => link.kind(),
        }
    }

    fn described(&self) -> Option<document::Phone> {
        match self {
            OpenDevice::Local(link) => link.described(),
            OpenDevice::Phone { link, .. } => link.described(),
        }
    }

    async fn push_file(&self, sha256: &str, content: &[u8]) -> Result<(), LinkError> {
        match self {
            OpenDevice::Local(link) => link.push_file(sha256, content).await,
            OpenDevice::Phone { link, .. } => link.push_file(sha256, content).await,
        }
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        match self {
            OpenDevice::Local(link) => link.connect().await,
            OpenDevice::Phone { link, .. } => link.connect().await,
        }
    }
}

impl Farm {
    /// Opens a device: finds it, gives it its agent, makes it quiet.
    pub(super) async fn open(&self, device: &Device, lab: &str) -> Result<OpenDevice, LinkError> {
        let name = device.name.as_str();
        let found = lock(&self.0.found).get(name).cloned();
        let Some(found) = found else {
            return self.open_local(name);
        };
        let phones = &self.0.config.phones;
        let simulate = match played(phones, device) {
            Some(device) => Some(simulated(device)?),
            None => None,
        };
        let provision = Provision {
            agents: Agents {
                folder: self.0.folders.data.join("agents"),
                of_host: self.0.agent.clone(),
            },
            simulate,
            runtimes: PhoneRuntimes::in_folder(&self.0.folders.data),
            cache_bytes: DEFAULT_CACHE_BYTES,
            lab: self.0.store.is_shared().then(|| lab.to_owned()),
        };
        let policy = Policy {
            patience: phones.patience,
            may_reboot: phones.reboot,
            quarantine: self.0.config.attempts.quarantine,
            failures: self.0.failures.clone(),
        };
        let Found { route, row, .. } = found;
        let link =
            AdbLink::open(route, &row.serial, provision, policy, &self.0.folders.state).await?;
        if phones.quiet {
            let quieted = link.phone().await?.quiet().await?;
            if let Some(complaint) = quieted.complaint() {
                tracing::warn!(phone = name, "{complaint}");
            }
        }
        Ok(OpenDevice::Phone {
            link: Box::new(link),
            quieted: phones.quiet,
        })
    }

    fn open_local(&self, name: &str) -> Result<OpenDevice, LinkError> {
        let refused = |message: String| LinkError::Refused { message };
        let choice = discovery::choose(name).map_err(|error| refused(error.to_string()))?;
        let folder = self.0.folders.state.join("lab/devices");
        let folder = folder.join(layerlab_campaign::publish::folder_name(name));
        let link = LocalLink::kept_in(self.0.agent.clone(), choice, folder.clone());
        let link = link.map_err(|source| LinkError::Storage {
            path: folder,
            source,
        })?;
        let link = link.with_runtimes(self.0.runtimes.clone());
        Ok(OpenDevice::Local(Box::new(link)))
    }

    /// What the lab knows of a phone that can be used.
    async fn identify(&self, found: &Found) -> Result<Device, AdbError> {
        let phone = Phone::new(&found.route, &found.row)?;
        let identity = phone.identity().await?;
        let name = found.name_by(&identity);
        let capabilities = phone.capabilities().await?;
        if lock(&self.0.restored).insert(identity.serial.clone()) {
            // A daemon that was killed may have left it quiet. Nothing is lost where that was not so.
            if let Err(error) = phone.restore().await {
                tracing::warn!(phone = name, %error, "cannot be restored");
            }
        }
        let android = capabilities.text("android_version");
        let android = android.and_then(|text| text.split('.').next()?.parse().ok());
        let device = Device {
            name,
            serial: identity.serial,
            address: found.address().map(str::to_owned),
            boot_id: Some(identity.boot_id),
            description: capabilities.summary(),
            soc: capabilities.text("soc_model").map(str::to_owned),
            abi: Some(identity.abi),
            android,
            ..Device::default()
        };
        Ok(Device {
            simulated: played(&self.0.config.phones, &device).is_some(),
            pools: self.pools(&device),
            ..device
        })
    }

    fn pools(&self, device: &Device) -> Vec<String> {
        let pools = self.0.config.phones.pools.iter();
        pools
            .filter(|(_, members)| members.iter().any(|member| device.is_called(member)))
            .map(|(pool, _)| pool.clone())
            .collect()
    }

    /// The devices of the configuration that need no phone.
    fn local_devices(&self) -> Vec<Device> {
        let local = self.0.config.phones.local.iter();
        let device = |name: &String| {
            let simulated = !matches!(discovery::choose(name), Ok(Choice::Host));
            let description = match (simulated, &self.0.runtimes.emulate) {
                (true, _) => "simulated".to_owned(),
                (false, None) => "this host".to_owned(),
                (false, Some(soc)) => format!("this host, with an emulated {soc}"),
            };
            let device = Device {
                name: name.clone(),
                serial: name.clone(),
                description,
                simulated,
                abi: Some(std::env::consts::ARCH.to_owned()),
                ..Device::default()
            };
            Device {
                pools: self.pools(&device),
                ..device
            }
        };
        local.map(device).collect()
    }
}

/// Tells the dispatcher which devices there are, whenever that changes, and `seen` once it was told for the first time.
pub async fn see(
    farm: &Farm,
    fleet: Fleet,
    messages: mpsc::Sender<Message>,
    seen: oneshot::Sender<()>,
) {
    let local = farm.local_devices();
    if messages
        .send(Message::Devices(local.clone()))
        .await
        .is_err()
    {
        return;
    }
    tokio::spawn(tell_processors(
        farm.clone(),
        local.clone(),
        messages.clone(),
    ));
    let mut watch = fleet.watch();
    let mut seen = Some(seen);
    // A phone is asked who it is once for each time that it is plugged in.
    let mut known: Vec<(Row, Device)> = Vec::new();
    while let Some(all) = watch.next().await {
        let ready = |found: &&Found| found.row.state == RowState::Ready;
        let ask = async |found: &Found| {
            if let Some(same) = known.iter().find(|(row, _)| *row == found.row) {
                return Some(same.clone());
            }
            match farm.identify(found).await {
                Ok(device) => {
                    lock(&farm.0.found).insert(device.name.clone(), found.clone());
                    Some((found.row.clone(), device))
                }
                Err(error) => {
                    tracing::warn!(phone = found.name, %error, "cannot be used");
                    None
                }
            }
        };
        let asked = join_all(all.iter().filter(ready).map(ask)).await;
        known = asked.into_iter().flatten().collect();
        let mut devices: Vec<Device> = known.iter().map(|(_, device)| device.clone()).collect();
        devices.extend(local.iter().cloned());
        if messages.send(Message::Devices(devices)).await.is_err() {
            return;
        }
        if let Some(seen) = seen.take() {
            // Whoever waited for it may have given up.
            let _ = seen.send(());
        }
    }
    // No server: there are only local devices.
    drop(seen);
    messages.closed().await;
}

/// Asks the local devices which processors they have, each with an agent of its own that ends then. Phones are asked when
/// they are first measured: they would have to be given an agent for it.
async fn tell_processors(farm: Farm, local: Vec<Device>, messages: mpsc::Sender<Message>) {
    for device in local {
        let Ok(choice) = discovery::choose(&device.name) else {
            continue;
        };
        let Ok(link) = LocalLink::new(farm.0.agent.clone(), choice) else {
            continue;
        };
        let link = link.with_runtimes(farm.0.runtimes.clone());
        // Whatever is wrong with it is said when it is measured.
        let Ok(connection) = link.connect().await else {
            continue;
        };
        let processors = connection.hello.processors.into_iter();
        let names = processors.map(|processor| processor.name).collect();
        let told = Message::Processors(device.name, names);
        if messages.send(told).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Phones};
    use crate::store::{Store, StorePlace};
    use layerlab_farm::folders::Folders;

    fn phones() -> Phones {
        Phones {
            local: vec!["host".to_owned(), "pixel6".to_owned()],
            ..Config::default().phones
        }
    }

    #[tokio::test]
    async fn a_local_device_says_whether_it_is_simulated() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _) = Store::open(&StorePlace::in_folder(folder.path()))
            .await
            .expect("a store");
        let config = Config {
            phones: phones(),
            ..Config::default()
        };
        let folders = Folders::of_this_user();
        let farm = Farm::new(config, folders, "layerlab-agent".into(), store);
        let devices = farm.local_devices().into_iter();
        let simulated: Vec<_> = devices
            .map(|device| (device.name, device.simulated))
            .collect();
        let expected = [("host".to_owned(), false), ("pixel6".to_owned(), true)];
        assert_eq!(simulated, expected);
    }
}
