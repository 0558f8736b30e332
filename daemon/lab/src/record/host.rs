//! A host of a lab that several have.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The longest name of a host.
const LONGEST_NAME: usize = 63;

/// Why a host cannot have this name; nothing if it can.
pub fn bad_host_name(name: &str) -> Option<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !name.is_empty() && name.chars().all(is_usual) && name.len() <= LONGEST_NAME;
    (!is_name).then(|| {
        format!(
            "`{}` is no name of a host; write at most {LONGEST_NAME} letters, digits, dashes, dots and underscores, such as \
             \"rack-1\"",
            name.escape_debug()
        )
    })
}

/// A machine whose daemon works on the lab's runs with the devices that are connected to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What the host is called in the lab.
    pub name: String,
    /// What the machine calls itself.
    pub machine: String,
    /// The process of its daemon; nothing if that has ended, or has lost its runs to other hosts.
    pub process: Option<u32>,
    /// The version of its daemon.
    pub version: String,
    /// Its time zone by its name, if that has one.
    pub zone: Option<String>,
    /// The names of the devices that it has, or had last.
    pub devices: Vec<String>,
    /// Whether it may work.
    pub lease: LeaseState,
    /// When the store heard of it last.
    pub seen: Timestamp,
    /// How long ago its lease ended, by the server's clock; zero while it has one.
    pub lease_over: Duration,
    /// Whether its runs are not waited for any more.
    pub is_given_up: bool,
}

/// Whether a host may work on the lab's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// It may.
    Alive,
    /// It was not heard of for so long that others may take its runs before long.
    Lost,
    /// Its daemon has ended, or has lost its runs to other hosts.
    Ended,
}
