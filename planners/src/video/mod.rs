//! Video analytics on a phone beside a server: which frames the phone's NPU answers and which are sent, at what resolution.
//!
//! The algorithms are those of FastVA (Tan and Cao, "FastVA: Deep Learning Video Analytics Through Edge Processing and NPU in
//! Mobile", INFOCOM 2020) and CBO (Tan and Cao, "Deep Learning on Mobile Devices Through Neural Processing Units and Edge
//! Computing", INFOCOM 2022), with their gaps closed: [`calibration`] makes confidences probabilities, [`cbo`] sends the frames
//! of which the NPU is least sure, [`fastva`] divides frames by time alone, [`replay`] simulates both and their baselines: in worlds
//! made of what was [`measured`], or of the [`papers`]' tables. [`live`] decides by the same policies about frames as they come.
//!
//! A frame's time limit T counts from its arrival. Frames are sent in different resolutions, counted from 0; one too large to
//! be sent in time is no error, and a frame that nothing can answer in time is infeasible, which is a value.

mod agreement;
pub mod calibration;
pub mod cbo;
mod error;
pub mod fastva;
pub mod live;
pub mod measured;
pub mod papers;
pub mod replay;
mod stream;
mod uplink;

pub use agreement::{ALARM, AgreementWatch, TOLERATED_AGREEMENT};
pub use error::VideoError;
pub use stream::{MOST_FRAMES_WITHIN, VideoStream};
pub use uplink::Uplink;
