//! What becomes of a frame.

/// What becomes of a frame. Models and resolutions are counted from 0, as in [`super::VideoModels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameChoice {
    /// The NPU answers it, in the full resolution.
    Local {
        /// The model on the phone.
        model: usize,
    },
    /// It is sent.
    Remote {
        /// The model on the server.
        model: usize,
        /// The resolution in which it is sent.
        resolution: usize,
    },
    /// Nothing answers it.
    Skipped,
}
