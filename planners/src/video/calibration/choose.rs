//! Which calibration to use: that of the least expected calibration error on answers it was not trained on.

use serde::{Deserialize, Serialize};

use super::answers::{Answers, refuse_vector, top};
use super::error::CalibrationError;
use super::one_vs_rest::OneVsRest;
use super::reliability::Reliability;
use super::score_map::CalibrationMethod;
use super::top1::Top1;

/// From a score vector to a class and a confidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrator {
    /// The largest score as it is; scores must be between 0 and 1.
    Uncalibrated,
    /// A model for each class.
    OneVsRest(OneVsRest),
    /// One model for all answers.
    Top1(Top1),
}

impl Calibrator {
    /// The class that `scores` are taken for, and the confidence in it, between 0 and 1.
    pub fn answer(&self, scores: &[f64]) -> Result<(usize, f64), CalibrationError> {
        match self {
            Calibrator::Uncalibrated => {
                if scores.is_empty() {
                    return Err(CalibrationError::NoAnswers);
                }
                refuse_vector(scores, scores.len(), 0)?;
                let (class, confidence) = top(scores);
                match (0.0..=1.0).contains(&confidence) {
                    true => Ok((class, confidence)),
                    false => Err(CalibrationError::NoProbability {
                        answer: 0,
                        confidence,
                    }),
                }
            }
            Calibrator::OneVsRest(calibrator) => calibrator.answer(scores),
            Calibrator::Top1(calibrator) => calibrator.answer(scores),
        }
    }
}

/// One calibration, and how good it was on held-out answers.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationTrial {
    /// The calibration.
    pub calibrator: Calibrator,
    /// How the models were trained; none where nothing was.
    pub method: Option<CalibrationMethod>,
    /// Confidence against accuracy on the held-out answers.
    pub reliability: Reliability,
    /// The share of held-out answers whose class the calibration changed.
    pub changed_answers: f64,
    /// The share of held-out answers whose class was right, after calibration.
    pub accuracy: f64,
}

impl CalibrationTrial {
    /// What it is called in tables.
    pub fn name(&self) -> &'static str {
        match (&self.calibrator, self.method) {
            (Calibrator::OneVsRest(_), Some(CalibrationMethod::Platt)) => "platt one-vs-rest",
            (Calibrator::OneVsRest(_), _) => "isotonic one-vs-rest",
            (Calibrator::Top1(_), Some(CalibrationMethod::Platt)) => "platt top-1",
            (Calibrator::Top1(_), _) => "isotonic top-1",
            (Calibrator::Uncalibrated, _) => "uncalibrated",
        }
    }
}

/// All calibrations tried, and which of them is best.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenCalibration {
    trials: Vec<CalibrationTrial>,
    best: usize,
}

impl ChosenCalibration {
    /// The trial of the least expected calibration error.
    pub fn best(&self) -> &CalibrationTrial {
        &self.trials[self.best]
    }

    /// All trials: uncalibrated where scores are probabilities, then one-vs-rest and top-1 by Platt, then by isotonic
    /// regression.
    pub fn trials(&self) -> &[CalibrationTrial] {
        &self.trials
    }
}

/// Trains every calibration on `train` and takes the one whose expected calibration error on `held_out`, which shares no
/// answers with `train`, is least; the first of several (cbo Table I).
pub fn choose(train: &Answers, held_out: &Answers) -> Result<ChosenCalibration, CalibrationError> {
    let probability = |score: &f64| (0.0..=1.0).contains(score);
    let mut trials = Vec::new();
    if held_out
        .iter()
        .all(|(vector, _)| vector.iter().all(probability))
    {
        trials.push(trial(Calibrator::Uncalibrated, None, held_out)?);
    }
    for method in [CalibrationMethod::Platt, CalibrationMethod::Isotonic] {
        let each_class = Calibrator::OneVsRest(OneVsRest::train(method, train)?);
        let all_answers = Calibrator::Top1(Top1::train(method, train)?);
        trials.push(trial(each_class, Some(method), held_out)?);
        trials.push(trial(all_answers, Some(method), held_out)?);
    }
    let mut best = 0;
    for (place, trial) in trials.iter().enumerate() {
        if trial.reliability.expected_error() < trials[best].reliability.expected_error() {
            best = place;
        }
    }
    Ok(ChosenCalibration { trials, best })
}

fn trial(
    calibrator: Calibrator,
    method: Option<CalibrationMethod>,
    held_out: &Answers,
) -> Result<CalibrationTrial, CalibrationError> {
    let (mut confidences, mut right, mut changed) = (Vec::new(), Vec::new(), 0);
    for (vector, shown) in held_out.iter() {
        let (class, confidence) = calibrator.answer(vector)?;
        confidences.push(confidence);
        right.push(shown.contains(&class));
        changed += usize::from(class != top(vector).0);
    }
    let count = held_out.count() as f64;
    Ok(CalibrationTrial {
        reliability: Reliability::of(&confidences, &right)?,
        changed_answers: changed as f64 / count,
        accuracy: right.iter().filter(|&&right| right).count() as f64 / count,
        calibrator,
        method,
    })
}
