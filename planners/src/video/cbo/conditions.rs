//! What is known of the server, the way to it and the time limit.

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::{VideoError, refuse_unless_fraction};
use super::super::uplink::Uplink;

/// What decides how long an offloaded frame takes and what it brings.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeConditions {
    uplink: Uplink,
    server_time: Nanos,
    within: Nanos,
    preprocessing: Nanos,
    accuracies: Vec<f64>,
}

impl EdgeConditions {
    /// A server that takes `server_time` (T^o) for a frame and is right about the share `accuracies[r]` (A_r^o) of frames in
    /// resolution r, reached by `uplink`; frames are due `within` that time (T) of their arrival.
    ///
    /// No time passes between a frame's arrival and when it can be sent, as in the paper; see
    /// [`EdgeConditions::with_preprocessing`].
    pub fn new(
        uplink: Uplink,
        server_time: Nanos,
        within: Nanos,
        accuracies: Vec<f64>,
    ) -> Result<EdgeConditions, VideoError> {
        if within == Nanos::ZERO {
            return Err(VideoError::NoTimeLimit);
        }
        for (resolution, &accuracy) in accuracies.iter().enumerate() {
            let what = || format!("the server's accuracy in resolution {resolution}");
            refuse_unless_fraction(what, accuracy)?;
        }
        Ok(EdgeConditions {
            uplink,
            server_time,
            within,
            preprocessing: Nanos::ZERO,
            accuracies,
        })
    }

    /// The same where a frame can be sent `preprocessing` after its arrival, when the NPU has answered it and its confidence
    /// is calibrated: 28 ms in the paper's Table III, which its formulas leave out.
    pub fn with_preprocessing(self, preprocessing: Nanos) -> EdgeConditions {
        EdgeConditions {
            preprocessing,
            ..self
        }
    }

    /// The way to the server.
    pub fn uplink(&self) -> Uplink {
        self.uplink
    }

    /// T, from a frame's arrival.
    pub fn within(&self) -> Nanos {
        self.within
    }

    /// T^o, the server's time for a frame.
    pub fn server_time(&self) -> Nanos {
        self.server_time
    }

    /// How long after its arrival a frame can be sent.
    pub fn preprocessing(&self) -> Nanos {
        self.preprocessing
    }

    /// A_r^o, the share of right answers in each resolution.
    pub fn accuracies(&self) -> &[f64] {
        &self.accuracies
    }

    /// When the last byte of `size` has left if sending starts at `start`, provided that the answer to a frame of `arrival`
    /// is then in time (cbo Algorithm 1, line 7).
    pub(in super::super) fn sent_in_time(
        &self,
        start: Nanos,
        size: Bytes,
        arrival: Nanos,
    ) -> Option<Nanos> {
        let add = |one: Nanos, other: Nanos| {
            one.as_nanos()
                .checked_add(other.as_nanos())
                .map(Nanos::from_nanos)
        };
        let sent = add(start, self.uplink.sending(size)?)?;
        let answered = add(add(sent, self.server_time)?, self.uplink.round_trip())?;
        (answered <= arrival + self.within).then_some(sent)
    }
}
