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
    let soc = Soc::of(phone);
    if runtimes.are_none() {
        return without_runtimes(name, abi, linking, &soc)
            .into_iter()
            .collect();
    }
    let suited = runtimes.suited(abi, linking, &soc);
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

/// Which files to get for a phone, where none was added.
fn without_runtimes(name: &str, abi: &str, linking: Linking, soc: &Soc) -> Option<Finding> {
    let agent = match linking {
        Linking::Android => String::new(),
        Linking::Static => format!("make agent ABI={abi} ANDROID=1 (with the Android NDK), then "),
        // Nobody has Android's files for a computer's libraries.
        Linking::Computer => return None,
    };
    let (what, files) = match soc.is_qualcomm {
        true => (
            "its Hexagon is not measured, and its CPUs by the agent's own runtime alone",
            "com.microsoft.onnxruntime:onnxruntime-android, com.qualcomm.qti:onnxruntime-android-qnn and \
             com.qualcomm.qti:qnn-runtime (Qualcomm's two for the SoCs that docs/phones.md names)",
        ),
        false => (
            "its CPUs are measured by the agent's own runtime alone",
            "com.microsoft.onnxruntime:onnxruntime-android",
        ),
    };
    Some(Finding::note(
        name,
        format!("no runtime was added: {what}"),
        format!(
            "{agent}layerlab runtime add FILE.aar, with {files} from Maven Central; docs/phones.md says more"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(abi: &str, linking: Linking, is_qualcomm: bool) -> Option<String> {
        let soc = Soc {
            model: "SM8550".to_owned(),
            is_qualcomm,
        };
        let finding = without_runtimes("P1", abi, linking, &soc)?;
        Some(serde_json::to_string(&finding).expect("JSON"))
    }

    #[test]
    fn a_phone_without_runtimes_is_told_which_files_to_get_and_whether_its_agent_loads_them() {
        let qualcomm = told("arm64-v8a", Linking::Android, true).expect("a note");
        for word in [
            "Hexagon",
            "onnxruntime-android-qnn",
            "qnn-runtime",
            "layerlab runtime add",
        ] {
            assert!(qualcomm.contains(word), "{qualcomm}");
        }
        assert!(!qualcomm.contains("make agent"), "{qualcomm}");
        let other = told("arm64-v8a", Linking::Static, false).expect("a note");
        assert!(
            other.contains("make agent ABI=arm64-v8a ANDROID=1") && !other.contains("qualcomm"),
            "{other}"
        );
        assert_eq!(told("x86_64", Linking::Computer, true), None);
    }
}
