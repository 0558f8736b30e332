//! The daemon's configuration. `default-config.toml` is its documentation and gives every default.

mod load;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use layerlab_profiles::gate::GateSettings;
use layerlab_profiles::{Bytes, MilliCelsius};
use serde::Deserialize;

use super::gates::Thresholds;
use super::window::Window;
use crate::library::Library;
use crate::regression::Judging;
use crate::store::{StorePlace, StoreServer};
use layerlab_farm::adb::Address;
use layerlab_farm::folders::Folders;
use layerlab_objects::{Objects, ObjectsError, S3Variables, VariablesError};

pub use layerlab_objects::ObjectsPlace;
pub use load::{ConfigChange, ConfigError, Loaded, places};
pub use value::{Charging, Log, ThermalStatus, WebhookFormat};

/// The file that explains every key and gives its default.
pub const DEFAULT: &str = include_str!("../../default-config.toml");

/// What the daemon is told.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The lab as a whole.
    pub lab: Lab,
    /// Which phones there are, and how they are treated.
    pub phones: Phones,
    /// What must hold before a run starts.
    pub gates: Gates,
    /// What happens when a run fails.
    pub attempts: Attempts,
    /// When a profile is said to be worse than the one before it.
    pub regression: Regression,
    /// Who is told how it went.
    pub report: ReportConfig,
    /// Where and how the lab is on the web, if it is.
    pub web: WebConfig,
}

/// `[lab]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lab {
    /// Where profiles are published, unless in the data folder.
    #[serde(deserialize_with = "value::folder")]
    pub profiles: Option<PathBuf>,
    /// The server that has the lab's store, unless a file of the state folder has it.
    #[serde(deserialize_with = "value::store")]
    pub store: Option<StoreServer>,
    /// The file with the password for that server, if one has it.
    #[serde(deserialize_with = "value::folder")]
    pub store_password_file: Option<PathBuf>,
    /// What this host is called among those that share the store, unless by the machine's name.
    #[serde(deserialize_with = "value::host")]
    pub host: Option<String>,
    /// How long runs wait for another host of which nothing is heard.
    #[serde(deserialize_with = "value::period")]
    pub host_patience: Duration,
    /// Where copies of models and evaluation sets are kept, unless in the state folder.
    #[serde(deserialize_with = "value::folder")]
    pub copies: Option<PathBuf>,
    /// The object store with copies that all hosts find, if there is one.
    #[serde(deserialize_with = "value::objects")]
    pub objects: Option<ObjectsPlace>,
    /// The file with what leads to it and with the key for it, unless the environment has that.
    #[serde(deserialize_with = "value::folder")]
    pub objects_credentials_file: Option<PathBuf>,
    /// How much of it is kept on this host, in MiB.
    #[serde(deserialize_with = "value::cache_mebibytes")]
    pub objects_cache_mebibytes: u64,
    /// The folder of the tables for analysis to which published profiles are appended, if they are.
    #[serde(deserialize_with = "value::folder")]
    pub analysis: Option<PathBuf>,
    /// The private key that published profiles are signed with, if they are.
    #[serde(deserialize_with = "value::folder")]
    pub signing_key: Option<PathBuf>,
    /// How the daemon logs.
    #[serde(deserialize_with = "value::log")]
    pub log: Log,
    /// When jobs run that do not say so themselves.
    pub window: Window,
    /// How long journals are kept after their runs are over.
    #[serde(deserialize_with = "value::period")]
    pub keep_journals: Duration,
}

/// `[phones]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Phones {
    /// How long to wait for a phone that is not there.
    #[serde(deserialize_with = "value::period")]
    pub patience: Duration,
    /// Whether a phone may be booted anew.
    pub reboot: bool,
    /// Whether phones are made quiet for a run.
    pub quiet: bool,
    /// The simulated devices that phones play, by serial.
    #[serde(deserialize_with = "value::simulate")]
    pub simulate: BTreeMap<String, String>,
    /// Serials, by the name of their pool.
    #[serde(deserialize_with = "value::pools")]
    pub pools: BTreeMap<String, Vec<String>>,
    /// Devices that need no phone.
    #[serde(deserialize_with = "value::local")]
    pub local: Vec<String>,
    /// Whether phones are reached without an adb server.
    pub direct: bool,
    /// Servers to use instead of our own.
    #[serde(deserialize_with = "value::addresses")]
    pub adb_servers: Vec<Address>,
    /// Phones to call on the network.
    #[serde(deserialize_with = "value::addresses")]
    pub adb_connect: Vec<Address>,
}

/// `[gates]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gates {
    /// The lowest battery level.
    #[serde(deserialize_with = "value::percent")]
    pub battery_level_percent: u8,
    /// The highest battery temperature.
    #[serde(deserialize_with = "value::celsius")]
    pub battery_temperature_celsius: f64,
    /// The highest thermal status.
    #[serde(deserialize_with = "value::thermal_status")]
    pub thermal_status: ThermalStatus,
    /// The least free storage.
    #[serde(deserialize_with = "value::mebibytes")]
    pub storage_free_mebibytes: u64,
    /// Whether the phone must be charging.
    #[serde(deserialize_with = "value::charging")]
    pub charging: Charging,
    /// Whether the screen must be off.
    pub screen_off: bool,
    /// The most that other programs may use of all cores.
    #[serde(deserialize_with = "value::percent")]
    pub load_percent: u8,
    /// How often a phone that does not pass is asked again.
    #[serde(deserialize_with = "value::interval")]
    pub poll: Duration,
    /// How long it is asked.
    #[serde(deserialize_with = "value::period")]
    pub deadline: Duration,
}

/// `[attempts]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Attempts {
    /// How often a run is tried.
    #[serde(deserialize_with = "value::attempts")]
    pub per_run: u32,
    /// How long a phone is left alone that nothing helped.
    #[serde(deserialize_with = "value::period")]
    pub quarantine: Duration,
}

/// `[regression]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Regression {
    /// By how much any number may become worse, in per cent of itself.
    #[serde(deserialize_with = "value::tolerance")]
    pub tolerance_percent: f64,
    /// The chance of a false alarm, over all numbers of a profile together.
    #[serde(deserialize_with = "value::alpha")]
    pub alpha: f64,
    /// With how many of the last good profiles a new one is compared.
    #[serde(deserialize_with = "value::good_profiles")]
    pub good_profiles: usize,
}

/// `[report]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReportConfig {
    /// Where summaries are posted.
    #[serde(deserialize_with = "value::webhook")]
    pub webhook: Option<String>,
    /// As what they are posted.
    #[serde(deserialize_with = "value::webhook_format")]
    pub webhook_format: WebhookFormat,
    /// To whom they are mailed.
    #[serde(deserialize_with = "value::mail_addresses")]
    pub mail_to: Vec<String>,
    /// Who sends them, unless the user of this host.
    #[serde(deserialize_with = "value::mail_address")]
    pub mail_from: Option<String>,
    /// Where HTML reports are written, unless in the data folder.
    #[serde(deserialize_with = "value::folder")]
    pub folder: Option<PathBuf>,
}

/// `[web]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WebConfig {
    /// Where the lab is on the web, if it is.
    #[serde(deserialize_with = "value::listen")]
    pub listen: Option<SocketAddr>,
    /// The file with the certificate by which the lab proves who it is, and with those that vouch for it, if it encrypts.
    #[serde(deserialize_with = "value::folder")]
    pub cert: Option<PathBuf>,
    /// The file with the certificate's private key.
    #[serde(deserialize_with = "value::folder")]
    pub key: Option<PathBuf>,
    /// Whether a proxy in front of it encrypts what goes over the network.
    pub behind_proxy: bool,
    /// The longest file that may be uploaded, in MiB; none may if this is 0.
    #[serde(deserialize_with = "value::upload_mebibytes")]
    pub upload_mebibytes: u64,
    /// How long a client may keep the lab waiting before it is dropped.
    #[serde(deserialize_with = "value::interval")]
    pub drop_after: Duration,
    /// The names by which the lab is called, beside those of this machine to itself.
    #[serde(deserialize_with = "value::hosts")]
    pub hosts: Vec<String>,
    /// The folder with the models and the evaluation sets of jobs that come over the web.
    #[serde(deserialize_with = "value::folder")]
    pub models: Option<PathBuf>,
}

/// Why what leads to the object store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsConfigError {
    /// The file of the configuration's `objects-credentials-file`.
    #[error(transparent)]
    File(#[from] VariablesError),
    /// The place, or a variable.
    #[error(transparent)]
    Place(#[from] ObjectsError),
}

impl Config {
    /// Where the lab's store is.
    pub fn store(&self, folders: &Folders) -> StorePlace {
        let place = StorePlace::in_folder(&folders.state.join("lab"));
        let Some(server) = self.lab.store.clone() else {
            return place;
        };
        let mut server = server.with_host_patience(self.lab.host_patience);
        if let Some(name) = self.lab.host.clone() {
            server = server.as_host(name);
        }
        if let Some(file) = self.lab.store_password_file.clone() {
            server = server.with_password_file(file);
        }
        place.on(server)
    }

    /// Where copies of models and evaluation sets are kept on this host.
    pub fn library(&self, folders: &Folders) -> Library {
        match &self.lab.copies {
            Some(folder) => Library::in_folder(folder),
            None => Library::in_state(&folders.state),
        }
    }

    /// The same before the object store that all hosts share, if there is one. Asks no server.
    ///
    /// # Errors
    /// When what leads to the object store cannot be used.
    pub fn shared_library(&self, folders: &Folders) -> Result<Library, ObjectsConfigError> {
        let library = self.library(folders);
        let Some(place) = &self.lab.objects else {
            return Ok(library);
        };
        let mut variables = S3Variables::of_environment();
        if let Some(file) = &self.lab.objects_credentials_file {
            variables = variables.with_file(file)?;
        }
        let objects = Objects::open(place, &variables)?;
        Ok(library.before(objects, self.lab.objects_cache_mebibytes << 20))
    }

    /// Where profiles are published.
    pub fn profiles(&self, folders: &Folders) -> PathBuf {
        let own = self.lab.profiles.clone();
        own.unwrap_or_else(|| folders.data.join("profiles"))
    }

    /// Where HTML reports are written.
    pub fn reports(&self, folders: &Folders) -> PathBuf {
        let own = self.report.folder.clone();
        own.unwrap_or_else(|| folders.data.join("reports"))
    }
}

impl Regression {
    /// How profiles are judged.
    pub(crate) fn judging(&self) -> Judging {
        Judging {
            settings: GateSettings {
                tolerance: self.tolerance_percent / 100.0,
                alpha: self.alpha,
            },
            good: self.good_profiles,
        }
    }
}

impl Gates {
    /// What a device must be like.
    pub fn thresholds(&self) -> Thresholds {
        let millicelsius = (self.battery_temperature_celsius * 1000.0).round();
        Thresholds {
            battery_level_percent: self.battery_level_percent,
            battery_temperature_millicelsius: MilliCelsius::from_millicelsius(millicelsius as i64),
            charging_required: self.charging == Charging::Required,
            thermal_status: self.thermal_status as u8,
            storage_free_bytes: Bytes::from_bytes(self.storage_free_mebibytes << 20),
            screen_off_required: self.screen_off,
            other_load_percent: self.load_percent,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        toml::from_str(DEFAULT).expect("default-config.toml has every key, as a test holds")
    }
}

#[cfg(test)]
mod tests;
