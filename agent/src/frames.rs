//! Orders to answer frames: images as a camera delivers them, and in forms in which they would be sent.
//!
//! Resizing, encoding and decoding are done here, on one thread of this machine's CPU, and timed by its clock, also where the
//! agent plays a simulated device; inferences are timed as ever.

use std::collections::HashSet;
use std::time::Instant;

use image::{DynamicImage, ImageError};
use layerlab_model::Network;
use layerlab_profiles::accuracy::{EvaluationSet, Preprocessing};
use layerlab_profiles::video::{FrameForm, top};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, FormAnswer, Part};

use crate::ModelWithTwin;
use crate::chain::refuse_unless_chain;
use crate::device::{Device, Invocation};
use crate::ended::{Ended, failed};
use crate::pictures::{PictureInput, decoded, dynamic, encoded, resized};
use crate::queue::{Queue, Task};
use crate::runtime::{MainMemory, Runtimes, Session, Tensor, loaded_event};

/// What the device rests before each inference.
const REST: Nanos = Nanos::from_millis(1);

/// Inferences before the first that counts: what a runtime does once is done by then.
const WARM_UP: u32 = 3;

/// What an order to answer frames asks for.
pub(crate) struct Frames<'a> {
    pub(crate) set: EvaluationSet,
    /// By their places in the set.
    pub(crate) images: &'a [u64],
    pub(crate) forms: &'a [FrameForm],
    /// Where the layers run; on the order's processor if there are none.
    pub(crate) parts: &'a [Part],
}

impl Frames<'_> {
    /// Answers every image that the journal does not have yet.
    pub(crate) fn run(
        &self,
        task: &Task,
        queue: &Queue,
        device: &mut dyn Device,
        runtimes: &mut Runtimes,
        model: &ModelWithTwin,
    ) -> Result<(), Ended> {
        let input = self.fitting_input(model)?;
        let is_answered = |event: &Event| match event {
            Event::FramesAnswered { image, .. } => Some(*image),
            _ => None,
        };
        let done: HashSet<u64> = task.history.iter().filter_map(is_answered).collect();
        let left = self.images.iter().filter(|image| !done.contains(image));
        let left: Vec<u64> = left.copied().collect();
        let Some(&first) = left.first() else {
            return Ok(());
        };
        let mut sessions = Vec::new();
        for part in self.placed(task, model.model().layer_count())? {
            let (processor, segment) = (&part.processor, part.segment);
            runtimes.supports(processor, model, segment)?;
            let session = runtimes.load(processor, model, segment)?;
            queue.record(task, loaded_event(processor, segment, session.as_ref()))?;
            sessions.push((segment, session));
        }
        let mut answering = Answering {
            network: model.model(),
            sessions,
            device,
            seed: task.order.seed ^ (u64::from(task.order.number) << 32),
            preprocessing: &self.set.preprocessing,
            input,
        };
        answering.warm_up(&self.picture(first)?)?;
        for image in left {
            let event = answering.answer(image, self.picture(image)?, self.forms)?;
            queue.record(task, event)?;
        }
        Ok(())
    }

    /// What runs where.
    fn placed(&self, task: &Task, layers: u32) -> Result<Vec<Part>, Ended> {
        if self.parts.is_empty() {
            return Ok(vec![Part {
                segment: Segment::whole(layers),
                processor: task.order.processor.clone(),
            }]);
        }
        let segments: Vec<Segment> = self.parts.iter().map(|part| part.segment).collect();
        refuse_unless_chain(&segments, layers)?;
        Ok(self.parts.to_vec())
    }

    fn picture(&self, image: u64) -> Result<DynamicImage, Ended> {
        let picture = self.set.picture(image as usize);
        picture
            .map_err(|reason| order(&reason.to_string()))
            .and_then(|picture| dynamic(picture).map_err(|reason| order(&reason)))
    }

    /// The network's input, if the order makes sense for the network and the set.
    fn fitting_input(&self, model: &ModelWithTwin) -> Result<PictureInput, Ended> {
        for form in self.forms {
            let fit = form.refuse_unfit();
            fit.map_err(|bad| order(&bad.to_string()))?;
        }
        let all = self.set.answers() as u64;
        if let Some(beyond) = self.images.iter().find(|&&image| image >= all) {
            return Err(order(&format!(
                "the order asks for image {beyond} of an evaluation set of {all}"
            )));
        }
        if self.set.metric.images_per_answer() != 1 {
            return Err(order("frames are single images, and the set has pairs"));
        }
        let channels = self.set.shape.first().copied().unwrap_or(0) as u64;
        let input = PictureInput::of(model.model()).map_err(|reason| order(&reason))?;
        match input.channels == channels {
            true => Ok(input),
            false => Err(order(&format!(
                "the model takes images of {} channels, and the set's have {channels}",
                input.channels
            ))),
        }
    }
}

/// A network that answers images.
struct Answering<'a> {
    network: &'a Network,
    /// Of the parts, one after the other.
    sessions: Vec<(Segment, Box<dyn Session>)>,
    device: &'a mut dyn Device,
    seed: u64,
    preprocessing: &'a Preprocessing,
    input: PictureInput,
}

impl Answering<'_> {
    fn warm_up(&mut self, picture: &DynamicImage) -> Result<(), Ended> {
        for run in 0..WARM_UP {
            let input = self.input.resized(picture);
            self.infer((Invocation::warm_up(self.seed, 0, run), 0), input)?;
        }
        Ok(())
    }

    fn answer(
        &mut self,
        image: u64,
        picture: DynamicImage,
        forms: &[FrameForm],
    ) -> Result<Event, Ended> {
        // Each part of each inference of an image has a name of its own.
        let name = Invocation::sample(self.seed, image);
        let parts = self.sessions.len();
        let input = self.input.resized(&picture);
        let (infer_ns, scores) = self.infer((name, 0), input)?;
        let mut answers = Vec::with_capacity(forms.len());
        for (place, form) in forms.iter().enumerate() {
            let first_step = (place + 1) * parts;
            answers.push(self.answer_form(&picture, form, (name, first_step))?);
        }
        Ok(Event::FramesAnswered {
            image,
            infer_ns,
            score_bits: scores.iter().map(|score| score.to_bits()).collect(),
            forms: answers,
        })
    }

    fn answer_form(
        &mut self,
        picture: &DynamicImage,
        form: &FrameForm,
        name: (Invocation, usize),
    ) -> Result<FormAnswer, Ended> {
        let (resize_ns, small) = timed(|| resized(picture, form.width, form.height));
        let (encode_ns, file) = timed(|| encoded(&small, form));
        let file = file.map_err(uncoded)?;
        let (decode_ns, decoded) = timed(|| decoded(&file, form.format));
        let decoded = decoded.map_err(uncoded)?;
        let (upscale_ns, input) = timed(|| self.input.resized(&decoded));
        let (infer_ns, scores) = self.infer(name, input)?;
        Ok(FormAnswer {
            bytes: Bytes::from_bytes(file.len() as u64),
            resize_ns,
            encode_ns,
            decode_ns,
            upscale_ns,
            infer_ns,
            class: top(&scores),
        })
    }

    /// How long an inference on a picture of the network's size takes, and what it answers.
    fn infer(
        &mut self,
        (name, first_step): (Invocation, usize),
        picture: DynamicImage,
    ) -> Result<(Nanos, Vec<f32>), Ended> {
        let tensor = self.input.tensor(picture, self.preprocessing);
        let tensor = tensor.map_err(|reason| order(&reason))?;
        let mut memory = MainMemory::of(self.network.inputs(), vec![tensor]);
        let mut took = Nanos::ZERO;
        self.device.idle(REST);
        for (step, (segment, session)) in self.sessions.iter_mut().enumerate() {
            let inputs = memory.taken(&self.network.takes(*segment));
            self.device.announce(name.step(first_step + step));
            let part = session.run(&inputs)?;
            took = took + part.duration;
            memory = memory.after(self.network, *segment, part.outputs);
        }
        let scores = memory.tensors().iter().flat_map(Tensor::to_floats);
        Ok((took, scores.collect()))
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Nanos, T) {
    let began = Instant::now();
    let done = work();
    (began.elapsed().into(), done)
}

fn uncoded(error: ImageError) -> Ended {
    failed(
        FailureKind::Device,
        format!("a frame cannot be encoded and decoded: {error}"),
    )
}

fn order(sentence: &str) -> Ended {
    failed(FailureKind::Order, sentence.to_owned())
}
