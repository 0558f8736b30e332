//! What happens during a stream, and when.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use image::DynamicImage;
use layerlab_profiles::Nanos;
use layerlab_profiles::link::ServerTimes;

/// Something that a decision may follow from.
pub(super) enum Happened {
    /// A frame is there in all forms.
    Ready {
        frame: usize,
        at: Nanos,
        picture: Arc<DynamicImage>,
        /// One for each form.
        files: Vec<Vec<u8>>,
    },
    /// The phone has answered a frame.
    Answered {
        frame: usize,
        at: Nanos,
        infer: Nanos,
        scores: Vec<f32>,
    },
    /// The server has.
    Served {
        frame: usize,
        at: Nanos,
        class: Option<u32>,
        server: ServerTimes,
    },
    /// The server is gone, and why.
    Lost(String),
    /// The phone cannot go on, and why.
    Failed(String),
}

impl Happened {
    /// Says so. Where nobody listens any more the stream is over.
    pub(super) fn tell(self, to: &Sender<Happened>) {
        let _ = to.send(self);
    }
}

/// The time since the first frame was captured.
#[derive(Clone, Copy)]
pub(super) struct StreamClock(Instant);

impl StreamClock {
    /// The first frame is captured now.
    pub(super) fn start() -> StreamClock {
        StreamClock(Instant::now())
    }

    pub(super) fn now(self) -> Nanos {
        self.0.elapsed().into()
    }
}
