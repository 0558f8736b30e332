//! fastva's own video, as its tables say.

use layerlab_planners::video::VideoStream;
use layerlab_planners::video::fastva::VideoModels;
use layerlab_planners::video::papers;
use layerlab_profiles::Nanos;

/// fastva Table II.
pub(crate) fn table_2() -> VideoModels {
    papers::fastva_models().expect("sensible")
}

/// Frames per second, each to be answered within the papers' 200 ms.
pub(crate) fn stream(fps: u64) -> VideoStream {
    let interval = Nanos::from_nanos(1_000_000_000 / fps);
    VideoStream::new(interval, Nanos::from_millis(200)).expect("sensible")
}
