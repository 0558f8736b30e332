//! The camera: delivers frames at their times, in all the forms in which they may be sent.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use image::DynamicImage;
use layerlab_profiles::Nanos;
use layerlab_profiles::accuracy::EvaluationSet;
use layerlab_profiles::video::FrameForm;

use super::happened::{Happened, StreamClock};
use crate::pictures::{dynamic, encoded, resized};

/// What a camera delivers.
pub(super) struct Camera<'a> {
    pub(super) set: &'a EvaluationSet,
    /// By their places in the set; shown again and again.
    pub(super) images: &'a [u64],
    pub(super) forms: &'a [FrameForm],
}

impl Camera<'_> {
    /// The picture of a frame.
    ///
    /// # Errors
    /// When the set's images are no pictures, in a sentence.
    pub(super) fn picture(&self, frame: usize) -> Result<DynamicImage, String> {
        let image = self.images[frame % self.images.len()];
        let picture = self.set.picture(image as usize);
        picture.map_err(|error| error.to_string()).and_then(dynamic)
    }

    /// A picture's files, one for each form.
    ///
    /// # Errors
    /// When it cannot be encoded, in a sentence.
    pub(super) fn files(&self, picture: &DynamicImage) -> Result<Vec<Vec<u8>>, String> {
        let file = |form: &FrameForm| encoded(&resized(picture, form.width, form.height), form);
        let files: Result<Vec<_>, _> = self.forms.iter().map(file).collect();
        files.map_err(|error| format!("a frame cannot be encoded: {error}"))
    }

    /// Delivers so many frames, one each `interval`, until `stop` ends.
    pub(super) fn film(
        &self,
        (frames, interval): (usize, Nanos),
        clock: StreamClock,
        stop: &Receiver<()>,
        happened: &Sender<Happened>,
    ) {
        for frame in 0..frames {
            let picture = match self.picture(frame) {
                Ok(picture) => picture,
                Err(sentence) => return Happened::Failed(sentence).tell(happened),
            };
            let captured = Nanos::from_nanos(interval.as_nanos().saturating_mul(frame as u64));
            let wait = captured - clock.now();
            if stop.recv_timeout(wait.into()) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            match self.files(&picture) {
                Ok(files) => Happened::Ready {
                    frame,
                    at: clock.now(),
                    picture: Arc::new(picture),
                    files,
                }
                .tell(happened),
                Err(sentence) => return Happened::Failed(sentence).tell(happened),
            }
        }
    }
}
