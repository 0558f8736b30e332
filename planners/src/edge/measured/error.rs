//! What was measured and cannot be split together.

use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::TensorCodec;

use crate::edge::error::SplitError;
use crate::edge::side::Side;
use crate::profile::ProfileError;

/// What cannot be split together.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredSplitError {
    /// The two profiles are of different models.
    #[error(
        "the phone's profile is of the model {phone} and the server's of {server}, which is another file; profile the \
         phone's model on the server, too"
    )]
    OtherModel {
        /// The name of the phone's.
        phone: String,
        /// The name of the server's.
        server: String,
    },
    /// The profiles cut one model into different layers.
    #[error(
        "the two profiles of {model} do not have the same layers; profile both with the same version of layerlab, and the \
         same sizes of dimensions"
    )]
    OtherLayers {
        /// The model's name.
        model: String,
    },
    /// A profile has no processor that may be used.
    #[error(
        "the {side}'s profile has no processor that computes in 32-bit floats; choose other processors, of {known}"
    )]
    NoProcessor {
        /// Whose profile.
        side: Side,
        /// Those that it has.
        known: String,
    },
    /// A profile does not have a processor that was chosen.
    #[error("the {side}'s profile has no processor {name:?}; it has {known}")]
    UnknownProcessor {
        /// Whose profile.
        side: Side,
        /// What was chosen.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// What a processor answers is not what the phone's reference CPU does.
    #[error(
        "the {side}'s {processor} computes in {numerics}, and how accurate that is was not measured: only 32-bit floats \
         count as the {cpu} that accuracies are measured against; choose other processors by {option}, or leave out \
         --accuracy"
    )]
    OtherNumerics {
        /// Whose processor.
        side: Side,
        /// The processor.
        processor: String,
        /// What it computes in.
        numerics: &'static str,
        /// The phone's reference CPU.
        cpu: String,
        /// The option that chooses others.
        option: &'static str,
    },
    /// The link was measured from another phone.
    #[error(
        "the link {link} was measured from the phone {serial}, and the profile is of the phone {profiled}; measure the link \
         from that one"
    )]
    OtherPhone {
        /// The link's name.
        link: String,
        /// The serial of the phone that measured it.
        serial: String,
        /// The serial of the profile's phone.
        profiled: String,
    },
    /// A link's document lacks a direction.
    #[error("the link {link} was not measured as {direction}; measure it again")]
    NoDirection {
        /// The link's name.
        link: String,
        /// The direction.
        direction: LinkDirection,
    },
    /// The packed tensors are of another network.
    #[error(
        "the {side}'s tensors are of {compressed}, and the profiles of {model}, which is another file or has other layers; \
         measure the tensors of the profiles' model"
    )]
    TensorsOfOtherModel {
        /// Whose tensors.
        side: Side,
        /// The name of their model.
        compressed: String,
        /// The name of the profiles'.
        model: String,
    },
    /// The tensors were packed elsewhere than the profile says.
    #[error(
        "the {side}'s tensors were packed on {compressed}, and its profile is of {profiled}; measure the tensors there"
    )]
    TensorsOfOtherDevice {
        /// Whose tensors.
        side: Side,
        /// What packed them.
        compressed: String,
        /// What was profiled.
        profiled: String,
    },
    /// Nobody timed the packing.
    #[error(
        "the {side}'s tensors were packed on a simulated device, so that nothing was timed; measure them on a real one"
    )]
    TensorsNotTimed {
        /// Whose tensors.
        side: Side,
    },
    /// The two sides packed tensors of other pictures, whose sizes and times do not belong together.
    #[error(
        "the phone's tensors are of {phone}, and the server's of {server}; measure both with the same --set, --pictures and --seed"
    )]
    TensorsOfOtherPictures {
        /// The phone's pictures.
        phone: String,
        /// The server's.
        server: String,
    },
    /// A codec that was not measured.
    #[error(
        "the {side}'s tensors were not packed by {codec}, but by {known}; measure them with it, too, or choose by --codecs"
    )]
    NotPackedBy {
        /// Whose tensors.
        side: Side,
        /// The codec.
        codec: TensorCodec,
        /// Those that they were packed by.
        known: String,
    },
    /// A profile's tables cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// What was measured makes no problem.
    #[error(transparent)]
    Split(#[from] SplitError),
}
