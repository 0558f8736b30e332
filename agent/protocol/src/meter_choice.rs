//! Which power meter is to be read, as users write it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which power meter is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MeterChoice {
    /// The best of those that the device has: power rails, RAPL or the fuel gauge.
    #[default]
    Any,
    /// Meters of power rails.
    Rails,
    /// The processor's energy counters.
    Rapl,
    /// The battery's fuel gauge.
    FuelGauge,
    /// An instrument whose lines come from this address, as the device reaches it: HOST:PORT.
    Tcp(String),
    /// An instrument whose lines come from this file of the device, such as a serial port.
    Serial(String),
}

/// A text that names no power meter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no power meter: write auto, rails, rapl, fuel-gauge, tcp:HOST:PORT, or the path of a serial port such as \
     /dev/ttyUSB0"
)]
pub struct BadMeterChoice(String);

impl FromStr for MeterChoice {
    type Err = BadMeterChoice;
    fn from_str(text: &str) -> Result<Self, BadMeterChoice> {
        Ok(match text {
            "auto" => MeterChoice::Any,
            "rails" => MeterChoice::Rails,
            "rapl" => MeterChoice::Rapl,
            "fuel-gauge" => MeterChoice::FuelGauge,
            path if path.starts_with('/') => MeterChoice::Serial(path.to_owned()),
            other => {
                let address = other.strip_prefix("tcp:");
                let parts = address.and_then(|address| address.rsplit_once(':'));
                match (address, parts) {
                    (Some(address), Some((host, port)))
                        if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
                    {
                        MeterChoice::Tcp(address.to_owned())
                    }
                    _ => return Err(BadMeterChoice(text.to_owned())),
                }
            }
        })
    }
}

impl fmt::Display for MeterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeterChoice::Any => f.pad("auto"),
            MeterChoice::Rails => f.pad("rails"),
            MeterChoice::Rapl => f.pad("rapl"),
            MeterChoice::FuelGauge => f.pad("fuel-gauge"),
            MeterChoice::Tcp(address) => f.pad(&format!("tcp:{address}")),
            MeterChoice::Serial(path) => f.pad(path),
        }
    }
}

impl TryFrom<String> for MeterChoice {
    type Error = BadMeterChoice;
    fn try_from(text: String) -> Result<Self, BadMeterChoice> {
        text.parse()
    }
}

impl From<MeterChoice> for String {
    fn from(choice: MeterChoice) -> String {
        choice.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_reads_as_it_is_written() {
        for text in [
            "auto",
            "rails",
            "rapl",
            "fuel-gauge",
            "tcp:127.0.0.1:9000",
            "tcp:[::1]:9000",
            "/dev/ttyUSB0",
        ] {
            assert_eq!(text.parse::<MeterChoice>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_names_no_meter_is_refused_with_those_that_there_are() {
        for text in [
            "",
            "gauge",
            "tcp:",
            "tcp::1",
            "tcp:host",
            "tcp:host:0",
            "tcp:host:x",
            "dev/tty",
        ] {
            let error = text.parse::<MeterChoice>().expect_err(text).to_string();
            assert!(error.contains("fuel-gauge"), "{error}");
        }
    }
}
