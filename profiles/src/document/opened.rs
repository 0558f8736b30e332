//! What `profile.json` says, whatever version it was written in.

use std::collections::BTreeMap;

use super::{Additivity, Evaluation, Header, MeasuredEnergy, Moving, Soak};

/// What `profile.json` says, in the terms of the newest version.
pub(super) struct Opened {
    pub(super) header: Header,
    pub(super) additivity: Vec<Additivity>,
    pub(super) moving: Vec<Moving>,
    pub(super) evaluations: Vec<Evaluation>,
    pub(super) soaks: Vec<Soak>,
    pub(super) energy: Option<MeasuredEnergy>,
    /// The SHA-256 of the `profile.json` of the steady profile beside it, if there is one.
    pub(super) steady: Option<String>,
    /// The SHA-256 of each table that the version has, by the table's file.
    pub(super) hashes: BTreeMap<&'static str, String>,
    /// The version in which it was written.
    pub(super) version: u32,
    /// Whether the version has a file with the digest of `profile.json`.
    pub(super) has_digest: bool,
}
