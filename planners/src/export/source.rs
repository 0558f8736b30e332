//! Whom a document is about: without it a plan is a number without a device.

use layerlab_profiles::document::{Profile, ProfileDigest};
use layerlab_profiles::soak::Thermal;
use serde::{Deserialize, Serialize};

/// The model, the device and the processors that a document is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The model's name.
    pub model: String,
    /// SHA-256 of the model file.
    pub model_sha256: String,
    /// The device's name.
    pub device: String,
    /// The CPU's name.
    pub cpu: String,
    /// The NPU's name; of several accelerators, their names in the order of their digits, with `+` between
    /// them.
    pub npu: String,
    /// The run that measured the profile.
    pub run: String,
    /// The profile's digest; absent where the document was made of a profile that was not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_digest: Option<String>,
    /// Whether any number comes from a simulated processor: then the document describes no real device.
    pub simulated: bool,
    /// Whether any number comes from an emulated processor: then its times are no device's.
    #[serde(default)]
    pub emulated: bool,
    /// Of what state of the device the times are; of a cool one where that is absent.
    #[serde(default, skip_serializing_if = "Thermal::is_cold")]
    pub thermal: Thermal,
}

impl Source {
    /// The source of what is planned from `profile` for a CPU and an accelerator, or several as above.
    pub fn of(profile: &Profile, cpu: &str, npu: &str) -> Source {
        let header = &profile.header;
        Source {
            model: header.model.name.clone(),
            model_sha256: header.model.sha256.clone(),
            device: header.device.name.clone(),
            cpu: cpu.to_owned(),
            npu: npu.to_owned(),
            run: header.provenance.run.clone(),
            profile_digest: None,
            simulated: header.simulated,
            thermal: header.thermal,
            emulated: header.is_emulated(cpu) || npu.split('+').any(|one| header.is_emulated(one)),
        }
    }

    /// The source by the digest of its profile, too.
    #[must_use]
    pub fn named(self, digest: &ProfileDigest) -> Source {
        Source {
            profile_digest: Some(digest.to_string()),
            ..self
        }
    }
}
