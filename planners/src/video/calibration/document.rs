//! What is published of calibrations: the calibrators, how good they were, and what they were fitted on.

use layerlab_profiles::video::{Confidence, VideoDocument};
use serde::{Deserialize, Serialize};

use super::answers::Answers;
use super::choose::{Calibrator, ChosenCalibration};
use super::one_vs_rest::OneVsRest;

/// What the field `format` says.
pub const CALIBRATION_FORMAT: &str = "layerlab-calibration";

/// The version of the format that is written and read.
pub const CALIBRATION_VERSION: u32 = 1;

/// `calibration.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationDocument {
    /// `layerlab-calibration`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// What the calibrators were fitted on.
    pub fitted_on: FittedOn,
    /// The place of the chosen calibration among `trials`, counted from 0: the one of the least held-out ECE.
    pub chosen: usize,
    /// All that were tried.
    pub trials: Vec<CalibrationRecord>,
}

/// What calibrators were fitted on. They say nothing about another model, processor or kind of images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedOn {
    /// The model's name.
    pub model: String,
    /// SHA-256 of its file.
    pub model_sha256: String,
    /// SHA-256 of its quantised twin, if that answered.
    pub quantised_sha256: Option<String>,
    /// The device.
    pub device: String,
    /// Its processor, or the parts of a placement: [`layerlab_profiles::video::VideoHeader::answered_by`].
    pub processor: String,
    /// Whether the device was simulated.
    pub simulated: bool,
    /// Whether its maker's emulator played the processor.
    pub emulated: bool,
    /// The evaluation set.
    pub set: String,
    /// SHA-256 of its file.
    pub set_sha256: String,
    /// How scores become probabilities before they are calibrated.
    pub confidence: Confidence,
    /// What images and halves were drawn from.
    pub seed: u64,
    /// How many answers calibrators learnt from.
    pub answers: u64,
    /// How many others judged them.
    pub held_out_answers: u64,
}

/// One calibration, and how good it was on the held-out answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationRecord {
    /// What it is called.
    pub name: String,
    /// ECE.
    pub expected_error: f64,
    /// MCE.
    pub maximum_error: f64,
    /// The share of right answers.
    pub accuracy: f64,
    /// The share of answers whose class it changed.
    pub changed_answers: f64,
    /// The classes, counted from 0, that have too few images for models of their own and share one.
    pub pooled_classes: Vec<usize>,
    /// Its parameters.
    pub calibrator: Calibrator,
}

impl CalibrationDocument {
    /// What is published of calibrations of `video`'s answers, which learnt from the first of `answers` and were judged by the
    /// second.
    pub fn new(
        video: &VideoDocument,
        chosen: &ChosenCalibration,
        (train, held_out): (&Answers, &Answers),
    ) -> CalibrationDocument {
        let header = &video.header;
        let trials = chosen.trials().iter();
        CalibrationDocument {
            format: CALIBRATION_FORMAT.to_owned(),
            version: CALIBRATION_VERSION,
            fitted_on: FittedOn {
                model: header.model.name.clone(),
                model_sha256: header.model.sha256.clone(),
                quantised_sha256: header.model.quantised_sha256.clone(),
                device: header.device.name.clone(),
                processor: header.answered_by(),
                simulated: header.device.simulated,
                emulated: header.processor.emulated,
                set: header.set.name.clone(),
                set_sha256: header.set.sha256.clone(),
                confidence: header.confidence,
                seed: header.seed,
                answers: train.count() as u64,
                held_out_answers: held_out.count() as u64,
            },
            chosen: trials
                .clone()
                .position(|trial| std::ptr::eq(trial, chosen.best()))
                .unwrap_or(0),
            trials: trials
                .map(|trial| CalibrationRecord {
                    name: trial.name().to_owned(),
                    expected_error: trial.reliability.expected_error(),
                    maximum_error: trial.reliability.maximum_error(),
                    accuracy: trial.accuracy,
                    changed_answers: trial.changed_answers,
                    pooled_classes: match &trial.calibrator {
                        Calibrator::OneVsRest(each) => OneVsRest::pooled_classes(each).collect(),
                        _ => Vec::new(),
                    },
                    calibrator: trial.calibrator.clone(),
                })
                .collect(),
        }
    }

    /// The chosen calibration; none where the document names one that there is not.
    pub fn best(&self) -> Option<&CalibrationRecord> {
        self.trials.get(self.chosen)
    }

    /// What of `video` is other than what the calibrators were fitted on, in words; none if nothing is.
    pub fn unlike(&self, video: &VideoDocument) -> Option<&'static str> {
        let (on, header) = (&self.fitted_on, &video.header);
        let model = (&header.model.sha256, &header.model.quantised_sha256);
        let processor = header.answered_by();
        let device = (&header.device.name, &processor);
        if (&on.model_sha256, &on.quantised_sha256) != model {
            Some("another model")
        } else if (&on.device, &on.processor) != device {
            Some("another processor")
        } else if on.confidence != header.confidence {
            Some("other scores")
        } else if (&on.set_sha256, on.seed, on.answers + on.held_out_answers)
            != (&header.set.sha256, header.seed, header.answers)
        {
            Some("other images or halves of them, so that some may have been learnt from")
        } else {
            None
        }
    }
}
