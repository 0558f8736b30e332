//! The phone that measured a link, and which kinds its link can be.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::LinkKind;
use crate::document::{Phone, Program};

/// The phone that measured a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPhone {
    /// The phone, as it describes itself.
    pub described: Phone,
    /// The agent that measured.
    pub agent: Program,
    /// How the phone was reached meanwhile.
    pub attached: PhoneAttached,
    /// Whether the server's address was the phone itself, where only a tunnel leads to a server.
    pub tunnelled: bool,
}

/// How adb reaches a phone, and so what a tunnel of adb's crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhoneAttached {
    /// By a USB cable.
    Cable,
    /// By a network address.
    Network,
}

impl PhoneAttached {
    /// What carries a tunnel to a phone that is reached like this.
    pub const fn tunnel(self) -> LinkKind {
        match self {
            PhoneAttached::Cable => LinkKind::UsbTunnel,
            PhoneAttached::Network => LinkKind::NetworkTunnel,
        }
    }
}

impl fmt::Display for PhoneAttached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PhoneAttached::Cable => "a cable",
            PhoneAttached::Network => "a network",
        })
    }
}

/// A kind that a phone's link is said to be and cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherKind {
    /// It is a tunnel, and perhaps over something else.
    #[error(
        "the server's address is the phone itself, from where only a tunnel leads to a server, and {attached} leads to \
         the phone: the kind is {}", attached.tunnel()
    )]
    Tunnel {
        /// How the phone is reached.
        attached: PhoneAttached,
    },
    /// It is none.
    #[error(
        "the server's address is not the phone itself, where a tunnel begins: the kind is wifi, cellular or ethernet"
    )]
    NoTunnel,
}

impl LinkPhone {
    /// Whether a link that the phone measured can be carried by `kind`, as far as this can be seen.
    ///
    /// # Errors
    /// When it is said to be a tunnel and is none, or is one and is not said to be, or one over something else.
    pub fn may_measure(&self, kind: LinkKind) -> Result<(), OtherKind> {
        let attached = self.attached;
        let is_tunnel = matches!(kind, LinkKind::UsbTunnel | LinkKind::NetworkTunnel);
        match (self.tunnelled, is_tunnel) {
            (true, _) if kind != attached.tunnel() => Err(OtherKind::Tunnel { attached }),
            (false, true) => Err(OtherKind::NoTunnel),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_said_to_be_one_and_over_what() {
        use LinkKind::{Cellular, Ethernet, NetworkTunnel, UsbTunnel, Wifi};
        let phone = |attached, tunnelled| LinkPhone {
            described: Phone::default(),
            agent: Program {
                name: "layerlab-agent".to_owned(),
                version: "0.1.0".to_owned(),
            },
            attached,
            tunnelled,
        };
        for attached in [PhoneAttached::Cable, PhoneAttached::Network] {
            for kind in [Wifi, Cellular, Ethernet, UsbTunnel, NetworkTunnel] {
                let tunnelled = phone(attached, true).may_measure(kind);
                assert_eq!(
                    tunnelled.is_ok(),
                    kind == attached.tunnel(),
                    "{kind} by {attached}"
                );
                let direct = phone(attached, false).may_measure(kind);
                let is_tunnel = [UsbTunnel, NetworkTunnel].contains(&kind);
                assert_eq!(direct.is_err(), is_tunnel, "{kind} by {attached}");
            }
        }
        let said = phone(PhoneAttached::Network, true).may_measure(Wifi);
        let said = said.expect_err("it is a tunnel").to_string();
        assert!(said.ends_with("the kind is network-tunnel"), "{said}");
    }
}
