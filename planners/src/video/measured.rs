//! From published measurements of a phone and a server (`layerlab_profiles::video`) to answers to calibrate by, and to a world
//! to replay.

use std::collections::BTreeMap;

use layerlab_profiles::Nanos;
use layerlab_profiles::video::{
    FrameAnswer, FrameForm, FrameFormat, FrameRow, Half, VideoDocument,
};

use super::calibration::{Answers, CalibrationError, Calibrator};
use super::error::VideoError;
use super::fastva::{LocalModel, RemoteModel, ServerMode, VideoModels};
use super::replay::{ReplayBandwidth, ReplayFrame, ReplayWorld, RightAnswers};
use super::stream::VideoStream;

/// The answers that calibration learns from, and those that judge it.
///
/// # Errors
/// When a half has no answers.
pub fn halves(video: &VideoDocument) -> Result<(Answers, Answers), CalibrationError> {
    let half = |half: Half| {
        let own = video.answers.iter().filter(|answer| answer.half == half);
        let (scores, shown) = own
            .map(|answer| (probabilities(video, answer), labels(answer)))
            .unzip();
        Answers::multi_label(scores, shown)
    };
    Ok((half(Half::Calibration)?, half(Half::Test)?))
}

fn probabilities(video: &VideoDocument, answer: &FrameAnswer) -> Vec<f64> {
    video.header.confidence.probabilities(&answer.scores)
}

fn labels(answer: &FrameAnswer) -> Vec<usize> {
    answer.labels.iter().map(|&label| label as usize).collect()
}

/// What a phone and a server have measured, and how frames are encoded.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredVideo<'a> {
    /// The model on the phone, whose encoder makes the frames.
    pub phone: &'a VideoDocument,
    /// The model on the server.
    pub server: &'a VideoDocument,
    /// What frames are encoded as.
    pub format: FrameFormat,
    /// The quality, of JPEG.
    pub quality: Option<u8>,
}

/// How the world is beside what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSettings {
    /// When frames arrive and are due.
    pub stream: VideoStream,
    /// How fast frames leave.
    pub bandwidth: ReplayBandwidth,
    /// The link's round trip.
    pub round_trip: Nanos,
    /// How many frames to replay; the measured ones are shown again and again.
    pub frames: usize,
    /// What is drawn is drawn from this; which answers are right was measured.
    pub seed: u64,
}

/// Measurements that make no world together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeasuredError {
    /// They are of other images.
    #[error(
        "the phone's measurement and the server's are of different images or halves; measure both with sets of the same images \
         and classes, the same --seed and the same --answers"
    )]
    OtherImages,
    /// No frame of the test half was answered on both sides in a form of this encoding.
    #[error(
        "no frame was measured as {0} on both sides; measure with more --frames, or choose another encoding"
    )]
    NoFrames(String),
    /// They make no sense.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// Confidences cannot be calibrated.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
}

impl MeasuredVideo<'_> {
    /// The frames that were measured in every form on both sides, in the phone's halves' order, with what each side made of
    /// them.
    ///
    /// What the phone says of a frame, and how sure it is, comes from `calibrator`; which answers are right was measured. A
    /// model's accuracies are means over these frames on the server, and over the calibration half on the phone. Before a frame
    /// is sent, the phone resizes and encodes it: the median of the slowest form is added to the round trip, as both only
    /// delay. The server's time is that of its slowest form: decoding, resizing and the inference.
    ///
    /// # Errors
    /// When the two are of different images, or have no frames in common.
    pub fn world(
        &self,
        calibrator: &Calibrator,
        settings: &MeasuredSettings,
    ) -> Result<ReplayWorld, MeasuredError> {
        let (phone, server) = (self.phone, self.server);
        let forms = self.forms();
        let measured = self.frames(&forms)?;
        let share = |hits: usize| hits as f64 / measured.len() as f64;
        let accuracies: Vec<f64> = (0..forms.len())
            .map(|place| {
                let hits = measured.iter().filter(|(_, _, served)| served[place].hit);
                share(hits.count())
            })
            .collect();
        let slowest = |video: &VideoDocument, time: fn(&FrameRow) -> Nanos| {
            let medians = forms.iter().map(|form| of_form(video, form, time));
            medians.max().unwrap_or(Nanos::ZERO)
        };
        let models = VideoModels::new(
            vec![LocalModel {
                name: phone.header.model.name.clone(),
                time: median(phone.answers.iter().map(|answer| answer.infer).collect()),
                accuracy: learnt_accuracy(phone, calibrator)?,
            }],
            vec![RemoteModel {
                name: server.header.model.name.clone(),
                time: slowest(server, FrameRow::serve),
                accuracies,
            }],
        )?;
        let frame = |(answer, sent, served): &MeasuredFrame<'_>| {
            let scores = probabilities(phone, answer);
            let (class, confidence) = calibrator.answer(&scores)?;
            Ok(ReplayFrame {
                sizes: sent.iter().map(|frame| frame.bytes).collect(),
                local: vec![confidence],
                uncalibrated: answer.confidence,
                right: Some(RightAnswers {
                    local: vec![answer.labels.contains(&(class as u32))],
                    remote: vec![served.iter().map(|frame| frame.hit).collect()],
                }),
            })
        };
        let frames: Result<Vec<ReplayFrame>, CalibrationError> =
            measured.iter().map(frame).collect();
        let frames = frames?;
        Ok(ReplayWorld {
            stream: settings.stream,
            frames: (frames.iter().cycle().take(settings.frames).cloned()).collect(),
            bandwidth: settings.bandwidth.clone(),
            round_trip: settings.round_trip + slowest(phone, FrameRow::prepare),
            models,
            server: ServerMode::Pipelined,
            calibration: Nanos::ZERO,
            seed: settings.seed,
        })
    }

    /// The images of those frames, by their places in the set, in the same order.
    ///
    /// # Errors
    /// As [`MeasuredVideo::world`].
    pub fn images(&self) -> Result<Vec<u64>, MeasuredError> {
        let frames = self.frames(&self.forms())?;
        Ok(frames.iter().map(|(answer, _, _)| answer.image).collect())
    }

    /// How long the phone takes to resize and encode a frame in all forms, one after the other: the medians' sum.
    pub fn prepare_all(&self) -> Nanos {
        let forms = self.forms();
        let medians = forms
            .iter()
            .map(|form| of_form(self.phone, form, FrameRow::prepare));
        medians.sum()
    }

    /// What was measured of the frames that were answered in all of `forms` on both sides.
    fn frames(&self, forms: &[FrameForm]) -> Result<Vec<MeasuredFrame<'_>>, MeasuredError> {
        self.refuse_other_images()?;
        let mut sent = self.by_image(self.phone, forms);
        let mut served = self.by_image(self.server, forms);
        let answers = self.phone.answers.iter();
        let test = answers.filter(|one| one.half == Half::Test);
        let measured: Vec<_> = test
            .filter_map(|answer| {
                let image = answer.image;
                Some((answer, sent.remove(&image)?, served.remove(&image)?))
            })
            .collect();
        match measured.is_empty() || forms.is_empty() {
            true => Err(MeasuredError::NoFrames(self.encoding())),
            false => Ok(measured),
        }
    }

    /// The forms of this encoding that both sides have, the smallest first.
    pub fn forms(&self) -> Vec<FrameForm> {
        let of_encoding =
            |form: &FrameForm| (form.format, form.quality) == (self.format, self.quality);
        let there: Vec<FrameForm> = self.server.forms().collect();
        let both = self.phone.forms().filter(|form| there.contains(form));
        both.filter(of_encoding).collect()
    }

    fn encoding(&self) -> String {
        let form = FrameForm {
            width: 1,
            height: 1,
            format: self.format,
            quality: self.quality,
        };
        form.encoding()
    }

    /// The frames of each image that was measured in all of `forms`, in their order.
    fn by_image<'v>(
        &self,
        video: &'v VideoDocument,
        forms: &[FrameForm],
    ) -> BTreeMap<u64, Vec<&'v FrameRow>> {
        let mut images: BTreeMap<u64, BTreeMap<FrameForm, &FrameRow>> = BTreeMap::new();
        for frame in video
            .frames
            .iter()
            .filter(|frame| forms.contains(&frame.form))
        {
            images
                .entry(frame.image)
                .or_default()
                .insert(frame.form, frame);
        }
        let whole = images.into_iter().filter_map(|(image, of_form)| {
            let frames: Option<Vec<&FrameRow>> = forms
                .iter()
                .map(|form| of_form.get(form).copied())
                .collect();
            Some((image, frames?))
        });
        whole.collect()
    }

    fn refuse_other_images(&self) -> Result<(), MeasuredError> {
        let (phone, server) = (self.phone, self.server);
        let shown = |video: &VideoDocument| -> BTreeMap<u64, (Half, Vec<u32>)> {
            let answers = video.answers.iter();
            answers
                .map(|answer| (answer.image, (answer.half, answer.labels.clone())))
                .collect()
        };
        let same =
            phone.header.set.classes == server.header.set.classes && shown(phone) == shown(server);
        match same {
            true => Ok(()),
            false => Err(MeasuredError::OtherImages),
        }
    }
}

/// The phone's answer to a frame, and the frame in each form on the phone and on the server.
type MeasuredFrame<'a> = (&'a FrameAnswer, Vec<&'a FrameRow>, Vec<&'a FrameRow>);

/// The median time of a form.
fn of_form(video: &VideoDocument, form: &FrameForm, time: fn(&FrameRow) -> Nanos) -> Nanos {
    let frames = video.frames.iter().filter(|frame| frame.form == *form);
    median(frames.map(time).collect())
}

/// The share of the calibration half that the phone's model is right about.
fn learnt_accuracy(
    video: &VideoDocument,
    calibrator: &Calibrator,
) -> Result<f64, CalibrationError> {
    let (train, _) = halves(video)?;
    let mut right = 0;
    for (scores, shown) in train.iter() {
        right += usize::from(shown.contains(&calibrator.answer(scores)?.0));
    }
    Ok(right as f64 / train.count() as f64)
}

fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or(Nanos::ZERO)
}
