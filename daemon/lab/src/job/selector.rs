//! Which devices a job is for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::device::Device;

/// A device by its serial or by its properties. All that are named must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Selector {
    /// The serial of a phone, the address at which it is reached, or the name of a local device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The SoC, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soc: Option<String>,
    /// The binary interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abi: Option<String>,
    /// The Android version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub android: Option<Requirement>,
    /// A pool of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Each device that matches when the job is submitted, not any one of them.
    #[serde(skip_serializing_if = "is_false")]
    pub each: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Selector {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self
            == Selector {
                each: self.each,
                ..Selector::default()
            }
    }

    /// Whether `device` is meant.
    pub fn matches(&self, device: &Device) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| match wanted {
            None => true,
            Some(wanted) => found.is_some_and(|found| wanted.eq_ignore_ascii_case(found)),
        };
        let serial = match &self.serial {
            None => true,
            Some(serial) => device.is_called(serial),
        };
        serial
            && same(&self.soc, device.soc.as_deref())
            && same(&self.abi, device.abi.as_deref())
            && (self.android.as_ref())
                .is_none_or(|android| device.android.is_some_and(|found| android.holds(found)))
            && (self.pool.as_ref()).is_none_or(|pool| device.pools.contains(pool))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{name} {value}"))
        };
        let parts = [
            text("serial", &self.serial),
            text("soc", &self.soc),
            text("abi", &self.abi),
            self.android
                .as_ref()
                .map(|android| format!("android {android}")),
            text("pool", &self.pool),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str("any device"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

/// A bound on a version, such as `>= 14`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "String")]
pub struct Requirement {
    relation: Relation,
    version: u32,
}

/// A requirement as it is written: `">= 14"` or `14`.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "write a version such as 14, or a bound such as \">= 14\""
)]
enum Text {
    Number(u32),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Relation {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

/// The relations and how they are written; the longer of two that begin alike comes first.
const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    ("=", Relation::Equal),
    (">", Relation::More),
    ("<", Relation::Less),
];

impl Requirement {
    fn holds(&self, found: u32) -> bool {
        match self.relation {
            Relation::Less => found < self.version,
            Relation::AtMost => found <= self.version,
            Relation::Equal => found == self.version,
            Relation::AtLeast => found >= self.version,
            Relation::More => found > self.version,
        }
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
        let text = text.trim();
        let (relation, version) = RELATIONS
            .iter()
            .find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)))
            .unwrap_or((Relation::Equal, text));
        match version.trim().parse() {
            Ok(version) => Ok(Requirement { relation, version }),
            Err(_) => Err(format!(
                "`{text}` is no requirement; write a version such as 14, or a bound such as >= 14"
            )),
        }
    }
}

impl TryFrom<Text> for Requirement {
    type Error = String;

    fn try_from(text: Text) -> Result<Requirement, String> {
        match text {
            Text::Number(version) => Ok(Requirement {
                relation: Relation::Equal,
                version,
            }),
            Text::Text(text) => text.parse(),
        }
    }
}

impl From<Requirement> for String {
    fn from(requirement: Requirement) -> String {
        requirement.to_string()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = RELATIONS
            .iter()
            .find(|(_, relation)| *relation == self.relation);
        write!(f, "{} {}", sign.map_or("=", |(sign, _)| sign), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "R58@lab2:5037".to_owned(),
            serial: "R58".to_owned(),
            soc: Some("Kirin970".to_owned()),
            abi: Some("arm64-v8a".to_owned()),
            android: Some(10),
            pools: vec!["night".to_owned()],
            ..Device::default()
        }
    }

    fn selector(toml: &str) -> Selector {
        toml::from_str(toml).expect("a selector")
    }

    #[test]
    fn all_that_is_named_must_hold() {
        let cases = [
            ("serial = 'R58'", true),
            ("serial = 'R58@lab2:5037'", true),
            ("serial = 'r58'", false),
            ("soc = 'kirin970'", true),
            ("soc = 'kirin970'\nabi = 'x86_64'", false),
            ("android = 10", true),
            ("android = '>= 10'", true),
            ("android = '>10'", false),
            ("android = '< 11'", true),
            ("pool = 'night'", true),
            ("pool = 'day'", false),
            ("", true),
        ];
        for (toml, expected) in cases {
            assert_eq!(selector(toml).matches(&device()), expected, "{toml}");
        }
    }

    #[test]
    fn a_device_that_does_not_say_is_not_meant() {
        let unknown = Device::default();
        for toml in ["soc = 'x'", "android = '>= 1'", "abi = 'x'"] {
            assert!(!selector(toml).matches(&unknown), "{toml}");
        }
    }

    #[test]
    fn what_is_no_version_is_said() {
        let error = toml::from_str::<Selector>("android = '>= fourteen'").expect_err("no number");
        assert!(error.to_string().contains(">= 14"), "{error}");
        assert_eq!(selector("android = '>= 14'").to_string(), "android >= 14");
    }
}
