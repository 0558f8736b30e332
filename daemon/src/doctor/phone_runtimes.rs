//! Runtimes for phones: which there are, which each phone is given, and why it is not given others.

use std::path::Path;

use layerlab_farm::adb::Values;
use layerlab_farm::agents::{Agents, Linking};
use layerlab_farm::phone_runtimes::{PhoneRuntimes, Soc};
use layerlab_farm::runtimes::{AddedRuntime, RuntimeStore};

use super::Finding;

const SUBJECT: &str = "runtimes for phones";

/// The runtimes that were added.
pub(super) fn survey(data: &Path) -> Option<Finding> {
    match RuntimeStore::in_folder(data).list() {
        Ok(runtimes) if runtimes.is_empty() => None,
        Ok(runtimes) => {
            let titles: Vec<String> = runtimes.iter().map(AddedRuntime::title).collect();
            Some(Finding::fine(SUBJECT, titles.join(", ")))
        }
        Err(error) => Some(Finding::problem(
            SUBJECT,
            error.to_string(),
            "remove the file",
        )),
    }
}

/// What the phone called `name` is given.
pub(super) fn of_phone(
    name: &str,
    phone: &Values,
    agents: &Agents,
    runtimes: &PhoneRuntimes,
) -> Vec<Finding> {
    let abi = phone.text("abi").unwrap_or_default();
    // A phone without an agent has a finding already.
    let Some(linking) = Linking::of(&agents.program(abi)) else {
        return Vec::new();
    };
    let suited = runtimes.suited(abi, linking, &Soc::of(phone));
    let mut findings = Vec::new();
    if !suited.given.is_empty() {
        let titles: Vec<String> = suited
            .given
            .iter()
            .map(|(runtime, _)| runtime.title())
            .collect();
        findings.push(Finding::fine(
            name,
            format!("is given {}", titles.join(", ")),
        ));
    }
    let unsuited = suited.unsuited.into_iter();
    findings.extend(unsuited.map(|one| Finding::note(name, one.reason, one.remedy)));
    findings
}
