//! From a published profile to what planners take.

use std::fmt;

use layerlab_profiles::accuracy::{Part, is_reference};
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::{Fit, GraphError};
use layerlab_profiles::document::{
    CombinationRow, Evaluation, Model, ModelInput, Processor, ProcessorKind, Profile,
};
use layerlab_profiles::energy::EnergyError;
use layerlab_profiles::loading::LoadTimes;
use layerlab_profiles::summary::Z_95;

use crate::memory::{AcceleratorMemory, MemoryMode};
use crate::rows::{AccuracyRow, AccuracyTable, RowsError, Set};
use crate::times::{ProcessorTable, TimeTable, TimesError};
use crate::unsupported::UnsupportedSegment;

/// What planners miss in a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
        /// The name of the processor that lacks them.
        processor: String,
        /// For how many layers it has times.
        rows: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// The profile's samples no longer give its times.
    #[error("the samples of `{processor}` give no layer times: {reason}")]
    Fit {
        /// The name of the processor whose samples they are.
        processor: String,
        /// Why the samples give no layer times.
        reason: GraphError,
    },
    /// The layer times make no table.
    #[error(transparent)]
    Times(#[from] TimesError),
    /// The profile says nothing of accuracy.
    #[error("the profile has no measured combinations{0}")]
    NoCombinations(AccuracyRemedy),
    /// The profile says nothing of the accuracy on these processors together.
    #[error(
        "the profile has no measured combinations of {processors} together; add them with `layerlab evaluate --profile`"
    )]
    NoneTogether {
        /// The names of the processors.
        processors: String,
    },
    /// The profile says nothing of energy.
    #[error(
        "the profile does not say what inferences draw; measure it with `layerlab profile --energy 30s`, or choose another goal"
    )]
    NoEnergy,
    /// Energy was measured on other processors.
    #[error(
        "the profile does not say what every layer draws on `{processor}`; measure energy on it, too"
    )]
    NoEnergyOn {
        /// The name of the processor.
        processor: String,
    },
    /// Runs are to be loaded when they are needed, and nobody knows what that draws.
    #[error(
        "what loading layers draws is not measured: plan for little energy with --memory resident"
    )]
    NoLoadingEnergy,
    /// The profile's windows no longer give its energies.
    #[error(transparent)]
    Energy(#[from] EnergyError),
    /// The measured combinations make no table.
    #[error(transparent)]
    Combinations(#[from] RowsError),
}

impl ProfileError {
    /// That this profile says nothing of accuracy.
    pub fn no_combinations(profile: &Profile) -> ProfileError {
        ProfileError::NoCombinations(AccuracyRemedy::of(&profile.header.model))
    }

    /// Whether what is missed is the accuracy on the processors that were asked for.
    pub fn is_about_accuracy(&self) -> bool {
        matches!(
            self,
            ProfileError::NoCombinations(_) | ProfileError::NoneTogether { .. }
        )
    }
}

/// What can be done where accuracy was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccuracyRemedy {
    /// The model takes an image: an evaluation set can judge it.
    Measure,
    /// It takes something else, which this says: no evaluation set can.
    OtherInput(String),
    /// What it takes was not recorded.
    Unknown,
}

impl AccuracyRemedy {
    fn of(model: &Model) -> AccuracyRemedy {
        let Some(inputs) = &model.inputs else {
            return AccuracyRemedy::Unknown;
        };
        match (model.takes_an_image(), &inputs[..]) {
            (Some(true), _) => AccuracyRemedy::Measure,
            (_, [ModelInput { name, shape }]) => {
                let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
                AccuracyRemedy::OtherInput(format!("`{name}` of {}", axes.join("x")))
            }
            _ => AccuracyRemedy::OtherInput(format!("{} inputs", inputs.len())),
        }
    }
}

impl fmt::Display for AccuracyRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEASURE: &str = "measure them with `layerlab profile --set`, or add them with `layerlab evaluate --profile`";
        const TIME_ALONE: &str = "`layerlab plan min-time` without --accuracy plans by time alone";
        match self {
            AccuracyRemedy::Measure => write!(f, "; {MEASURE}, or plan without: {TIME_ALONE}"),
            AccuracyRemedy::OtherInput(what) => write!(
                f,
                ", and the accuracy of this model cannot be measured: it takes {what}, and evaluation sets hold images; {TIME_ALONE}"
            ),
            AccuracyRemedy::Unknown => write!(
                f,
                "; if the model takes one image, {MEASURE}; of other models accuracy cannot be measured, and {TIME_ALONE}"
            ),
        }
    }
}

/// The two processors, by name, that a plan is about. Nothing means the profile's first of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The name of the CPU.
    pub cpu: Option<&'a str>,
    /// The name of the accelerator.
    pub npu: Option<&'a str>,
}

/// What a plan is made of: what layers cost and what placements lose, on the same processors.
pub struct Tables<'a> {
    /// What each layer costs on each processor.
    pub times: TimeTable,
    /// What the measured placements lose.
    pub accuracy: AccuracyTable,
    /// How that was measured, and on which processors.
    pub evaluation: &'a Evaluation,
}

/// The tables of the CPU and the accelerators of these names. Where fewer than two accelerators are named, they
/// are those of the first evaluation of such a pair; where nothing is named and there is none, of the first.
pub fn tables<'a>(
    profile: &'a Profile,
    cpu: Option<&str>,
    accelerators: &[&str],
) -> Result<Tables<'a>, ProfileError> {
    let together = |names: &[&str]| -> Result<Tables<'a>, ProfileError> {
        let times = time_table_of(profile, names)?;
        let (accuracy, evaluation) = accuracy_table_of(profile, names)?;
        Ok(Tables {
            times,
            accuracy,
            evaluation,
        })
    };
    if accelerators.len() > 1 {
        return together(&processors(profile, cpu, accelerators)?);
    }
    let npu = accelerators.first().copied();
    let pair = Pair { cpu, npu };
    match (accuracy_table(profile, pair), profile.evaluations.first()) {
        (Ok((accuracy, evaluation)), _) => {
            let pair = Pair {
                cpu: Some(&evaluation.cpu),
                npu: Some(&evaluation.accelerator),
            };
            Ok(Tables {
                times: time_table(profile, pair)?,
                accuracy,
                evaluation,
            })
        }
        (Err(ProfileError::NoCombinations(_)), Some(first)) if pair == Pair::default() => {
            together(&first.processors(&profile.header))
        }
        (Err(ProfileError::NoCombinations(_)), Some(_)) => Err(ProfileError::NoneTogether {
            processors: processors(profile, cpu, accelerators)?.join(", "),
        }),
        // A processor that is not there is the better reason.
        (Err(error), _) => Err(time_table(profile, pair).err().unwrap_or(error)),
    }
}

/// The names of the CPU and the accelerators: those that are given, which the profile must have, or else its
/// first of the kind.
pub fn processors<'a>(
    profile: &'a Profile,
    cpu: Option<&str>,
    accelerators: &[&str],
) -> Result<Vec<&'a str>, ProfileError> {
    let mut names = vec![processor(profile, cpu, ProcessorKind::Cpu, "CPU")?];
    if accelerators.is_empty() {
        let kind = ProcessorKind::Accelerator;
        names.push(processor(profile, None, kind, "accelerator")?);
    }
    for name in accelerators {
        names.push(named(profile, name)?);
    }
    Ok(names.into_iter().map(|one| one.name.as_str()).collect())
}

/// What each layer costs on the pair of processors, with intervals of T(L) from the samples where they
/// come from least squares.
pub fn time_table(profile: &Profile, pair: Pair) -> Result<TimeTable, ProfileError> {
    let cpu = processor(profile, pair.cpu, ProcessorKind::Cpu, "CPU")?;
    let npu = processor(profile, pair.npu, ProcessorKind::Accelerator, "accelerator")?;
    let pair = [
        ProcessorTable {
            name: "CPU".to_owned(),
            kind: ProcessorKind::Cpu,
            ..table(profile, cpu)?
        },
        ProcessorTable {
            name: "NPU".to_owned(),
            kind: ProcessorKind::Accelerator,
            ..table(profile, npu)?
        },
    ];
    Ok(TimeTable::of(pair.into())?)
}

/// What each layer costs on each of the named processors, in the order of the digits of placements, with
/// intervals of T(L) as of a pair.
pub fn time_table_of(profile: &Profile, names: &[&str]) -> Result<TimeTable, ProfileError> {
    let tables = names
        .iter()
        .map(|name| table(profile, named(profile, name)?))
        .collect::<Result<_, ProfileError>>()?;
    Ok(TimeTable::of(tables)?)
}

/// What each layer draws on the processors of `times`, which the profile calls by these names: a table of nanojoules in the
/// place of nanoseconds. What processors cannot run, and what memory limits, is as there.
pub fn energy_table(
    profile: &Profile,
    names: &[&str],
    times: &TimeTable,
) -> Result<TimeTable, ProfileError> {
    let energy = profile.energy.as_ref().ok_or(ProfileError::NoEnergy)?;
    if times.mode() == MemoryMode::Reload {
        return Err(ProfileError::NoLoadingEnergy);
    }
    let tables = times.published().iter().zip(names);
    let tables = tables.map(|(table, name)| {
        let missing = || ProfileError::NoEnergyOn {
            processor: (*name).to_owned(),
        };
        let found = energy.of_processor(name).ok_or_else(missing)?;
        let layers = energy.of_layers(name, profile.header.model.layers);
        let is_whole =
            (layers.iter().zip(&table.times)).all(|(one, time)| one.is_some() == time.is_some());
        if !is_whole {
            return Err(missing());
        }
        Ok(ProcessorTable {
            times: layers,
            fit: match table.kind {
                ProcessorKind::Cpu => None,
                ProcessorKind::Accelerator => profile.energy_fit(name)?,
            },
            shared_error: found.shared_error(),
            ..table.clone()
        })
    });
    Ok(TimeTable::of(tables.collect::<Result<_, ProfileError>>()?)?)
}

/// What each layer costs on a processor, and what it cannot run.
pub(crate) fn table(
    profile: &Profile,
    processor: &Processor,
) -> Result<ProcessorTable, ProfileError> {
    let name = &processor.name;
    let of_it = profile
        .unsupported
        .iter()
        .filter(|row| row.processor == *name);
    let memory = match processor.kind {
        ProcessorKind::Cpu => None,
        ProcessorKind::Accelerator => Some(memory(profile, processor)),
    };
    // Of what memory does not hold together its limit says more.
    let is_limited = memory
        .as_ref()
        .is_some_and(|memory| memory.capacity.is_some() && !memory.loaded.is_empty());
    let of_it =
        of_it.filter(|row| row.segment.layers() == 1 || row.needed.is_none() || !is_limited);
    let unsupported = of_it.map(|row| UnsupportedSegment {
        segment: row.segment,
        reason: row.reason.clone(),
    });
    Ok(ProcessorTable {
        name: name.clone(),
        kind: processor.kind,
        times: layer_times(profile, name)?,
        unsupported: unsupported.collect(),
        fit: match processor.kind {
            ProcessorKind::Cpu => None,
            ProcessorKind::Accelerator => fit(profile, processor)?,
        },
        shared_error: profile.shared_error(name).half_width() / Z_95,
        memory,
    })
}

/// What the profile tells of an accelerator's memory. Where the device did not tell how much there is, and something did not
/// fit, what is known to fit is the largest segment that was loaded.
fn memory(profile: &Profile, processor: &Processor) -> AcceleratorMemory {
    let loads = || {
        let all = profile.loads.iter();
        all.filter(|load| load.processor == processor.name)
    };
    let mut unsupported = profile.unsupported.iter();
    let was_short = unsupported.any(|row| row.processor == processor.name && row.needed.is_some());
    let largest = loads().map(|load| load.memory).max();
    // Compiling is not part of loading again.
    let times = loads()
        .filter(|load| load.compiled != Some(true))
        .map(|load| (load.segment, load.duration));
    AcceleratorMemory {
        capacity: processor.memory_bytes.or(largest.filter(|_| was_short)),
        loaded: loads().map(|load| (load.segment, load.memory)).collect(),
        load_times: LoadTimes::of(profile.header.model.layers, &times.collect()),
        mode: MemoryMode::Resident,
    }
}

/// The fit from which an accelerator's times come, if they come from one.
fn fit(profile: &Profile, accelerator: &Processor) -> Result<Option<Fit>, ProfileError> {
    let fit = profile.fit(&accelerator.name).transpose();
    fit.map_err(|reason| ProfileError::Fit {
        processor: accelerator.name.clone(),
        reason,
    })
}

/// The measured combinations of a profile for the pair of processors, and how they were measured.
pub fn accuracy_table<'a>(
    profile: &'a Profile,
    pair: Pair,
) -> Result<(AccuracyTable, &'a Evaluation), ProfileError> {
    let is_wanted = |evaluation: &&Evaluation| {
        pair.cpu.is_none_or(|cpu| cpu == evaluation.cpu)
            && pair.npu.is_none_or(|npu| npu == evaluation.accelerator)
            && evaluation.processors(&profile.header).len() == 2
    };
    let evaluation = profile.evaluations.iter().find(is_wanted);
    let evaluation = evaluation.ok_or_else(|| ProfileError::no_combinations(profile))?;
    Ok((measured(profile, evaluation, 2)?, evaluation))
}

/// The measured combinations of a profile for the named processors, in the order of the digits, and how they
/// were measured.
pub fn accuracy_table_of<'a>(
    profile: &'a Profile,
    names: &[&str],
) -> Result<(AccuracyTable, &'a Evaluation), ProfileError> {
    let mut evaluations = profile.evaluations.iter();
    let evaluation = evaluations.find(|evaluation| evaluation.processors(&profile.header) == names);
    let evaluation = evaluation.ok_or_else(|| ProfileError::NoneTogether {
        processors: names.join(", "),
    })?;
    Ok((measured(profile, evaluation, names.len())?, evaluation))
}

/// The table of one evaluation's rows.
fn measured(
    profile: &Profile,
    evaluation: &Evaluation,
    processors: usize,
) -> Result<AccuracyTable, ProfileError> {
    let is_of_it = |row: &&CombinationRow| {
        row.cpu == evaluation.cpu && row.accelerator == evaluation.accelerator
    };
    let measured: Vec<&CombinationRow> = profile.combinations.iter().filter(is_of_it).collect();
    let baseline = measured
        .iter()
        .find(|row| row.combination.is_all_on(0))
        .ok_or_else(|| ProfileError::no_combinations(profile))?;
    let names = evaluation.processors(&profile.header);
    let supported: Vec<_> = names.iter().map(|name| profile.supported(name)).collect();
    let rows = measured.iter().map(|row| AccuracyRow {
        combination: row.combination.clone(),
        set: match row.part {
            // Profiles of version 3 count references that were drawn as random. Their losses are features of the others.
            _ if is_reference(&row.combination, &supported) => Set::Reference,
            Part::Train => Set::Train,
            Part::Test => Set::Test,
            Part::Reference => Set::Reference,
        },
        loss: row.loss,
        loss_ci95: Some(row.loss_ci95),
    });
    Ok(AccuracyTable::where_supported(
        profile.layers.len(),
        processors,
        baseline.score,
        rows.collect(),
        |processor, index| supported[processor].has(index as u32 + 1),
    )?)
}

/// The layer times of one processor, layer 1 first; none of those that it cannot run.
pub fn layer_times(
    profile: &Profile,
    processor: &str,
) -> Result<Vec<Option<LayerTime>>, ProfileError> {
    let times = profile.layer_times(processor);
    let supported = profile.supported(processor);
    let is_whole = (1..)
        .zip(&times)
        .all(|(layer, time)| time.is_some() == supported.has(layer));
    if !is_whole {
        return Err(ProfileError::Rows {
            processor: processor.to_owned(),
            rows: times.iter().flatten().count(),
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
    let mut processors = profile.header.processors.iter();
    match name {
        Some(name) => named(profile, name),
        None => processors
            .find(|processor| processor.kind == kind)
            .ok_or(ProfileError::NoProcessor { kind: kind_name }),
    }
}

fn named<'a>(profile: &'a Profile, name: &str) -> Result<&'a Processor, ProfileError> {
    let processors = &profile.header.processors;
    let found = processors.iter().find(|processor| processor.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = processors.iter().map(|p| p.name.as_str()).collect();
        ProfileError::UnknownProcessor {
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}
