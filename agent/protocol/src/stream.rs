//! Streaming frames: what the daemon asks the phone's agent for, and what it is told.

use layerlab_profiles::units::{Bytes, Nanos};
use layerlab_profiles::video::FrameForm;
use serde::{Deserialize, Serialize};

use crate::link::ShapedLink;

/// A video that the agent is to answer as if a camera delivered it, beside an edge server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameStream {
    /// Where the server listens, as the phone reaches it: `HOST:PORT`.
    pub server: String,
    /// The server's secret, in hexadecimal digits. The agent keeps it no longer than it streams.
    pub token: String,
    /// The phone's model, among the agent's files.
    pub model_sha256: String,
    /// Its quantised twin, for a processor that needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised_sha256: Option<String>,
    /// The phone's processor that answers frames.
    pub processor: String,
    /// The server's model: the SHA-256 of the user's own file.
    pub server_model_sha256: String,
    /// The server's processor that answers frames.
    pub server_processor: String,
    /// The evaluation set, among the agent's files.
    pub set_sha256: String,
    /// The frames, by their places in the set; again and again until there are as many as are to come.
    pub images: Vec<u64>,
    /// The forms in which a frame may be sent.
    pub forms: Vec<FrameForm>,
    /// What decides, as the planners write it: a JSON document that this protocol does not read.
    pub settings: String,
    /// What a simulated device draws from.
    pub seed: u64,
    /// What the agent's shaper slows the link down to, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapedLink>,
}

/// Never the secret itself.
impl std::fmt::Debug for FrameStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("FrameStream");
        shown.field("server", &self.server);
        shown.field("images", &self.images);
        shown.finish_non_exhaustive()
    }
}

/// What came of a frame. Times are since the first frame was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamedFrame {
    /// When it was there in all forms; absent where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_ns: Option<Nanos>,
    /// How long the decisions took that were made when something happened to it, together.
    pub decided_ns: Nanos,
    /// What the phone answered; absent where it did not, in time for the end of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<PhoneAnswer>,
    /// How it was sent; absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentFrame>,
}

/// What the phone answered to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhoneAnswer {
    /// When.
    pub answered_ns: Nanos,
    /// How long the inference took.
    pub infer_ns: Nanos,
    /// The class, after calibration.
    pub class: u32,
    /// How sure that is, after calibration, in billionths.
    pub confidence_ppb: u32,
}

/// A frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFrame {
    /// In which of the forms, counted from 0.
    pub form: u32,
    /// What it has on the link: the picture, and what the request says of it.
    pub bytes: Bytes,
    /// When it was given to the link.
    pub sent_ns: Nanos,
    /// The answer; absent where none has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ServerAnswer>,
}

/// What the server answered to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerAnswer {
    /// When the answer was there.
    pub answered_ns: Nanos,
    /// The class of the largest score, the first of several; absent where no score is finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
    /// The server's own times: receive, queue, compute and send.
    pub server_ns: [Nanos; 4],
}
