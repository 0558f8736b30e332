//! What users may choose about a campaign, and what holds where they choose nothing: the one place for it, of which the
//! command line, job files and the demo take their defaults.

use std::time::Duration;

use layerlab_profiles::design::Design;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::document::{Processor, ProcessorKind};
use layerlab_profiles::placement::MOST_PROCESSORS;
use layerlab_profiles::soak::{LONGEST, MINUTE, SHORTEST};
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::video::VideoPart;
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::Hygiene;

use super::energy::EnergySettings;
use super::evaluation::{EvaluationSettings, Placements};

/// What divides the cost of a cut between layers into moving in and moving out, with accelerators that are measured by
/// least squares (docs/method.md §10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InOut {
    /// Probes, which are measured, too.
    #[default]
    Probed,
    /// The papers' assumption that both cost the same.
    Symmetric,
}

/// What the user may choose about measuring times.
#[derive(Clone, Debug, PartialEq)]
pub struct TimesSettings {
    /// The processors to measure, by their names; all that the device has if there are none.
    pub processors: Vec<String>,
    /// Which segments to measure on accelerators.
    pub design: Design,
    /// How many samples each segment gets.
    pub samples_per_segment: u64,
    /// In how many visits a segment's samples are taken, with designs other than adaptive.
    pub visits: u64,
    /// The idle time before each inference.
    pub gap: Nanos,
    /// Seeds inputs and order.
    pub seed: u64,
    /// When a block counts.
    pub hygiene: Hygiene,
    /// With the design adaptive: the half width that every interval should have, as a share. 0.02 is 2 %.
    pub target: f64,
    /// With the design adaptive: how much device time there is on each accelerator.
    pub budget: Nanos,
    /// With the design adaptive: what is done where that is not enough to derive layer times.
    pub over_budget: OverBudget,
    /// What tells moving in from moving out.
    pub in_out: InOut,
    /// How the device is made hot and steady before anything is measured; `None` where it is to be cool.
    pub steady: Option<SteadySettings>,
    /// How what inferences draw is measured, before their times; `None` where it is not.
    pub energy: Option<EnergySettings>,
}

/// What the user may choose about measuring frames.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSettings {
    /// The processor that answers; the device's first accelerator if none is named, without one its first CPU.
    pub processor: Option<String>,
    /// The parts of a placement, one after the other; none if all layers run on that processor.
    pub parts: Vec<VideoPart>,
    /// How many of the set's images to answer; all if none.
    pub answers: Option<u64>,
    /// How many of them, at most, to answer in all forms: those of the half that judges calibration first.
    pub frames: u64,
    /// What images and halves are drawn from.
    pub seed: u64,
}

impl VideoSettings {
    /// So many are answered in all forms.
    pub const FRAMES: u64 = 500;
    /// What images and halves are drawn from.
    pub const SEED: u64 = 1;
    /// One to calibrate by, and one to judge that by.
    pub const FEWEST_ANSWERS: u64 = 2;
}

/// What the user may choose about compressing tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorsSettings {
    /// The processor that runs the layers; the device's first CPU if none is named.
    pub processor: Option<String>,
    /// What each tensor is packed by.
    pub codecs: Vec<TensorCodec>,
    /// How many of the set's pictures to answer; up to [`TensorsSettings::PICTURES`] if none.
    pub pictures: Option<u64>,
    /// Whether answers are judged with what crosses a cut rounded to 8 bits.
    pub judge: bool,
    /// What pictures are drawn by.
    pub seed: u64,
}

impl TensorsSettings {
    /// So many pictures are answered, of a set that has them.
    pub const PICTURES: u64 = 100;
    /// What pictures are drawn by.
    pub const SEED: u64 = 1;
}

/// How a device is brought into its steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadySettings {
    /// For how long each processor is kept busy.
    pub duration: Nanos,
    /// Whether the device gets cool before, so that what it takes then can be compared.
    pub rest: bool,
}

/// A time for which nothing becomes steady, or nobody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a device is kept busy for whole minutes, from {} to {}: write 30m",
    minutes(SHORTEST),
    minutes(LONGEST)
)]
pub struct UnfitDuration;

impl SteadySettings {
    /// Keeps each processor of a device that gets cool before busy for so long.
    pub fn of(duration: Nanos) -> Result<SteadySettings, UnfitDuration> {
        let is_whole = duration.as_nanos().is_multiple_of(MINUTE.as_nanos());
        match is_whole && (SHORTEST..=LONGEST).contains(&duration) {
            true => Ok(SteadySettings {
                duration,
                rest: true,
            }),
            false => Err(UnfitDuration),
        }
    }
}

fn minutes(duration: Nanos) -> String {
    format!("{}m", duration.as_nanos() / MINUTE.as_nanos())
}

impl TimesSettings {
    /// The design unless another is chosen.
    pub const DESIGN: Design = Design::Adaptive;
    /// Below six samples no two of them enclose the median with 95 % confidence, and a profile without
    /// intervals is no use; thirty are the papers' habit.
    pub const SAMPLES: u64 = 30;
    /// Enough to tell what differs between visits with four degrees of freedom, at the cost of five loads.
    pub const VISITS: u64 = 5;
    /// The gap in microseconds.
    pub const GAP_US: u64 = 1000;
    /// The seed of inputs and order.
    pub const SEED: u64 = 1;
    /// The target in per cent.
    pub const TARGET_PERCENT: f64 = 2.0;
    /// The device time on each accelerator.
    pub const BUDGET: Duration = Duration::from_secs(600);
}

impl Default for TimesSettings {
    fn default() -> TimesSettings {
        TimesSettings {
            processors: Vec::new(),
            design: Self::DESIGN,
            samples_per_segment: Self::SAMPLES,
            visits: Self::VISITS,
            gap: Nanos::from_micros(Self::GAP_US),
            seed: Self::SEED,
            hygiene: Hygiene::default(),
            target: Self::TARGET_PERCENT / 100.0,
            budget: Self::BUDGET.into(),
            over_budget: OverBudget::default(),
            in_out: InOut::default(),
            steady: None,
            energy: None,
        }
    }
}

/// What the user may choose about measuring accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracySettings {
    /// The processor for layers marked 0; the first CPU if none is named.
    pub cpu: Option<String>,
    /// The processors for layers marked 1, 2 and so on; the first accelerator if none is named.
    pub accelerators: Vec<String>,
    /// Which placements answer the images.
    pub placements: Placements,
    /// Of the random placements, their parts, and the order of the answers.
    pub seed: u64,
    /// How many of the set's answers to give; all if it is not said.
    pub answers: Option<usize>,
    /// No more answers of a placement when half the width of its loss's interval is at most this.
    pub stop_at_half_width: Option<f64>,
    /// What activations may take on the device while placements are walked together.
    pub memory: Bytes,
    /// Whether neighbours on one processor are loaded and run as one segment; else each layer is by itself.
    pub as_runs: bool,
}

impl AccuracySettings {
    /// How many random placements there are.
    pub const PLACEMENTS: usize = 300;
    /// The seed of placements and answers.
    pub const SEED: u64 = 1;
    /// What activations may take, in MiB.
    pub const MEMORY_MIB: u64 = 256;

    /// These choices on a device with these processors.
    pub fn on(&self, processors: &[Processor]) -> Result<EvaluationSettings, UnfitProcessors> {
        let choose = |named: Option<&String>, kind| {
            let mut of_kind = processors.iter().filter(|one| one.kind == kind);
            let found = match named {
                Some(name) => of_kind.find(|one| one.name == *name),
                None => of_kind.next(),
            };
            let missing = || UnfitProcessors::Missing {
                kind,
                named: named.cloned(),
                there: processors.iter().map(|one| one.name.clone()).collect(),
            };
            found.map(|one| one.name.clone()).ok_or_else(missing)
        };
        let mut chosen = vec![choose(self.cpu.as_ref(), ProcessorKind::Cpu)?];
        if self.accelerators.is_empty() {
            chosen.push(choose(None, ProcessorKind::Accelerator)?);
        }
        for name in &self.accelerators {
            let accelerator = choose(Some(name), ProcessorKind::Accelerator)?;
            if chosen.contains(&accelerator) {
                return Err(UnfitProcessors::Twice { name: accelerator });
            }
            chosen.push(accelerator);
        }
        if chosen.len() > MOST_PROCESSORS {
            let given = chosen.len();
            return Err(UnfitProcessors::TooMany { given });
        }
        Ok(EvaluationSettings {
            processors: chosen,
            placements: self.placements.clone(),
            seed: self.seed,
            answers: self.answers,
            stop_at_half_width: self.stop_at_half_width,
            memory: self.memory,
            as_runs: self.as_runs,
            keep_answers: false,
        })
    }
}

impl Default for AccuracySettings {
    fn default() -> AccuracySettings {
        AccuracySettings {
            cpu: None,
            accelerators: Vec::new(),
            placements: Placements::Random(Self::PLACEMENTS),
            seed: Self::SEED,
            answers: None,
            stop_at_half_width: None,
            memory: Bytes::from_bytes(Self::MEMORY_MIB << 20),
            as_runs: false,
        }
    }
}

/// Processors of which no accuracy can be measured: it is that of a CPU and one accelerator or more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitProcessors {
    /// One of them is not there.
    #[error(
        "accuracy needs {}{}, and there is none among the processors {}",
        match kind { ProcessorKind::Cpu => "a CPU", ProcessorKind::Accelerator => "an accelerator" },
        named.as_ref().map_or_else(String::new, |name| format!(" named `{name}`")),
        there.join(", ")
    )]
    Missing {
        /// Of which kind there is none.
        kind: ProcessorKind,
        /// The name that the user asked for.
        named: Option<String>,
        /// Those that there are.
        there: Vec<String>,
    },
    /// One of them was chosen twice.
    #[error("the processor `{name}` is named twice; name each once, in the order of the digits")]
    Twice {
        /// Its name.
        name: String,
    },
    /// A placement has one digit for each layer.
    #[error(
        "{given} processors are named, and a placement tells {} apart; name fewer",
        MOST_PROCESSORS
    )]
    TooMany {
        /// How many were chosen.
        given: usize,
    },
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::document::Numerics;

    use super::*;

    fn processor(name: &str, kind: ProcessorKind) -> Processor {
        Processor {
            name: name.to_owned(),
            kind,
            numerics: Numerics::F32,
            emulated: false,
            runtime: "test".to_owned(),
            runtime_version: "1".to_owned(),
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: None,
            threads: None,
            pinned_to_cores: None,
        }
    }

    #[test]
    fn accuracy_takes_the_first_processor_of_each_kind_unless_another_is_named() {
        let there = [
            processor("npu", ProcessorKind::Accelerator),
            processor("cpu:all", ProcessorKind::Cpu),
            processor("cpu:big4", ProcessorKind::Cpu),
        ];
        let first = AccuracySettings::default().on(&there).expect("both kinds");
        assert_eq!(first.processors, ["cpu:all", "npu"]);
        let named = AccuracySettings {
            cpu: Some("cpu:big4".to_owned()),
            ..AccuracySettings::default()
        };
        let named = named.on(&there).expect("both kinds");
        assert_eq!(named.processors, ["cpu:big4", "npu"]);
        let absent = AccuracySettings::default().on(&there[1..]);
        assert_eq!(
            absent.expect_err("no accelerator").to_string(),
            "accuracy needs an accelerator, and there is none among the processors cpu:all, cpu:big4"
        );
    }

    #[test]
    fn accuracy_takes_as_many_accelerators_as_are_named_each_once() {
        let there = [
            processor("cpu", ProcessorKind::Cpu),
            processor("gpu", ProcessorKind::Accelerator),
            processor("npu", ProcessorKind::Accelerator),
        ];
        let on = |names: &[&str]| {
            let settings = AccuracySettings {
                accelerators: names.iter().map(ToString::to_string).collect(),
                ..AccuracySettings::default()
            };
            settings.on(&there).map(|settings| settings.processors)
        };
        assert_eq!(on(&["npu", "gpu"]).expect("both"), ["cpu", "npu", "gpu"]);
        let refused = |names: &[&str]| on(names).expect_err("unfit").to_string();
        assert_eq!(
            refused(&["gpu", "gpu"]),
            "the processor `gpu` is named twice; name each once, in the order of the digits"
        );
        assert_eq!(
            refused(&["gpu", "cpu"]),
            "accuracy needs an accelerator named `cpu`, and there is none among the processors cpu, gpu, npu"
        );
    }
}
