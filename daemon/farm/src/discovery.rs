//! Which devices there are.

use std::fmt;
use std::path::{Path, PathBuf};

use layerlab_profiles::document::Processor;
use serde::{Serialize, Serializer};

use super::adb::{AdbError, Found, Phone, State, Values, quote};
use super::quarantine::Quarantine;

/// The simulated phones that come with layerlab, so that it can be tried without a phone.
pub const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        name: "mate10pro",
        toml: include_str!("../../../tests/devices/mate10pro.toml"),
    },
    BuiltIn {
        name: "oneplus7",
        toml: include_str!("../../../tests/devices/oneplus7.toml"),
    },
    BuiltIn {
        name: "pixel6",
        toml: include_str!("../../../tests/devices/pixel6.toml"),
    },
    BuiltIn {
        name: "trio",
        toml: include_str!("../../../tests/devices/trio.toml"),
    },
];

/// The name of the device that is this machine itself.
pub const HOST: &str = "host";

/// A simulated phone that comes with layerlab.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// The name by which `--device` knows it.
    pub name: &'static str,
    /// The content of its device file.
    pub toml: &'static str,
}

/// A device that a user may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// What to give to `--device`.
    pub name: String,
    /// How it is reached.
    pub link: &'static str,
    /// Whether it is only a simulation, or the lab has a phone's agent play one.
    pub simulated: bool,
    /// Whether it can be used.
    pub state: ListedState,
    /// What it is, for a person.
    pub description: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Its processors, if it was asked for them: it is where there are runtimes beside its agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<Processor>>,
    /// Where a phone is reached over a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What a phone is and can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Values>,
    /// How full, how warm and how charged its battery is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Values>,
}

/// How devices that need no cable are reached.
pub const LOCAL: &str = "local";

/// Whether a device can be used, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// It can be used.
    Ready,
    /// Its server says that it cannot.
    Unusable(State),
    /// It does not answer.
    Silent,
    /// It is left alone for a while.
    Quarantined,
    /// It went away.
    Gone,
}

impl fmt::Display for ListedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ListedState::Ready => State::Ready.name(),
            ListedState::Unusable(state) => state.name(),
            ListedState::Silent => "silent",
            ListedState::Quarantined => "quarantine",
            ListedState::Gone => "gone",
        })
    }
}

/// The same words as for people.
impl Serialize for ListedState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Listed {
    fn local(name: &str, simulated: bool, description: String) -> Listed {
        Listed {
            name: name.to_owned(),
            link: LOCAL,
            simulated,
            state: ListedState::Ready,
            description,
            reason: None,
            remedy: None,
            processors: None,
            address: None,
            capabilities: None,
            battery: None,
        }
    }

    /// A phone over ADB, as far as what lists it knows it.
    pub fn unasked(found: &Found) -> Listed {
        let state = &found.row.state;
        let unusable = *state != State::Ready;
        let listed = match unusable {
            true => ListedState::Unusable(state.clone()),
            false => ListedState::Ready,
        };
        Listed {
            link: found.route.kind(),
            state: listed,
            reason: unusable.then(|| state.reason()),
            remedy: unusable.then(|| state.remedy().to_owned()),
            address: found.address().map(str::to_owned),
            ..Listed::local(
                &found.name,
                false,
                found.row.model.clone().unwrap_or_default(),
            )
        }
    }

    /// A phone over ADB, which is asked what it is if it can be used.
    pub async fn phone(found: &Found, quarantine: &Quarantine) -> Listed {
        let mut listed = Listed::unasked(found);
        if found.row.state != State::Ready {
            return listed;
        }
        let asked = async {
            let phone = Phone::new(&found.route, &found.row)?;
            Ok::<_, AdbError>((phone.capabilities().await?, phone.battery().await?))
        };
        match asked.await {
            Ok((values, battery)) => {
                listed.description = values.summary();
                listed.capabilities = Some(values);
                listed.battery = Some(battery);
            }
            Err(error) => {
                listed.state = ListedState::Silent;
                listed.reason = Some(error.to_string());
                listed.remedy = Some("unplug it and plug it in again".to_owned());
            }
        }
        let serial = listed
            .capabilities
            .as_ref()
            .and_then(|values| values.text("serial"));
        let names = [
            found.name.as_str(),
            &found.row.serial,
            serial.unwrap_or_default(),
        ];
        // A file that cannot be read is named when the phone is used.
        if let Ok(Some(entry)) = quarantine.of(&names) {
            listed.state = ListedState::Quarantined;
            listed.reason = Some(format!("{} (until {})", entry.why(), entry.until_here()));
            listed.remedy = Some(format!(
                "mend it and run `layerlab quarantine lift {}`",
                quote(&entry.phone)
            ));
        }
        listed
    }
}

/// What a user meant by `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The CPU of the machine on which layerlab runs.
    Host,
    /// A simulated phone that comes with layerlab.
    BuiltIn(&'static str, &'static str),
    /// A simulated phone described by the user's own file.
    File(PathBuf),
}

impl Choice {
    /// A short name, fit for a folder.
    pub fn name(&self) -> String {
        match self {
            Choice::Host => HOST.to_owned(),
            Choice::BuiltIn(name, _) => (*name).to_owned(),
            Choice::File(path) => path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

/// A name that no device has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no device `{0}`; `layerlab devices` lists those there are, or name a device file (.toml)"
)]
pub struct UnknownDevice(String);

/// All devices that can be named without a file.
pub fn list() -> Vec<Listed> {
    let host = "this machine's CPU, measured with tract".to_owned();
    let host = Listed::local(HOST, false, host);
    let simulated = BUILT_IN
        .iter()
        .map(|device| Listed::local(device.name, true, first_sentence(device.toml)));
    std::iter::once(host).chain(simulated).collect()
}

/// The device that `name` names.
pub fn choose(name: &str) -> Result<Choice, UnknownDevice> {
    if name == HOST {
        return Ok(Choice::Host);
    }
    if let Some(device) = BUILT_IN.iter().find(|device| device.name == name) {
        return Ok(Choice::BuiltIn(device.name, device.toml));
    }
    let path = Path::new(name);
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.is_file()
    {
        return Ok(Choice::File(path.to_owned()));
    }
    Err(UnknownDevice(name.to_owned()))
}

/// The first sentence of a device file's leading comment, which says what the device is.
fn first_sentence(toml: &str) -> String {
    let comment: Vec<&str> = toml
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim)
        .collect();
    let text = comment.join(" ");
    text.split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}
