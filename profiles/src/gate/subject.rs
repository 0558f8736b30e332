//! What a profile is of. Whether something has become worse is asked of two profiles of the same subject, and where nothing
//! known has changed between them, what is found is a false alarm or a change that nobody knows of.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::document::{Header, Processor};
use crate::soak::Thermal;

/// A model on a device with its runtimes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSubject {
    /// The model's name, for people.
    pub model: String,
    /// SHA-256 of the model's file, in hexadecimal.
    pub model_sha256: String,
    /// Those of the files that hold its weights, in the order of their names.
    pub weights_sha256: Vec<String>,
    /// That of its quantised twin, if a processor ran one.
    pub quantised_sha256: Option<String>,
    /// The device's name, as its agent says it. Phones of one kind may all have the same.
    pub device: String,
    /// Whether it is simulated.
    pub simulated: bool,
    /// Of what state of the device the times are; a cool one's where that is not said.
    #[serde(default, skip_serializing_if = "Thermal::is_cold")]
    pub thermal: Thermal,
    /// The runtimes of its processors, without their versions: a new one is what may make a model slower.
    pub runtimes: BTreeSet<String>,
}

impl ProfileSubject {
    /// What the profile of this header is of.
    pub fn of(header: &Header) -> ProfileSubject {
        let model = &header.model;
        let weights = model.external_weights.iter().flatten();
        ProfileSubject {
            model: model.name.clone(),
            model_sha256: model.sha256.clone(),
            weights_sha256: weights.map(|file| file.sha256.clone()).collect(),
            quantised_sha256: model.quantised.as_ref().map(|twin| twin.sha256.clone()),
            device: header.device.name.clone(),
            simulated: header.simulated,
            thermal: header.thermal,
            runtimes: (header.processors.iter())
                .map(|processor| processor.runtime.clone())
                .collect(),
        }
    }

    /// Whether both are the same; what a model's file is called does not matter.
    pub fn is_same(&self, other: &ProfileSubject) -> bool {
        let named_alike = ProfileSubject {
            model: self.model.clone(),
            ..other.clone()
        };
        *self == named_alike
    }
}

impl std::fmt::Display for ProfileSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runtimes: Vec<&str> = self.runtimes.iter().map(String::as_str).collect();
        let (model, device) = (&self.model, &self.device);
        write!(f, "{model} on {device} by {}", runtimes.join(", "))?;
        match self.thermal {
            Thermal::Cold => Ok(()),
            Thermal::Steady => f.write_str(", in its steady state"),
        }
    }
}

/// What is known to have changed between two profiles of one subject, each in a few words; nothing if a gate between them
/// compares the same thing with itself.
pub fn known_changes(one: &Header, other: &Header) -> Vec<String> {
    let mut changes = Vec::new();
    for ours in &one.processors {
        let mut processors = other.processors.iter();
        if let Some(theirs) = processors.find(|theirs| theirs.name == ours.name) {
            changes.extend(of_processor(ours, theirs));
        }
    }
    let (before, now) = (&one.provenance, &other.provenance);
    let programs = [
        (
            "the device's system",
            &before.device_system,
            &now.device_system,
        ),
        (
            "the agent",
            &before.device_program.version,
            &now.device_program.version,
        ),
        (
            "layerlab",
            &before.host_program.version,
            &now.host_program.version,
        ),
    ];
    for (what, before, now) in programs {
        if before != now {
            changes.push(format!("{what}: {before}, now {now}"));
        }
    }
    changes
}

fn of_processor(one: &Processor, other: &Processor) -> Vec<String> {
    let name = &one.name;
    let mut changes = Vec::new();
    let mut told = |what: &str, before: &str, now: &str| {
        if before != now {
            changes.push(format!("{what} on {name}: {before}, now {now}"));
        }
    };
    told("the runtime", &one.runtime, &other.runtime);
    told(&one.runtime, &one.runtime_version, &other.runtime_version);
    let others = [
        ("the numerics", one.numerics != other.numerics),
        (
            "the runtime's options",
            one.runtime_options != other.runtime_options,
        ),
        (
            "the runtime's libraries",
            one.runtime_libraries != other.runtime_libraries,
        ),
        ("the threads", one.threads != other.threads),
        ("the cores", one.pinned_to_cores != other.pinned_to_cores),
    ];
    let changed = others.iter().filter(|(_, has_changed)| *has_changed);
    changes.extend(changed.map(|(what, _)| format!("{what} on {name}")));
    changes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document::Profile;

    fn header(path: &str) -> Header {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published");
        let profile = Profile::read(&folder.join(path));
        profile.expect("a published profile").header
    }

    #[test]
    fn a_renamed_model_is_the_same_subject_and_another_device_or_runtime_is_not() {
        let header = header("oneplus7/vocnet-mini");
        let subject = ProfileSubject::of(&header);
        let changed = |change: fn(&mut Header)| {
            let mut other = header.clone();
            change(&mut other);
            subject.is_same(&ProfileSubject::of(&other))
        };
        assert!(changed(|_| {}));
        assert!(changed(|header| header.model.name = "renamed".to_owned()));
        assert!(changed(|header| {
            header.processors[0].runtime_version = "99".to_owned();
        }));
        assert!(!changed(|header| header.device.name = "another".to_owned()));
        assert!(!changed(|header| header.model.sha256 = "00".repeat(32)));
        assert!(!changed(|header| header.simulated = false));
        assert!(!changed(|header| {
            header.processors[1].runtime = "another".to_owned();
        }));
    }

    #[test]
    fn what_is_known_to_have_changed_is_said() {
        let before = header("oneplus7/vocnet-mini");
        assert_eq!(known_changes(&before, &before), [""; 0]);
        let mut now = before.clone();
        now.processors[1].runtime_version = "99".to_owned();
        now.processors[0].threads = Some(7);
        now.provenance.device_system = "Android 17".to_owned();
        let changes = known_changes(&before, &now);
        assert_eq!(changes.len(), 3, "{changes:?}");
        assert!(
            changes.contains(&"the threads on cpu".to_owned()),
            "{changes:?}"
        );
        assert!(
            changes.iter().any(|one| one.ends_with("now 99")),
            "{changes:?}"
        );
        assert!(
            changes.iter().any(|one| one.ends_with("now Android 17")),
            "{changes:?}"
        );
    }
}
