//! Agents: whether there is one for this host and for each phone, and whether it can load what the phone has.

use layerlab_farm::adb::Values;
use layerlab_farm::agents::{Agents, Linking};

use super::Finding;

/// The agent of this host, and those for phones.
pub(super) fn survey(agents: &Agents) -> Vec<Finding> {
    let built: Vec<String> = agents
        .all()
        .iter()
        .map(|(abi, agent)| match Linking::of(agent) {
            Some(linking) => format!("{abi} ({linking})"),
            None => format!("{abi} (no program: build it anew)"),
        })
        .collect();
    let for_phones = if built.is_empty() {
        let message = format!("none in {}", agents.folder.display());
        Finding::note("agents for phones", message, "make agent")
    } else {
        Finding::fine("agents for phones", built.join(", "))
    };
    let of_host = agents.of_host.display();
    let for_host = if agents.of_host.is_file() {
        Finding::fine("agent for this host", of_host.to_string())
    } else {
        Finding::problem(
            "agent for this host",
            format!("{of_host} is not there"),
            "put it beside layerlab, or name it with --agent",
        )
    };
    vec![for_host, for_phones]
}

/// The binary interfaces that `make agent` knows.
const BUILDABLE: [&str; 3] = ["arm64-v8a", "armeabi-v7a", "x86_64"];

/// A phone for which there is no agent, and whether there can be one.
fn without_agent(name: &str, abi: &str) -> Finding {
    if BUILDABLE.contains(&abi) {
        let remedy = format!(
            "make agent ABI={abi}, in the folder of layerlab's source (needs Rust by rustup, and Python)"
        );
        return Finding::problem(name, format!("no agent for {abi}"), remedy);
    }
    let message = match abi {
        "" => "it does not say which processor it has (ro.product.cpu.abi)".to_owned(),
        other => format!("layerlab has no agents for its processor, {other}"),
    };
    let remedy = format!("take another phone, with one of {}", BUILDABLE.join(", "));
    Finding::problem(name, message, remedy)
}

/// The agent that the phone called `name` gets, and whether it can load the runtimes that the phone says it has.
pub(super) fn of_phone(name: &str, phone: &Values, agents: &Agents) -> Vec<Finding> {
    let abi = phone.text("abi").unwrap_or_default();
    let Some(agent) = agents.built(abi) else {
        let of_host = abi == std::env::consts::ARCH && agents.of_host.is_file();
        return vec![match of_host {
            true => Finding::fine(name, "agent of this host"),
            false => without_agent(name, abi),
        }];
    };
    let mut findings = vec![Finding::fine(name, format!("agent {}", agent.display()))];
    let runtimes = phone.text("npu_runtimes").unwrap_or_default();
    if !runtimes.is_empty() && Linking::of(&agent) == Some(Linking::Static) {
        findings.push(Finding::note(
            name,
            format!(
                "the phone has libraries for accelerators ({runtimes}), and its agent is static, so that it measures CPUs alone"
            ),
            format!("make agent ABI={abi} ANDROID=1, with the Android NDK"),
        ));
    }
    findings
}
