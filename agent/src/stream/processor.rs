//! The phone's own answers, one frame after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use image::DynamicImage;
use layerlab_profiles::Nanos;
use layerlab_profiles::accuracy::Preprocessing;

use super::happened::{Happened, StreamClock};
use crate::device::{Device, Invocation};
use crate::pictures::PictureInput;
use crate::runtime::{Session, Tensor};

/// Inferences before the stream: what a runtime does once is done by then.
const WARM_UP: u32 = 3;

/// A network on a processor of the phone.
pub(super) struct StreamProcessor<'a> {
    pub(super) session: Box<dyn Session>,
    pub(super) device: &'a mut dyn Device,
    pub(super) input: PictureInput,
    pub(super) preprocessing: &'a Preprocessing,
    pub(super) seed: u64,
}

/// A frame that the phone is to answer.
pub(super) type ToAnswer = (usize, Arc<DynamicImage>);

impl StreamProcessor<'_> {
    /// Answers `picture` a few times.
    ///
    /// # Errors
    /// When it cannot, in a sentence.
    pub(super) fn warm_up(&mut self, picture: &DynamicImage) -> Result<(), String> {
        for run in 0..WARM_UP {
            self.infer(Invocation::warm_up(self.seed, 0, run), picture)?;
        }
        Ok(())
    }

    /// Answers frames until there are none, or `stopped`. A simulated device takes the time that it simulates: `slower` counts on
    /// how many frames this machine took longer.
    pub(super) fn answer_all(
        &mut self,
        frames: &Receiver<ToAnswer>,
        (stopped, slower): (&AtomicBool, &AtomicU64),
        clock: StreamClock,
        happened: &Sender<Happened>,
    ) {
        let is_simulated = self.device.identity().device.simulated;
        let mut idle_since = Instant::now();
        for (frame, picture) in frames {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let began = Instant::now();
            if is_simulated {
                self.device.idle(began.duration_since(idle_since).into());
            }
            let name = Invocation::sample(self.seed, frame as u64);
            let (infer, scores) = match self.infer(name, &picture) {
                Ok(answer) => answer,
                Err(sentence) => return Happened::Failed(sentence).tell(happened),
            };
            if is_simulated {
                let left = Duration::from(infer).checked_sub(began.elapsed());
                match left {
                    Some(left) => thread::sleep(left),
                    None => {
                        slower.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            idle_since = Instant::now();
            Happened::Answered {
                frame,
                at: clock.now(),
                infer,
                scores,
            }
            .tell(happened);
        }
    }

    fn infer(
        &mut self,
        name: Invocation,
        picture: &DynamicImage,
    ) -> Result<(Nanos, Vec<f32>), String> {
        let tensor = self
            .input
            .tensor(self.input.resized(picture), self.preprocessing)?;
        self.device.announce(name);
        let run = self
            .session
            .run(&[tensor])
            .map_err(|error| error.to_string())?;
        Ok((
            run.duration,
            run.outputs.iter().flat_map(Tensor::to_floats).collect(),
        ))
    }
}
