//! The inputs of planners for video, as they are published.

use std::collections::BTreeMap;

use super::derived::{self, ResolutionAccuracy, ResolutionTimes};
use super::{Confidence, FrameAnswer, FrameRow, VideoHeader, top};

/// The file that says what the files beside it are.
pub const VIDEO_JSON: &str = "video.json";

/// The score vectors: 32-bit floats, little-endian, all classes of one answer after those of the other, in the order of
/// `answers.csv`.
pub const SCORES_FILE: &str = "answers.f32";

/// One model's answers to images on one processor of one device, and what frames cost there.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoDocument {
    /// `video.json`.
    pub header: VideoHeader,
    /// `answers.csv` and `answers.f32`.
    pub answers: Vec<FrameAnswer>,
    /// `frames.csv`.
    pub frames: Vec<FrameRow>,
    /// `resolution_accuracy.csv`, which follows from the frames.
    pub accuracies: Vec<ResolutionAccuracy>,
    /// `resolution_times.csv`, which follows from the frames.
    pub times: Vec<ResolutionTimes>,
}

impl VideoDocument {
    /// The document of these answers and frames. How scores become probabilities, what was predicted, how sure that was, and
    /// which frames were hit follows from the scores and labels, and is filled in.
    pub fn new(
        mut header: VideoHeader,
        mut answers: Vec<FrameAnswer>,
        mut frames: Vec<FrameRow>,
    ) -> VideoDocument {
        let vectors = answers.iter().map(|answer| answer.scores.as_slice());
        header.confidence = Confidence::of(&header.set.metric, vectors);
        header.answers = answers.len() as u64;
        for answer in &mut answers {
            answer.predicted = top(&answer.scores);
            answer.confidence = confidence(&header, answer);
        }
        let labels = labels(&answers);
        for frame in &mut frames {
            frame.hit = is_hit(&labels, frame);
        }
        VideoDocument {
            accuracies: derived::accuracies(&frames),
            times: derived::times(&frames),
            header,
            answers,
            frames,
        }
    }

    /// The forms of the frames, each once, in their order.
    pub fn forms(&self) -> impl Iterator<Item = super::FrameForm> {
        self.times.iter().map(|row| row.form)
    }
}

/// The largest of an answer's scores as probabilities.
pub(super) fn confidence(header: &VideoHeader, answer: &FrameAnswer) -> f64 {
    let probabilities = header.confidence.probabilities(&answer.scores);
    probabilities.into_iter().fold(0.0, f64::max)
}

/// What each image shows.
pub(super) fn labels(answers: &[FrameAnswer]) -> BTreeMap<u64, &[u32]> {
    let pairs = answers.iter().map(|it| (it.image, it.labels.as_slice()));
    pairs.collect()
}

/// Whether the image of a frame shows what was said of it; false where its labels are not known.
pub(super) fn is_hit(labels: &BTreeMap<u64, &[u32]>, frame: &FrameRow) -> bool {
    let labels = labels.get(&frame.image).copied().unwrap_or_default();
    frame.predicted.is_some_and(|class| labels.contains(&class))
}
