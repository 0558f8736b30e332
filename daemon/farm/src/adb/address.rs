//! Where an adb server listens, or a phone that is reached over a network.

use std::fmt;
use std::str::FromStr;

/// A host and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name or an IP address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl FromStr for Address {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
        if host.is_empty() {
            return Err("write HOST:PORT".to_owned());
        }
        Ok(Address {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for text in ["127.0.0.1:5037", "lab-3:5038", "[::1]:5037"] {
            assert_eq!(
                text.parse::<Address>().map(|address| address.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "lab", ":5037", "lab:", "lab:99999"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
