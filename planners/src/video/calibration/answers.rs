//! Labelled score vectors: what calibration learns from and is judged by.

use super::error::CalibrationError;

/// Answers of one network to labelled images: score vectors of one length, and the classes that each image shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    scores: Vec<Vec<f64>>,
    shown: Vec<Vec<usize>>,
    classes: usize,
}

impl Answers {
    /// Puts `scores`, one vector of all classes for each image, and `labels`, classes counted from 0, together: each image
    /// shows one class.
    ///
    /// Scores are finite; they need be no probabilities, except where nothing calibrates them.
    pub fn new(scores: Vec<Vec<f64>>, labels: Vec<usize>) -> Result<Answers, CalibrationError> {
        Answers::multi_label(
            scores,
            labels.into_iter().map(|label| vec![label]).collect(),
        )
    }

    /// The same where each image shows any number of classes. An answer is right when its class is one of them.
    pub fn multi_label(
        scores: Vec<Vec<f64>>,
        shown: Vec<Vec<usize>>,
    ) -> Result<Answers, CalibrationError> {
        if scores.len() != shown.len() {
            return Err(CalibrationError::Lengths {
                scores: scores.len(),
                labels: shown.len(),
            });
        }
        let classes = scores.first().map_or(0, Vec::len);
        if classes == 0 {
            return Err(CalibrationError::NoAnswers);
        }
        for (answer, (vector, shown)) in scores.iter().zip(&shown).enumerate() {
            refuse_vector(vector, classes, answer)?;
            if let Some(&label) = shown.iter().find(|&&label| label >= classes) {
                return Err(CalibrationError::Label {
                    answer,
                    label,
                    classes,
                });
            }
        }
        Ok(Answers {
            scores,
            shown,
            classes,
        })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How many answers there are, at least one.
    pub fn count(&self) -> usize {
        self.shown.len()
    }

    /// Each score vector with the classes that the image shows.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], &[usize])> {
        let scores = self.scores.iter().map(Vec::as_slice);
        scores.zip(self.shown.iter().map(Vec::as_slice))
    }
}

/// Refuses a score vector that is not of `classes` finite numbers.
pub(super) fn refuse_vector(
    vector: &[f64],
    classes: usize,
    answer: usize,
) -> Result<(), CalibrationError> {
    if vector.len() != classes {
        return Err(CalibrationError::Classes {
            answer,
            found: vector.len(),
            classes,
        });
    }
    match vector.iter().all(|score| score.is_finite()) {
        true => Ok(()),
        false => Err(CalibrationError::NotFinite { answer }),
    }
}

/// The class of the largest score, the first of several, and that score: the network's answer and its confidence.
///
/// `vector` has at least one score.
pub(super) fn top(vector: &[f64]) -> (usize, f64) {
    let first = (0, vector[0]);
    let others = vector.iter().copied().enumerate().skip(1);
    others.fold(first, |best, one| if one.1 > best.1 { one } else { best })
}

/// Refuses scores that nothing can be learnt from.
pub(super) fn refuse_unfit(scores: &[f64], right: &[bool]) -> Result<(), CalibrationError> {
    if scores.len() != right.len() {
        return Err(CalibrationError::Lengths {
            scores: scores.len(),
            labels: right.len(),
        });
    }
    if scores.is_empty() {
        return Err(CalibrationError::NoAnswers);
    }
    match scores.iter().position(|score| !score.is_finite()) {
        Some(answer) => Err(CalibrationError::NotFinite { answer }),
        None => Ok(()),
    }
}
