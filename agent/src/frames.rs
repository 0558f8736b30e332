//! Orders to answer frames: images as a camera delivers them, and in forms in which they would be sent.
//!
//! Resizing, encoding and decoding are done here, on one thread of this machine's CPU, and timed by its clock, also where the
//! agent plays a simulated device; inferences are timed as ever.

use std::collections::HashSet;
use std::io::Cursor;
use std::time::Instant;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::{self, FilterType};
use image::{DynamicImage, GrayImage, ImageError, ImageFormat, RgbImage};
use layerlab_model::TensorSpec;
use layerlab_profiles::accuracy::{EvaluationSet, Picture, Preprocessing};
use layerlab_profiles::video::{FrameForm, FrameFormat, top};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, FormAnswer};

use crate::ModelWithTwin;
use crate::device::{Device, Invocation};
use crate::ended::{Ended, failed};
use crate::queue::{Queue, Task};
use crate::runtime::{Runtimes, Session, Tensor, loaded_event};

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
        let processor = &task.order.processor;
        // A segment has at least one layer: the model has been cut into some.
        let whole = Segment::new(1, model.model().layer_count())
            .map_err(|reason| order(&reason.to_string()))?;
        runtimes.supports(processor, model, whole)?;
        let session = runtimes.load(processor, model, whole)?;
        queue.record(task, loaded_event(processor, whole, session.as_ref()))?;
        let mut answering = Answering {
            session,
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

    fn picture(&self, image: u64) -> Result<DynamicImage, Ended> {
        let picture = self.set.picture(image as usize);
        picture
            .map_err(|reason| order(&reason.to_string()))
            .and_then(dynamic)
    }

    /// The network's input, if the order makes sense for the network and the set.
    fn fitting_input(&self, model: &ModelWithTwin) -> Result<FrameInput, Ended> {
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
        match model.model().frontier(0) {
            [spec] => match spec.shape[..] {
                [1, found, height, width] if found == channels => Ok(FrameInput {
                    spec: spec.clone(),
                    width: width as u32,
                    height: height as u32,
                }),
                _ => Err(order(&format!(
                    "the model takes {:?}, which is no image of {channels} channels",
                    spec.shape
                ))),
            },
            inputs => Err(order(&format!(
                "the model has {} inputs, and images go into one",
                inputs.len()
            ))),
        }
    }
}

/// What the network takes.
struct FrameInput {
    spec: TensorSpec,
    width: u32,
    height: u32,
}

/// A network that answers images.
struct Answering<'a> {
    session: Box<dyn Session>,
    device: &'a mut dyn Device,
    seed: u64,
    preprocessing: &'a Preprocessing,
    input: FrameInput,
}

impl Answering<'_> {
    fn warm_up(&mut self, picture: &DynamicImage) -> Result<(), Ended> {
        for run in 0..WARM_UP {
            let input = self.resized_to_input(picture);
            self.infer(Invocation::warm_up(self.seed, 0, run), input)?;
        }
        Ok(())
    }

    fn answer(
        &mut self,
        image: u64,
        picture: DynamicImage,
        forms: &[FrameForm],
    ) -> Result<Event, Ended> {
        // Each inference of an image has a name of its own.
        let name = |step| Invocation::sample(self.seed, image).step(step);
        let names: Vec<Invocation> = (0..=forms.len()).map(name).collect();
        let input = self.resized_to_input(&picture);
        let (infer_ns, scores) = self.infer(names[0], input)?;
        let mut answers = Vec::with_capacity(forms.len());
        for (form, &name) in forms.iter().zip(&names[1..]) {
            answers.push(self.answer_form(&picture, form, name)?);
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
        name: Invocation,
    ) -> Result<FormAnswer, Ended> {
        let (resize_ns, small) = timed(|| resized(picture, form.width, form.height));
        let (encode_ns, file) = timed(|| encoded(&small, form));
        let file = file.map_err(uncoded)?;
        let (decode_ns, decoded) = timed(|| decoded(&file, form.format));
        let decoded = decoded.map_err(uncoded)?;
        let (upscale_ns, input) = timed(|| self.resized_to_input(&decoded));
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

    fn resized_to_input(&self, picture: &DynamicImage) -> DynamicImage {
        resized(picture, self.input.width, self.input.height)
    }

    /// How long an inference on a picture of the network's size takes, and what it answers.
    fn infer(
        &mut self,
        name: Invocation,
        picture: DynamicImage,
    ) -> Result<(Nanos, Vec<f32>), Ended> {
        let values = self.preprocessing.input(&Picture {
            width: picture.width(),
            height: picture.height(),
            channels: u32::from(picture.color().channel_count()),
            bytes: picture.into_bytes(),
        });
        let values = values.ok_or_else(|| order("the set's channels are those of no picture"))?;
        let spec = &self.input.spec;
        let shape = spec.shape.iter().map(|&length| length as usize).collect();
        let tensor = Tensor::from_floats(spec.element, shape, &values);
        let tensor = tensor.map_err(|reason| order(&reason.to_string()))?;
        self.device.idle(REST);
        self.device.announce(name);
        let inference = self.session.run(&[tensor])?;
        let outputs = inference.outputs.iter().flat_map(Tensor::to_floats);
        Ok((inference.duration, outputs.collect()))
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Nanos, T) {
    let began = Instant::now();
    let done = work();
    (began.elapsed().into(), done)
}

/// Two pictures of one size are the same, pixel by pixel.
fn resized(picture: &DynamicImage, width: u32, height: u32) -> DynamicImage {
    if (picture.width(), picture.height()) == (width, height) {
        return picture.clone();
    }
    // As evaluation sets are made: bilinear, and over all pixels that one is made of where an image gets smaller.
    let filter = FilterType::Triangle;
    match picture {
        DynamicImage::ImageLuma8(grey) => imageops::resize(grey, width, height, filter).into(),
        other => imageops::resize(&other.to_rgb8(), width, height, filter).into(),
    }
}

fn dynamic(picture: Picture) -> Result<DynamicImage, Ended> {
    let Picture {
        width,
        height,
        channels,
        bytes,
    } = picture;
    let made = match channels {
        1 => GrayImage::from_raw(width, height, bytes).map(DynamicImage::from),
        _ => RgbImage::from_raw(width, height, bytes).map(DynamicImage::from),
    };
    made.ok_or_else(|| order("a picture of the set has too few bytes"))
}

fn encoded(picture: &DynamicImage, form: &FrameForm) -> Result<Vec<u8>, ImageError> {
    let mut file = Vec::new();
    match (form.format, form.quality) {
        (FrameFormat::Jpeg, Some(quality)) => {
            picture.write_with_encoder(JpegEncoder::new_with_quality(&mut file, quality))?;
        }
        _ => picture.write_with_encoder(PngEncoder::new(&mut file))?,
    }
    Ok(file)
}

fn decoded(file: &[u8], format: FrameFormat) -> Result<DynamicImage, ImageError> {
    let format = match format {
        FrameFormat::Png => ImageFormat::Png,
        FrameFormat::Jpeg => ImageFormat::Jpeg,
    };
    image::load(Cursor::new(file), format)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn form(side: u32, format: FrameFormat, quality: Option<u8>) -> FrameForm {
        FrameForm {
            width: side,
            height: side,
            format,
            quality,
        }
    }

    /// A picture with an edge and a gradient.
    fn picture() -> DynamicImage {
        RgbImage::from_fn(40, 40, |x, y| {
            image::Rgb([(x * 6) as u8, (y * 6) as u8, if x > 20 { 200 } else { 30 }])
        })
        .into()
    }

    #[test]
    fn png_keeps_every_pixel_and_jpeg_loses_more_at_less_quality() {
        let picture = picture();
        let through = |form: FrameForm| {
            let file = encoded(&picture, &form).expect("encodes");
            let back = decoded(&file, form.format).expect("decodes");
            let differences = back.as_bytes().iter().zip(picture.as_bytes());
            let error: u64 = differences.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            (file.len(), error)
        };
        let (_, png) = through(form(40, FrameFormat::Png, None));
        assert_eq!(png, 0);
        let (small, coarse) = through(form(40, FrameFormat::Jpeg, Some(20)));
        let (large, fine) = through(form(40, FrameFormat::Jpeg, Some(95)));
        assert!(
            small < large && coarse > fine && fine > 0,
            "{small} {large} {coarse} {fine}"
        );
    }

    #[test]
    fn a_picture_of_the_size_stays_as_it_is_and_grey_stays_grey() {
        let picture = picture();
        assert_eq!(resized(&picture, 40, 40), picture);
        assert_eq!(resized(&picture, 10, 20).width(), 10);
        let grey = DynamicImage::from(picture.to_luma8());
        let small = resized(&grey, 9, 9);
        assert_eq!(small.color().channel_count(), 1);
        let file = encoded(&small, &form(9, FrameFormat::Jpeg, Some(90))).expect("encodes");
        let back = decoded(&file, FrameFormat::Jpeg).expect("decodes");
        assert_eq!(back.color().channel_count(), 1);
    }
}
