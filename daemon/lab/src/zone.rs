//! The time zone that a schedule is meant in: one by its name, or this host's.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;

/// A time zone, and whether it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    named: bool,
    rules: TimeZone,
}

/// Zones of the same name are the same.
impl std::hash::Hash for Zone {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// A name that no time zone has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time zone; write one such as Europe/Berlin, or none for this host's")]
pub struct UnknownZone(String);

impl Zone {
    /// The zone that this host is set to.
    pub fn of_this_host() -> Zone {
        Zone {
            named: false,
            rules: TimeZone::system(),
        }
    }

    /// The same, and as such if it is this host's: what is read elsewhere, means the same there.
    #[must_use]
    pub fn as_named(self) -> Zone {
        Zone {
            named: self.rules.iana_name().is_some(),
            ..self
        }
    }

    /// What turns local times into instants.
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }

    /// Its name, unless it is this host's.
    pub fn name(&self) -> Option<&str> {
        self.rules.iana_name().filter(|_| self.named)
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Zone, UnknownZone> {
        match TimeZone::get(name) {
            Ok(rules) if rules.iana_name().is_some() => Ok(Zone { named: true, rules }),
            _ => Err(UnknownZone(name.to_owned())),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("this host's time zone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_its_name_in_any_case() {
        let zone: Zone = "europe/berlin".parse().expect("a zone");
        assert_eq!(zone.to_string(), "Europe/Berlin");
    }

    #[test]
    fn a_zone_that_does_not_exist_is_named() {
        let error = "Europe/Berln".parse::<Zone>().expect_err("no zone");
        assert_eq!(
            error.to_string(),
            "`Europe/Berln` is no time zone; write one such as Europe/Berlin, or none for this host's"
        );
    }
}
