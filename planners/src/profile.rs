//! From a published profile to what planners take.

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::GraphError;
use layerlab_profiles::document::{Processor, ProcessorKind, Profile};

use crate::rows::AccuracyTable;
use crate::times::{TimeTable, TimesError};

/// What planners miss in a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A processor is not in the profile.
    #[error("the profile has no processor `{name}`; it has {known}")]
    UnknownProcessor {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Nothing of this kind was measured.
    #[error("the profile has no {kind}; a plan places layers on a CPU and an accelerator")]
    NoProcessor {
        /// What is missing.
        kind: &'static str,
    },
    /// A processor lacks layer times.
    #[error(
        "the profile has times of {rows} layers on `{processor}` and the model has {layers}; run `layerlab check` on it"
    )]
    Rows {
        /// The processor.
        processor: String,
        /// Its rows.
        rows: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// The profile's samples no longer give its times.
    #[error("the samples of `{processor}` give no layer times: {reason}")]
    Fit {
        /// The processor.
        processor: String,
        /// Why not.
        reason: GraphError,
    },
    /// The layer times make no table.
    #[error(transparent)]
    Times(#[from] TimesError),
    /// The profile says nothing of accuracy.
    #[error(
        "the profile has no measured combinations; measure the accuracy of this model on this device first"
    )]
    NoCombinations,
}

/// The two processors, by name, that a plan is about. Nothing means the profile's first of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The CPU.
    pub cpu: Option<&'a str>,
    /// The NPU.
    pub npu: Option<&'a str>,
}

/// What each layer costs on the pair of processors, with intervals of T(L) from the samples where they
/// come from least squares.
pub fn time_table(profile: &Profile, pair: Pair) -> Result<TimeTable, ProfileError> {
    let cpu = processor(profile, pair.cpu, ProcessorKind::Cpu, "CPU")?;
    let npu = processor(profile, pair.npu, ProcessorKind::Accelerator, "accelerator")?;
    let fit = profile
        .fit(&npu.name)
        .transpose()
        .map_err(|reason| ProfileError::Fit {
            processor: npu.name.clone(),
            reason,
        })?;
    Ok(TimeTable::new(
        layer_times(profile, &cpu.name)?,
        layer_times(profile, &npu.name)?,
        fit,
    )?)
}

/// The measured combinations of a profile.
///
/// Profiles of this version hold none: the one place to change when they do.
pub fn accuracy_table(_profile: &Profile, _pair: Pair) -> Result<AccuracyTable, ProfileError> {
    Err(ProfileError::NoCombinations)
}

/// The layer times of one processor, layer 1 first.
pub fn layer_times(profile: &Profile, processor: &str) -> Result<Vec<LayerTime>, ProfileError> {
    let rows = profile
        .times
        .iter()
        .filter(|row| row.processor == processor);
    let times: Vec<LayerTime> = rows.map(|row| row.time).collect();
    if times.len() != profile.layers.len() {
        return Err(ProfileError::Rows {
            processor: processor.to_owned(),
            rows: times.len(),
            layers: profile.layers.len(),
        });
    }
    Ok(times)
}

/// The named processor, or the first of the kind.
fn processor<'a>(
    profile: &'a Profile,
    name: Option<&str>,
    kind: ProcessorKind,
    kind_name: &'static str,
) -> Result<&'a Processor, ProfileError> {
    let processors = &profile.header.processors;
    match name {
        Some(name) => {
            let found = processors.iter().find(|processor| processor.name == name);
            found.ok_or_else(|| {
                let known: Vec<&str> = processors.iter().map(|p| p.name.as_str()).collect();
                ProfileError::UnknownProcessor {
                    name: name.to_owned(),
                    known: known.join(", "),
                }
            })
        }
        None => processors
            .iter()
            .find(|processor| processor.kind == kind)
            .ok_or(ProfileError::NoProcessor { kind: kind_name }),
    }
}
