//! Values of the configuration, each refused in one sentence that says what to write instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

use crate::record::bad_host_name;
use crate::store::StoreServer;
use crate::when;
use layerlab_farm::adb::Address;
use layerlab_farm::discovery::{BUILT_IN, HOST};
use layerlab_objects::ObjectsPlace;
use layerlab_profiles::gate::FEWEST_GOOD;

/// How the daemon logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Lines for people.
    Human,
    /// One JSON object per line.
    Json,
}

/// As what a summary is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookFormat {
    /// As `layerlab report --json` prints it.
    Json,
    /// As Slack's incoming webhooks take it.
    Slack,
}

/// Whether a phone must be charging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charging {
    /// It need not.
    Any,
    /// A phone that is not charging is not measured.
    Required,
}

/// How hot a phone says it is, in Android's words and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThermalStatus {
    /// It does not throttle.
    None,
    /// Throttled a little, unnoticed by its user.
    Light,
    /// It throttles noticeably.
    Moderate,
    /// Throttled a lot.
    Severe,
    /// Everything is done against the heat.
    Critical,
    /// Parts are being switched off.
    Emergency,
    /// It is about to switch itself off.
    Shutdown,
}

pub(super) fn log<'de, D: Deserializer<'de>>(from: D) -> Result<Log, D::Error> {
    one_of(from, &[("human", Log::Human), ("json", Log::Json)])
}

pub(super) fn charging<'de, D: Deserializer<'de>>(from: D) -> Result<Charging, D::Error> {
    let known = [("any", Charging::Any), ("required", Charging::Required)];
    one_of(from, &known)
}

pub(super) fn thermal_status<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<ThermalStatus, D::Error> {
    let known = [
        ("none", ThermalStatus::None),
        ("light", ThermalStatus::Light),
        ("moderate", ThermalStatus::Moderate),
        ("severe", ThermalStatus::Severe),
        ("critical", ThermalStatus::Critical),
        ("emergency", ThermalStatus::Emergency),
        ("shutdown", ThermalStatus::Shutdown),
    ];
    one_of(from, &known)
}

fn one_of<'de, T: Copy, D: Deserializer<'de>>(from: D, known: &[(&str, T)]) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    let found = known.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        D::Error::custom(format!("`{text}` is unknown; write {}", or(&names)))
    })
}

/// `a, b or c`.
fn or(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

pub(super) fn period<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    when::period(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// A period that something is done after, again and again.
pub(super) fn interval<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    match when::period(&text).map_err(D::Error::custom)? {
        period if period < Duration::from_secs(1) => Err(D::Error::custom(format!(
            "`{text}` is too often; write 1s or more"
        ))),
        period => Ok(period),
    }
}

pub(super) fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    whole(from, "percentage", 0, 100)
}

pub(super) fn attempts<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    whole(from, "number of attempts", 1, 100)
}

/// All of them are read when a profile is judged.
const MOST_GOOD: usize = 32;

pub(super) fn good_profiles<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let count: usize = whole(from, "number of good profiles", 1, MOST_GOOD)?;
    match count {
        1 | FEWEST_GOOD.. => Ok(count),
        _ => Err(D::Error::custom(format!(
            "{count} good profiles do not tell how far runs differ; write 1, or {FEWEST_GOOD} to {MOST_GOOD}"
        ))),
    }
}

pub(super) fn mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    whole(from, "size of a phone's storage", 0, 1 << 24)
}

pub(super) fn upload_mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    whole(from, "size of a file in MiB", 0, 1 << 20)
}

pub(super) fn cache_mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    whole(from, "size of a cache in MiB", 0, 1 << 30)
}

fn whole<'de, T, D: Deserializer<'de>>(
    from: D,
    what: &str,
    least: T,
    most: T,
) -> Result<T, D::Error>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let number = f64::deserialize(from)?;
    // Whole numbers that a setting may have are exact in both.
    let exact = Some(number as i64).filter(|whole| *whole as f64 == number);
    let value = exact.and_then(|whole| T::try_from(whole).ok());
    value
        .filter(|value| *value >= least && *value <= most)
        .ok_or_else(|| {
            D::Error::custom(format!(
                "`{number}` is no {what}; write a whole number from {least} to {most}"
            ))
        })
}

pub(super) fn celsius<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let degrees = f64::deserialize(from)?;
    if (10.0..=60.0).contains(&degrees) {
        return Ok(degrees);
    }
    Err(D::Error::custom(format!(
        "`{degrees}` is no temperature at which a phone is used; write 10 to 60"
    )))
}

pub(super) fn tolerance<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let percent = f64::deserialize(from)?;
    if (0.0..100.0).contains(&percent) {
        return Ok(percent);
    }
    Err(D::Error::custom(format!(
        "`{percent}` is no share of a time that can be put up with; write at least 0 and less than 100"
    )))
}

pub(super) fn alpha<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let chance = f64::deserialize(from)?;
    if chance > 0.0 && chance <= 0.5 {
        return Ok(chance);
    }
    Err(D::Error::custom(format!(
        "`{chance}` is no chance of a false alarm; write more than 0 and at most 0.5"
    )))
}

/// A folder; none if it is the one in the data folder.
pub(super) fn folder<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    if path.is_absolute() {
        return Ok(Some(path));
    }
    Err(D::Error::custom(format!(
        "`{}` is no absolute path; write one that begins with /",
        path.display()
    )))
}

/// The server with the store; none if a file has it.
pub(super) fn store<'de, D: Deserializer<'de>>(from: D) -> Result<Option<StoreServer>, D::Error> {
    let url = String::deserialize(from)?;
    match url.is_empty() {
        true => Ok(None),
        false => StoreServer::new(&url).map(Some).map_err(D::Error::custom),
    }
}

/// The object store; none if there is none.
pub(super) fn objects<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<ObjectsPlace>, D::Error> {
    let text = String::deserialize(from)?;
    match text.is_empty() {
        true => Ok(None),
        false => text.parse().map(Some).map_err(D::Error::custom),
    }
}

pub(super) fn host<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    if name.is_empty() {
        return Ok(None);
    }
    match bad_host_name(&name) {
        None => Ok(Some(name)),
        Some(why) => Err(D::Error::custom(why)),
    }
}

pub(super) fn webhook<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let url = String::deserialize(from)?;
    if url.is_empty() {
        return Ok(None);
    }
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !url.contains(char::is_whitespace) => Ok(Some(url)),
        // It may hold a secret all the same.
        _ => Err(D::Error::custom(
            "this is no URL; write one that begins with http:// or https://, or \"\" for none",
        )),
    }
}

pub(super) fn webhook_format<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<WebhookFormat, D::Error> {
    let known = [
        ("json", WebhookFormat::Json),
        ("slack", WebhookFormat::Slack),
    ];
    one_of(from, &known)
}

pub(super) fn mail_addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let addresses = Vec::<String>::deserialize(from)?;
    let wrong = addresses.iter().find(|address| !is_mail_address(address));
    match wrong {
        Some(address) => Err(D::Error::custom(no_mail_address(address))),
        None => Ok(addresses),
    }
}

/// A sender; none if it is empty.
pub(super) fn mail_address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let address = String::deserialize(from)?;
    match address.is_empty() || is_mail_address(&address) {
        true => Ok(Some(address).filter(|address| !address.is_empty())),
        false => Err(D::Error::custom(no_mail_address(&address))),
    }
}

/// Whether it can stand in the head of a mail by itself: one address, or one of this host's users.
fn is_mail_address(text: &str) -> bool {
    let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !",;:<>()\"\\".contains(c);
    !text.is_empty() && text.chars().all(allowed) && text.matches('@').count() <= 1
}

fn no_mail_address(text: &str) -> String {
    format!(
        "`{}` is no mail address; write one such as \"night@example.org\"",
        text.escape_debug()
    )
}

/// Where to listen; nowhere if it is empty.
pub(super) fn listen<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is no address to listen at; write an IP address and a port, such as \"127.0.0.1:8722\", or \"\" for none"
        ))
    })
}

/// Names of this lab on the web, with a port where that is not the usual one.
pub(super) fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(from)?;
    let is_name = |host: &&String| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        !host.is_empty() && host.chars().all(allowed)
    };
    match hosts.iter().find(|host| !is_name(host)) {
        Some(host) => Err(D::Error::custom(format!(
            "`{host}` is no host; write a name such as \"lab.example\", with its port if that is not the usual one"
        ))),
        None => Ok(hosts.iter().map(|host| host.to_ascii_lowercase()).collect()),
    }
}

pub(super) fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?.into_iter();
    let address = |text: String| {
        text.parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is no address; write HOST:PORT")))
    };
    texts.map(address).collect()
}

pub(super) fn local<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let devices = Vec::<String>::deserialize(from)?;
    for device in &devices {
        if device != HOST {
            simulated(device, "host, ").map_err(D::Error::custom)?;
        }
    }
    twice(&devices).map_err(D::Error::custom)?;
    Ok(devices)
}

pub(super) fn simulate<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let phones = BTreeMap::<String, String>::deserialize(from)?;
    for device in phones.values() {
        simulated(device, "").map_err(D::Error::custom)?;
    }
    Ok(phones)
}

/// Refuses what is no simulated device; `others` are names that are right as well.
fn simulated(device: &str, others: &str) -> Result<(), String> {
    let path = Path::new(device);
    if BUILT_IN.iter().any(|known| known.name == device) || path.is_absolute() && path.is_file() {
        return Ok(());
    }
    let known = BUILT_IN.map(|device| device.name).join(", ");
    Err(format!(
        "`{device}` is no simulated device; write {others}{known}, or the absolute path of a device file that exists"
    ))
}

pub(super) fn pools<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let pools = BTreeMap::<String, Vec<String>>::deserialize(from)?;
    for (name, serials) in &pools {
        if serials.is_empty() {
            return Err(D::Error::custom(format!(
                "the pool `{name}` is empty; write the serials of its phones"
            )));
        }
        twice(serials).map_err(D::Error::custom)?;
    }
    Ok(pools)
}

/// Refuses names that stand in a list twice.
fn twice(names: &[String]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(format!("`{name}` is there twice; write it once")),
        None => Ok(()),
    }
}
