//! Orders: what the daemon wants measured.

use std::fmt;
use std::time::Duration;

use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::units::{Bytes, Nanos};
use layerlab_profiles::video::FrameForm;
use layerlab_profiles::{Placement, Segment};
use serde::{Deserialize, Serialize};

use crate::meter_choice::MeterChoice;

/// The name of a run: what joins orders, journal entries and the published profile.
///
/// It becomes a file name on the phone, so it is made of ASCII letters, digits, `-` and `_` alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text that cannot name a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot name a run: use 1 to 100 ASCII letters, digits, `-` and `_`")]
pub struct BadRunId(String);

impl RunId {
    /// The run named `name`.
    pub fn new(name: impl Into<String>) -> Result<Self, BadRunId> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=100).contains(&name.len()) && name.chars().all(allowed) {
            Ok(RunId(name))
        } else {
            Err(BadRunId(name))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;
    fn try_from(name: String) -> Result<Self, BadRunId> {
        RunId::new(name)
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> String {
        run.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One block of work. Sending the same order twice is the same as sending it once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The run that the order belongs to.
    pub run: RunId,
    /// The order's number in its run, unique there; orders are worked on in the order of arrival.
    pub number: u32,
    /// SHA-256, in hexadecimal, of the model file, which must have been pushed before.
    pub model_sha256: String,
    /// SHA-256, in hexadecimal, of the model's quantised twin, of which the runtime `onnxruntime` runs segments on
    /// processors that compute in 8 bits; absent without one. It must have been pushed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised_sha256: Option<String>,
    /// The processor to measure, by the name that the agent's hello gave it. The parts of a placement
    /// name their own, and so do evaluations.
    pub processor: String,
    /// What to measure.
    pub work: Work,
    /// Seeds the model's input and the order in which segments are run.
    pub seed: u64,
}

/// What an order measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Each segment by itself; those that fit in memory together take turns in random order.
    TimeSegments {
        /// The segments, each once.
        segments: Vec<Segment>,
        /// How they are timed.
        timing: TimingSettings,
    },
    /// Likewise, and one long segment beside them, which has a turn in few rounds alone: what it costs, and what others may take
    /// longer after it, is then the same small part of every block.
    TimeBesideLong {
        /// The segments that have a turn in every round, each once.
        segments: Vec<Segment>,
        /// The long one, which is none of them.
        long: Segment,
        /// It has a turn in one of so many rounds, the first among them.
        rounds: u64,
        /// How they are timed; the long one gets as many samples as it has turns.
        timing: TimingSettings,
    },
    /// Passes over the whole model, each layer run by itself and fed by the layer before it.
    TimePasses {
        /// How the layers are timed.
        timing: TimingSettings,
    },
    /// Passes over the whole model as a planner places it: each part on a processor of its own choice,
    /// fed by the part before it.
    TimePlacement {
        /// The parts, the first layer's first; together they are the whole model.
        parts: Vec<Part>,
        /// How they are timed.
        timing: TimingSettings,
        /// Whether each part on an accelerator is loaded when it is needed, in every pass, and unloaded after it; loading
        /// then is part of its time. Else all parts are loaded before the first pass.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reload: bool,
    },
    /// Nothing but keeping the processor busy with inferences of the whole model, one after the other, until its times change
    /// no more (docs/method.md §12). The order fails if they still do in the end. Of orders of the same run that time the same
    /// processor, those that ask for [`Hygiene::steady`] compare their sentinels with what it took then.
    Soak {
        /// For how long.
        duration_ns: Nanos,
        /// Each journal entry is about the inferences of so long.
        slice_ns: Nanos,
        /// Whether the device is to get cool before, and the whole model be timed then.
        rest: bool,
        /// Whether the model runs layer by layer, each fed by the one before; else as one segment.
        passes: bool,
        /// How a segment is warmed up, and when a device is cool.
        timing: TimingSettings,
    },
    /// Each segment is run over and over while a power meter is read, between times in which the device idles (docs/method.md
    /// §13): one visit to each of them.
    MeasureEnergy {
        /// The segments, each once; they are visited in random order.
        segments: Vec<Segment>,
        /// Which power meter is read.
        meter: MeterChoice,
        /// For how long it is read in each window, at least.
        window_ns: Nanos,
        /// How a segment is warmed up, and when a device is cool.
        timing: TimingSettings,
    },
    /// Which layers each of these processors cannot run, and of accelerators which segments their empty memory does not hold.
    /// Nothing is timed, and nothing loaded but by runtimes that cannot tell otherwise.
    Survey {
        /// The processors to ask about, by the names that the agent's hello gave them.
        processors: Vec<String>,
    },
    /// Answers to labelled images under many placements, each answer judged (docs/method.md §6).
    Evaluate {
        /// SHA-256, in hexadecimal, of the evaluation set's file, which must have been pushed before.
        set_sha256: String,
        /// The processors of the placements' digits, processor 0 first, by the names that the agent's hello
        /// gave them.
        processors: Vec<String>,
        /// The placements under which each answer is given; tallies come in this order.
        combinations: Vec<Placement>,
        /// Which answers to give, by their places in the set.
        answers: Vec<u64>,
        /// What activations may take while placements are walked together.
        memory_bytes: Bytes,
        /// Whether neighbours on one processor are loaded and run as one segment; else each layer is by itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        as_runs: bool,
        /// Whether what each placement answers is told as well, before it is judged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep_answers: bool,
    },
    /// Answers to images as a camera delivers them, and to the same images in forms in which they would be sent, each brought to
    /// that size, encoded and decoded here (docs/video.md). Without parts the whole model runs as one segment.
    AnswerFrames {
        /// SHA-256, in hexadecimal, of the evaluation set's file, which must have been pushed before.
        set_sha256: String,
        /// Which images, by their places in the set.
        images: Vec<u64>,
        /// The forms; none if the images are only answered as they are.
        forms: Vec<FrameForm>,
        /// The layers and where they run, one part after the other, where they do not all run on the order's processor.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    /// The tensors that cross cuts while the model answers images, layer by layer on the order's processor, each packed by each
    /// codec and unpacked again (docs/edge.md).
    PackTensors {
        /// SHA-256, in hexadecimal, of the evaluation set's file, which must have been pushed before.
        set_sha256: String,
        /// Which images, by their places in the set.
        images: Vec<u64>,
        /// The codecs.
        codecs: Vec<TensorCodec>,
        /// Whether the model also answers each image with what crosses each cut rounded to 8 bits, and is judged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        judge: bool,
    },
}

/// A part of a placement: layers that run as one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The layers of the part, counted in the whole model.
    pub segment: Segment,
    /// The processor, by the name that the agent's hello gave it.
    pub processor: String,
}

impl Order {
    /// The SHA-256s of the files that it needs: its model, the model's quantised twin and its evaluation set.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let set = match &self.work {
            Work::Evaluate { set_sha256, .. }
            | Work::AnswerFrames { set_sha256, .. }
            | Work::PackTensors { set_sha256, .. } => Some(set_sha256.as_str()),
            Work::TimeSegments { .. }
            | Work::TimeBesideLong { .. }
            | Work::TimePasses { .. }
            | Work::TimePlacement { .. }
            | Work::Soak { .. }
            | Work::MeasureEnergy { .. }
            | Work::Survey { .. } => None,
        };
        let twin = self.quantised_sha256.as_deref();
        std::iter::once(self.model_sha256.as_str())
            .chain(twin)
            .chain(set)
    }

    /// The processor on which the order runs `segment`.
    pub fn processor_of(&self, segment: Segment) -> &str {
        let part = match &self.work {
            Work::TimePlacement { parts, .. } => parts.iter().find(|part| part.segment == segment),
            Work::TimeSegments { .. }
            | Work::TimeBesideLong { .. }
            | Work::TimePasses { .. }
            | Work::Soak { .. }
            | Work::MeasureEnergy { .. }
            | Work::Survey { .. }
            | Work::Evaluate { .. }
            | Work::AnswerFrames { .. }
            | Work::PackTensors { .. } => None,
        };
        part.map_or(&self.processor, |part| &part.processor)
    }
}

/// How segments are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingSettings {
    /// How many samples each segment gets.
    pub samples_per_segment: u64,
    /// The idle time before each inference.
    pub gap_ns: Nanos,
    /// When a segment is warm.
    pub warm_up: WarmUp,
    /// When a block counts.
    pub hygiene: Hygiene,
}

/// When a segment is warm: a fast and a slow exponential average of its times agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// At least this many runs.
    pub min_runs: u32,
    /// At most this many, whether or not the averages agree.
    pub max_runs: u32,
    /// The averages agree when they differ by at most this many per cent.
    pub agreement_percent: u32,
}

impl Default for WarmUp {
    /// docs/method.md §5: within 4 %, 3 to 30 runs.
    fn default() -> Self {
        WarmUp {
            min_runs: 3,
            max_runs: 30,
            agreement_percent: 4,
        }
    }
}

/// When a block counts (docs/method.md §5), and what to do when it does not.
///
/// The whole model is the sentinel, timed at both ends of a block. A block is rejected when its sentinel
/// moved against the run's first, when the device throttles, or when a clock cap changed during it; the
/// device then rests until it is cool, and the block is measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hygiene {
    /// A sentinel within this many per cent of the run's first has not moved.
    pub sentinel_tolerance_percent: u32,
    /// How often a block is measured again before its order fails as throttled.
    pub redos: u32,
    /// How long to rest before looking again whether the device is cool.
    pub cool_down_poll_ns: Nanos,
    /// After this rest a device that is not cool yet will not become so.
    pub cool_down_deadline_ns: Nanos,
    /// Whether blocks count in which the device throttles: somebody wants it to be measured as it is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub throttling_counts: bool,
    /// Whether blocks count in which the device is as steady as an order to [soak](Work::Soak) left it. Where it has got
    /// cooler, it is kept busy in the place of resting. Throttling counts then, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub steady: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Hygiene {
    /// For so long a device that is too slow rests, in all; then it will not become as fast as it was. Fleets wait for at
    /// most 20 minutes.
    pub const COOL_DOWN: Duration = Duration::from_secs(20 * 60);

    /// How often one would look, if all of that passed, whether the device is fit: every 10 seconds of 20 minutes.
    const POLLS: u64 = 120;

    /// The same with so much rest in all.
    #[must_use]
    pub fn resting_for(self, cool_down: Nanos) -> Hygiene {
        Hygiene {
            cool_down_poll_ns: Nanos::from_nanos((cool_down.as_nanos() / Self::POLLS).max(1)),
            cool_down_deadline_ns: cool_down,
            ..self
        }
    }

    /// What holds on a processor that an emulator plays: its times are no device's, so that it proves nothing whether they
    /// are steady, and every block counts.
    pub fn of_emulated(self) -> Hygiene {
        Hygiene {
            sentinel_tolerance_percent: u32::MAX,
            ..self
        }
    }
}

impl Default for Hygiene {
    /// docs/method.md §5: 10 %. Five redos outlast a passing disturbance.
    fn default() -> Self {
        let restless = Hygiene {
            sentinel_tolerance_percent: 10,
            redos: 5,
            cool_down_poll_ns: Nanos::ZERO,
            cool_down_deadline_ns: Nanos::ZERO,
            throttling_counts: false,
            steady: false,
        };
        restless.resting_for(Self::COOL_DOWN.into())
    }
}
