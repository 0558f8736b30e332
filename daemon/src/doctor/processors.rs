//! What a phone's agent makes of the runtimes that it is given: they are all there, and may still not be of use.

use layerlab_farm::adb::{Found, State};
use layerlab_farm::agents::Agents;
use layerlab_farm::folders::Folders;

use super::Finding;
use crate::adb::provision;
use crate::phone_processors::phone_processors;
use crate::runtimes::in_words;

/// How an agent begins a line about a processor that it cannot use.
const LEFT_OUT: &str = "left out: ";

/// The processors that a phone offers with the runtimes that were added, and why not others. Nothing where none were.
pub(super) async fn of_phone(found: &Found, agents: &Agents, folders: &Folders) -> Vec<Finding> {
    let mut provision = provision(folders, agents.of_host.clone(), None);
    if provision.runtimes.are_none() || found.row.state != State::Ready {
        return Vec::new();
    }
    // What phones are not given, and why, is found without asking them.
    provision.runtimes = provision.runtimes.silent();
    let runtimes = provision.runtimes.clone();
    let name = &found.name;
    let mut findings = match phone_processors(found, provision, folders).await {
        Ok(processors) => {
            let words: Vec<String> = processors.iter().map(in_words).collect();
            vec![Finding::fine(name, format!("offers {}", words.join("; ")))]
        }
        Err(error) => vec![Finding::problem(
            name,
            error.to_string(),
            "see what it says, and run layerlab doctor again",
        )],
    };
    let told = runtimes.told();
    let left_out = told.iter().filter_map(|line| line.strip_prefix(LEFT_OUT));
    findings.extend(left_out.map(|reason| Finding::told(name, reason)));
    findings
}
