//! What a link is: its kind, its directions and its name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What carries a link's bytes, as stated by whoever configured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Wi-Fi.
    Wifi,
    /// A mobile network.
    Cellular,
    /// A network cable, or this machine's own loopback.
    Ethernet,
    /// A USB cable with the connection forwarded over it, as `adb reverse` does.
    UsbTunnel,
    /// A connection forwarded over a network, as `adb reverse` does for a phone that is reached there.
    NetworkTunnel,
    /// Any of these, slowed down by layerlab's shaper: no number of it is a real link's.
    Shaped,
}

impl LinkKind {
    /// The word in the tables.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::Wifi => "wifi",
            LinkKind::Cellular => "cellular",
            LinkKind::Ethernet => "ethernet",
            LinkKind::UsbTunnel => "usb-tunnel",
            LinkKind::NetworkTunnel => "network-tunnel",
            LinkKind::Shaped => "shaped",
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkDirection {
    /// From the phone to the server.
    Upload,
    /// From the server to the phone.
    Download,
}

impl LinkDirection {
    /// Both, upload first.
    pub const ALL: [LinkDirection; 2] = [LinkDirection::Upload, LinkDirection::Download];
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LinkDirection::Upload => "upload",
            LinkDirection::Download => "download",
        })
    }
}

/// A name that no link can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a link's name has 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores, such as lab-wifi"
)]
pub struct BadLinkName;

/// Long enough for a place and a network, short enough for a table.
const LONGEST_NAME: usize = 64;

/// `name`, if a link can have it: it is printed on terminals and may become part of a path.
///
/// # Errors
/// When it is empty, too long, begins with a dot or has other characters than letters, digits, `.`, `-` and `_`.
pub fn link_name(name: &str) -> Result<String, BadLinkName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let good = (1..=LONGEST_NAME).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.chars().all(allowed);
    good.then(|| name.to_owned()).ok_or(BadLinkName)
}
