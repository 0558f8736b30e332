//! What follows from the frames: how often answers are right in each form, and what the form takes.

use std::collections::BTreeMap;

use super::{FrameForm, FrameRow};
use crate::summary::{Summary, Z_95};
use crate::units::{Bytes, Nanos};

/// How often the network is right about frames of one form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolutionAccuracy {
    /// The form.
    pub form: FrameForm,
    /// How many frames were answered.
    pub answers: u64,
    /// Of how many the image shows the class that was said.
    pub hits: u64,
    /// The share of hits.
    pub score: f64,
    /// Its 95 % interval over images that were drawn like these: Wilson's.
    pub ci95: (f64, f64),
}

/// What frames of one form take: medians over the frames, with 95 % intervals where there are enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolutionTimes {
    /// The form.
    pub form: FrameForm,
    /// How many frames were timed.
    pub frames: u64,
    /// The median of the encoded sizes.
    pub bytes: Bytes,
    /// Resizing and encoding.
    pub prepare: Nanos,
    /// Its interval.
    pub prepare_ci95: Option<(Nanos, Nanos)>,
    /// Decoding, resizing and the inference, one frame at a time.
    pub serve: Nanos,
    /// Its interval.
    pub serve_ci95: Option<(Nanos, Nanos)>,
}

/// Wilson's 95 % interval of a share, "Probable Inference, the Law of Succession, and Statistical Inference" (1927):
/// (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n). From 0 to 1 where there is nothing to tell it by.
pub fn wilson_ci95(hits: u64, answers: u64) -> (f64, f64) {
    if answers == 0 {
        return (0.0, 1.0);
    }
    let n = answers as f64;
    let (p, square) = (hits as f64 / n, Z_95 * Z_95);
    let centre = p + square / (2.0 * n);
    let half = Z_95 * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let by = 1.0 + square / n;
    (
        ((centre - half) / by).clamp(0.0, 1.0),
        ((centre + half) / by).clamp(0.0, 1.0),
    )
}

/// The frames of each form, the forms in their order.
fn by_form(frames: &[FrameRow]) -> BTreeMap<FrameForm, Vec<&FrameRow>> {
    let mut forms: BTreeMap<FrameForm, Vec<&FrameRow>> = BTreeMap::new();
    for frame in frames {
        forms.entry(frame.form).or_default().push(frame);
    }
    forms
}

/// How often answers are right in each form.
pub(super) fn accuracies(frames: &[FrameRow]) -> Vec<ResolutionAccuracy> {
    let row = |(form, frames): (FrameForm, Vec<&FrameRow>)| {
        let answers = frames.len() as u64;
        let hits = frames.iter().filter(|frame| frame.hit).count() as u64;
        ResolutionAccuracy {
            form,
            answers,
            hits,
            score: hits as f64 / answers as f64,
            ci95: wilson_ci95(hits, answers),
        }
    };
    by_form(frames).into_iter().map(row).collect()
}

/// What each form takes.
pub(super) fn times(frames: &[FrameRow]) -> Vec<ResolutionTimes> {
    let row = |(form, frames): (FrameForm, Vec<&FrameRow>)| {
        let summary = |time: fn(&FrameRow) -> Nanos| {
            let times: Vec<Nanos> = frames.iter().map(|frame| time(frame)).collect();
            Summary::of(&times)
        };
        let (prepare, serve) = (summary(FrameRow::prepare)?, summary(FrameRow::serve)?);
        let mut bytes: Vec<Bytes> = frames.iter().map(|frame| frame.bytes).collect();
        bytes.sort();
        Some(ResolutionTimes {
            form,
            frames: frames.len() as u64,
            bytes: bytes[bytes.len() / 2],
            prepare: prepare.median,
            prepare_ci95: prepare.median_ci95,
            serve: serve.median,
            serve_ci95: serve.median_ci95,
        })
    };
    by_form(frames).into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // By R: prop.test(8, 10, correct = FALSE).
        let (low, high) = wilson_ci95(8, 10);
        assert!((low - 0.490_162).abs() < 1e-6 && (high - 0.943_318).abs() < 1e-6);
        let (low, high) = wilson_ci95(0, 20);
        assert!(low == 0.0 && high > 0.1, "{high}");
        assert_eq!(wilson_ci95(0, 0), (0.0, 1.0));
    }
}
