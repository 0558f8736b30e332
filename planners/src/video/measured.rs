//! From published measurements of a phone and a server (`layerlab_profiles::video`) to answers to calibrate by, and to a world
//! to replay.

use std::collections::BTreeMap;

use layerlab_profiles::Nanos;
use layerlab_profiles::video::{
    FrameAnswer, FrameForm, FrameFormat, FrameRow, Half, VideoDocument,
};

use super::calibration::{Answers, CalibrationError, CalibrationMethod, Calibrator, ScoreMap};
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
    /// What else on the phone can answer the same frames: other models, processors or placements, with what makes their
    /// confidences probabilities.
    pub others: &'a [OtherAnswers<'a>],
}

/// Another way of answering on the phone, and its calibration.
pub type OtherAnswers<'a> = (&'a VideoDocument, &'a Calibrator);

/// How many answers of the mean accuracy are added to those of each class, so that a class of which few were seen is as the
/// others.
const ANSWERS_OF_THE_MEAN: f64 = 10.0;

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
        let of_phone = [(phone, calibrator)];
        let ways = of_phone.iter().chain(self.others);
        let local: Result<Vec<LocalModel>, CalibrationError> = ways
            .clone()
            .map(|(way, calibrator)| {
                let model = local_model(way, calibrator)?;
                Ok(match self.others.is_empty() {
                    true => model,
                    false => LocalModel {
                        name: format!("{} on {}", model.name, way.header.answered_by()),
                        ..model
                    },
                })
            })
            .collect();
        let models = VideoModels::new(
            local?,
            vec![RemoteModel {
                name: server.header.model.name.clone(),
                time: slowest(server, FrameRow::serve),
                accuracies,
            }],
        )?;
        let by_class = self.server_by_class(calibrator, &models.remote()[0].accuracies)?;
        let answers: Vec<BTreeMap<u64, &FrameAnswer>> =
            ways.clone().map(|(way, _)| answers(way)).collect();
        let frame = |(answer, sent, served): &MeasuredFrame<'_>| {
            let mut local = Vec::new();
            for ((way, calibrator), answers) in ways.clone().zip(&answers) {
                let answer = answers.get(&answer.image);
                let answer = answer.ok_or(MeasuredError::OtherImages)?;
                local.push(calibrator.answer(&probabilities(way, answer))?);
            }
            let is_right = |&(class, _): &(usize, f64)| answer.labels.contains(&(class as u32));
            Ok(ReplayFrame {
                sizes: sent.iter().map(|frame| frame.bytes).collect(),
                uncalibrated: answer.confidence,
                by_class: local.first().and_then(|it| by_class.get(it.0).cloned()),
                right: Some(RightAnswers {
                    local: local.iter().map(is_right).collect(),
                    remote: vec![served.iter().map(|frame| frame.hit).collect()],
                }),
                local: local
                    .into_iter()
                    .map(|(_, confidence)| confidence)
                    .collect(),
            })
        };
        let frames: Result<Vec<ReplayFrame>, MeasuredError> = measured.iter().map(frame).collect();
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

    /// For each class that the phone may answer, how often the server is right then, in each resolution, where it is right about
    /// the shares `accuracies` of all frames.
    ///
    /// By the calibration half, whose images both sides answer as they are: with n answers of a class of which the server is right
    /// about h, and the mean A, the class has A_c = (h + 10 A) / (n + 10); in a resolution, its odds are as many times those of
    /// all frames there as A_c's are of A's.
    ///
    /// # Errors
    /// When the two are of different images, or confidences cannot be calibrated.
    pub fn server_by_class(
        &self,
        calibrator: &Calibrator,
        accuracies: &[f64],
    ) -> Result<Vec<Vec<f64>>, MeasuredError> {
        let classes = self.phone.header.set.classes.len();
        let mut counts = vec![(0.0, 0.0); classes];
        let (mut all, mut all_right) = (0.0, 0.0);
        for (class, answer, served) in self.learnt_together(calibrator)? {
            let right = served
                .predicted
                .is_some_and(|it| answer.labels.contains(&it));
            let right = f64::from(right);
            if let Some((answers, hits)) = counts.get_mut(class) {
                (*answers, *hits) = (*answers + 1.0, *hits + right);
            }
            (all, all_right) = (all + 1.0, all_right + right);
        }
        let mean = (all_right + 0.5) / (all + 1.0);
        let of_class = |&(answers, hits): &(f64, f64)| {
            let own = (hits + ANSWERS_OF_THE_MEAN * mean) / (answers + ANSWERS_OF_THE_MEAN);
            let times = (own / (1.0 - own)) / (mean / (1.0 - mean));
            let scaled = accuracies.iter().map(|accuracy| {
                let right = times * accuracy;
                right / (right + 1.0 - accuracy)
            });
            scaled.collect()
        };
        Ok(counts.iter().map(of_class).collect())
    }

    /// For each resolution, from the phone's confidence to the chance that the server answers the same: Platt's curve through the
    /// frames that were measured on both sides.
    ///
    /// # Errors
    /// When the two are of different images, or confidences cannot be calibrated.
    pub fn agreement(&self, calibrator: &Calibrator) -> Result<Vec<ScoreMap>, MeasuredError> {
        let forms = self.forms();
        let mut curves = vec![(Vec::new(), Vec::new()); forms.len()];
        for (answer, _, served) in self.frames(&forms)? {
            let (class, confidence) = calibrator.answer(&probabilities(self.phone, answer))?;
            for ((confidences, agree), frame) in curves.iter_mut().zip(served) {
                confidences.push(confidence);
                agree.push(frame.predicted == Some(class as u32));
            }
        }
        let curve = |(confidences, agree): &(Vec<f64>, Vec<bool>)| {
            ScoreMap::train(CalibrationMethod::Platt, confidences, agree)
        };
        let curves: Result<Vec<ScoreMap>, CalibrationError> = curves.iter().map(curve).collect();
        Ok(curves?)
    }

    /// Of the calibration half's images: the class that the phone answers, and what both sides answered.
    fn learnt_together(
        &self,
        calibrator: &Calibrator,
    ) -> Result<Vec<(usize, &FrameAnswer, &FrameAnswer)>, MeasuredError> {
        self.refuse_other_images()?;
        let served = answers(self.server);
        let own = self.phone.answers.iter();
        let own = own.filter(|answer| answer.half == Half::Calibration);
        let pairs = own.filter_map(|answer| Some((answer, *served.get(&answer.image)?)));
        let pair = |(answer, served)| {
            let (class, _) = calibrator.answer(&probabilities(self.phone, answer))?;
            Ok((class, answer, served))
        };
        pairs.map(pair).collect()
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
        let phone = self.phone;
        let shown = |video: &VideoDocument| -> BTreeMap<u64, (Half, Vec<u32>)> {
            let answers = video.answers.iter();
            answers
                .map(|answer| (answer.image, (answer.half, answer.labels.clone())))
                .collect()
        };
        let own = shown(phone);
        let same = |other: &VideoDocument| {
            phone.header.set.classes == other.header.set.classes && own == shown(other)
        };
        let mut others = self.others.iter().map(|(other, _)| *other);
        match same(self.server) && others.all(same) {
            true => Ok(()),
            false => Err(MeasuredError::OtherImages),
        }
    }
}

/// The phone's answer to a frame, and the frame in each form on the phone and on the server.
type MeasuredFrame<'a> = (&'a FrameAnswer, Vec<&'a FrameRow>, Vec<&'a FrameRow>);

/// What was answered, by image.
fn answers(video: &VideoDocument) -> BTreeMap<u64, &FrameAnswer> {
    let answers = video.answers.iter();
    answers.map(|answer| (answer.image, answer)).collect()
}

fn local_model(
    way: &VideoDocument,
    calibrator: &Calibrator,
) -> Result<LocalModel, CalibrationError> {
    Ok(LocalModel {
        name: way.header.model.name.clone(),
        time: median(way.answers.iter().map(|answer| answer.infer).collect()),
        accuracy: learnt_accuracy(way, calibrator)?,
    })
}

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
