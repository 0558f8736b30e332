//! The published profile: `profile.json` and twelve tables beside it, two more where its times are steady ones, and two more
//! where energy was measured. FORMAT.md says every field.

mod additivity;
mod block;
mod build;
mod build_error;
mod combination;
mod decimals;
mod derivation;
mod digest;
mod energy;
mod error;
mod header;
mod histogram;
mod known_errors;
mod layer_times;
mod load;
mod measurement;
mod moving;
mod observed;
mod opened;
mod origin;
mod probe_sample;
mod processor;
mod proved_placement;
mod provenance;
mod read;
mod segment_object;
mod soak;
mod states;
mod unsupported;
mod versions;
mod whole_model;
mod wire;
mod write;

pub use additivity::{Additivity, TestedSegment};
pub use block::{Block, BlockEnd, Conditions, Disturbance, Measured, Rejected};
pub use build_error::BuildError;
pub use combination::{CombinationRow, Evaluation, EvaluationError, Judged, judged_rows};
pub use digest::{DIGEST_FILE, ExpectedDigest, NoDigest, ProfileDigest};
pub use energy::{Energy, EnergyMeasurement, MeasuredEnergy, ProcessorEnergy};
pub use error::{Contradiction, DocumentError, RowError};
pub use header::{Clock, Device, FORMAT, HashedFile, Header, Model, ModelInput, VERSION};
pub use histogram::{decode_histogram, encode_histogram};
pub use load::Load;
pub use measurement::Measurement;
pub use moving::{MovedCut, Moving, MovingLine, MovingNumber, MovingRefusal};
pub use origin::Origin;
pub use probe_sample::ProbeSample;
pub use processor::{Numerics, ONNX_RUNTIME, Processor, SIMULATED_RUNTIME};
pub use proved_placement::ProvedPlacement;
pub use provenance::{Fitness, Host, Phone, Program, Provenance};
pub use soak::{MinuteRow, NoTimes, STEADY_FOLDER, Soak, SoakPhase, SoakRow, SoakState, Soaking};
pub use unsupported::{Unsupported, supported};
pub use wire::schema;

pub use crate::method::Method;
pub use crate::processor_kind::ProcessorKind;

pub(crate) use combination::{rounded, single_losses};
pub(crate) use derivation::{
    Derivation, DerivedNumbers, Timings, derivation, refuse_unless_derivable,
};
pub(crate) use histogram::is_histogram_of;
pub(crate) use known_errors::KnownErrors;
pub(crate) use moving::{Probed, probed};
pub(crate) use observed::{summary, visit_samples};
pub(crate) use read::{read_file, read_with_contradictions};
pub(crate) use states::states;
pub(crate) use wire::Table;
#[cfg(test)]
pub(crate) use wire::assert_columns_are_fields;
pub(crate) use write::write_files;

use crate::derive::LayerTime;
use crate::layer::Layer;
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};
use crate::units::Nanos;

/// The file that says what the tables beside it are.
pub const PROFILE_JSON: &str = "profile.json";

/// One published profile: a model on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// `profile.json`: what was measured, where, how and when.
    pub header: Header,
    /// `layers.csv`: the model's layers, layer 1 first.
    pub layers: Vec<Layer>,
    /// `times.csv`: what each layer costs on each processor that can run it, in the header's order of processors.
    pub times: Vec<LayerTimeRow>,
    /// `cuts.csv`: what cutting between layers costs, of processors whose times come from least squares.
    pub cuts: Vec<CutRow>,
    /// `segments.csv`: what the samples of each segment say.
    pub segments: Vec<SegmentRow>,
    /// `samples.csv`: every inference that was timed in a block that counts.
    pub samples: Vec<Sample>,
    /// `rejected.csv`: every inference that was timed in a block that does not count.
    pub rejected: Vec<Sample>,
    /// `blocks.csv`: in which turns they were timed, and in what state the device was.
    pub blocks: Vec<Block>,
    /// `combinations.csv`: what placements lose of the model's accuracy, where that was measured.
    pub combinations: Vec<CombinationRow>,
    /// `unsupported.csv`: what processors cannot run. A layer that one cannot run has no times on it.
    pub unsupported: Vec<Unsupported>,
    /// `loads.csv`: what it took to load each measured segment; none where that was not recorded.
    pub loads: Vec<Load>,
    /// `placements.csv`: where runtimes placed the nodes of measured segments, of runtimes that tell.
    pub placements: Vec<ProvedPlacement>,
    /// `evaluations` of `profile.json`: how that was measured, for each pair of processors.
    pub evaluations: Vec<Evaluation>,
    /// `additivity` of `profile.json`: how well segment times add up, where that was tested.
    pub additivity: Vec<Additivity>,
    /// `probes.csv`: every inference of a probe that was timed, where there were any.
    pub probes: Vec<ProbeSample>,
    /// `moving` of `profile.json`: what they say, for each processor of which cuts were to be divided by them.
    pub moving: Vec<Moving>,
    /// `soak.csv`, `minutes.csv` and `soaks` of `profile.json`: how the device became steady, where these are times of a
    /// device in its steady state.
    pub soaking: Soaking,
    /// `energy.csv`, `layer_energy.csv` and `energy` of `profile.json`: what inferences draw, where that was measured.
    pub energy: Option<Energy>,
    /// The folder `steady`: the profile of the same device in its steady state, where this is one of a cool device that was
    /// measured both ways.
    pub steady: Option<Box<Profile>>,
}

/// One inference of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The layers that ran as one unit.
    pub segment: Segment,
    /// The order in which the agent measured it.
    pub order: u32,
    /// The block of that order, counted from 0.
    pub block: u32,
    /// The sample's number in its order, counted from 0; with `order` it names the sample, with `block`
    /// too one that was rejected.
    pub index: u64,
    /// When the inference started, since the start of the phone's monotonic clock.
    pub started: Nanos,
    /// How long it took.
    pub duration: Nanos,
}

/// The samples of one segment on one processor, summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentRow {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The layers that ran as one unit.
    pub segment: Segment,
    /// Order statistics of the samples.
    pub summary: Summary,
    /// The samples' HDR histogram (three significant digits), V2 compressed and in base64.
    pub histogram: String,
}

/// What one layer costs on one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerTimeRow {
    /// The layer's number, counted from 1.
    pub layer: u32,
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The times and their intervals.
    pub time: LayerTime,
    /// How the times came to be.
    pub method: Method,
}

/// What cutting a model between two layers costs on one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct CutRow {
    /// The layer before the cut, counted from 1.
    pub after_layer: u32,
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// Leaving after this layer and entering before the next, and what the two would have saved by running
    /// together. Unlike single transfers it needs no assumption (docs/method.md §3).
    pub cost: Estimate,
    /// How it came to be.
    pub method: Method,
}
