//! Which devices there are.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The simulated phones that come with layerlab, so that it can be tried without a phone.
pub const BUILT_IN: [BuiltIn; 3] = [
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
];

/// The name of the device that is this machine itself.
pub const HOST: &str = "host";

/// A simulated phone that comes with layerlab.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// The name by which `--device` knows it.
    pub name: &'static str,
    /// Its description.
    pub toml: &'static str,
}

/// A device that a user may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// What to give to `--device`.
    pub name: String,
    /// How it is reached.
    pub link: &'static str,
    /// Whether it is only a simulation.
    pub simulated: bool,
    /// What it is, for a person.
    pub description: String,
}

/// What a user meant by `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This machine.
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
    let host = Listed {
        name: HOST.to_owned(),
        link: "local",
        simulated: false,
        description: "this machine's CPU, measured with tract".to_owned(),
    };
    let simulated = BUILT_IN.iter().map(|device| Listed {
        name: device.name.to_owned(),
        link: "local",
        simulated: true,
        description: first_sentence(device.toml),
    });
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
