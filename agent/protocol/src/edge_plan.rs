//! Running a network split between the phone and an edge server: what the daemon asks for, and what it is told.

use layerlab_profiles::Segment;
use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::link::ShapedLink;

/// A network that the agent is to run together with an edge server, from its input to its result.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgePlan {
    /// Where the server listens, as the phone reaches it: `HOST:PORT`.
    pub server: String,
    /// The server's secret, in hexadecimal digits. The agent keeps it no longer than it runs.
    pub token: String,
    /// The model, among the agent's files.
    pub model_sha256: String,
    /// Its quantised twin, for processors of the phone that need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised_sha256: Option<String>,
    /// The same model as the server knows it: the SHA-256 of the user's own file.
    pub server_model_sha256: String,
    /// All layers in order: which run where.
    pub parts: Vec<EdgePart>,
    /// How many inferences are timed.
    pub inferences: u32,
    /// How many are run before them.
    pub warm_up: u32,
    /// What phone, link and server rest before each inference; absent, a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_ns: Option<Nanos>,
    /// What the input is drawn from.
    pub seed: u64,
    /// What the agent's shaper slows the link down to, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapedLink>,
    /// What crosses the link packed; all else crosses as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packings: Vec<EdgePacking>,
    /// The images that the network answers in turn, as how small tensors become depends on them; absent, the input that `seed`
    /// gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<EdgeImages>,
}

/// Never the secret itself.
impl std::fmt::Debug for EdgePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("EdgePlan");
        shown.field("server", &self.server);
        shown.field("parts", &self.parts);
        shown.finish_non_exhaustive()
    }
}

/// Layers that run on one processor of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgePart {
    /// The layers.
    pub segment: Segment,
    /// Whose processor it is.
    pub side: EdgeSide,
    /// The processor, as its side's profile calls it.
    pub processor: String,
}

/// What all tensors that cross the link at one cut are packed by, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgePacking {
    /// The layer before the cut; 0 is the network's input.
    pub after_layer: u32,
    /// Which way they cross.
    pub direction: LinkDirection,
    /// What packs and unpacks each.
    pub codec: TensorCodec,
}

/// Images of an evaluation set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeImages {
    /// The set, among the agent's files.
    pub set_sha256: String,
    /// Their places in it; at least one.
    pub images: Vec<u64>,
}

/// Where layers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeSide {
    /// On the phone.
    Phone,
    /// On the server.
    Server,
}

/// One inference, from its input in the phone's memory to its result there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeInference {
    /// All of it by the phone's clock. On a simulated device, the sum of the others.
    pub total_ns: Nanos,
    /// The phone's layers: simulated on a simulated device. And packing and unpacking there, which never is.
    pub phone_ns: Nanos,
    /// While requests came in at the server, from their first byte to their last.
    pub upload_ns: Nanos,
    /// What they waited there until work on them began.
    pub queue_ns: Nanos,
    /// The server's layers, with packing and unpacking there.
    pub server_ns: Nanos,
    /// All else of the exchanges: the answers, and what a round trip adds to both.
    pub download_ns: Nanos,
}

/// How the plan's result compares with that of the whole network on the phone alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeAgreement {
    /// The phone's processor that ran the whole network.
    pub processor: String,
    /// How many numbers the result has.
    pub elements: u64,
    /// The largest difference of two of them, in billionths of the largest of the phone's own; the largest number there is
    /// where one of them is no number.
    pub difference_ppb: u64,
}
