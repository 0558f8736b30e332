//! A calibration model for each class (cbo Figure 6).

use serde::{Deserialize, Serialize};

use super::answers::{Answers, refuse_vector, top};
use super::error::CalibrationError;
use super::score_map::{CalibrationMethod, ScoreMap};

/// The fewest images of a class that train a model of its own.
pub const FEWEST_POSITIVES: usize = 10;

/// One model for each class: how often an image shows class i, given score i. Calibrated scores need not sum to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawOneVsRest")]
pub struct OneVsRest {
    /// Of each class its own model, if it has one.
    own: Vec<Option<ScoreMap>>,
    /// Of all classes with fewer than [`FEWEST_POSITIVES`] images together, if there are such classes.
    pooled: Option<ScoreMap>,
}

/// As somebody wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOneVsRest {
    own: Vec<Option<ScoreMap>>,
    pooled: Option<ScoreMap>,
}

impl TryFrom<RawOneVsRest> for OneVsRest {
    type Error = &'static str;

    fn try_from(raw: RawOneVsRest) -> Result<OneVsRest, &'static str> {
        let RawOneVsRest { own, pooled } = raw;
        match own.is_empty() || (pooled.is_none() && own.iter().any(Option::is_none)) {
            true => Err("each class needs a model of its own, or a pooled one"),
            false => Ok(OneVsRest { own, pooled }),
        }
    }
}

impl OneVsRest {
    /// Trains on `answers`: model i on the scores of class i, with whether the image shows it.
    pub fn train(
        method: CalibrationMethod,
        answers: &Answers,
    ) -> Result<OneVsRest, CalibrationError> {
        let mut images = vec![0; answers.classes()];
        for (_, shown) in answers.iter() {
            for &class in shown {
                images[class] += 1;
            }
        }
        let (mut own, mut pooled) = (Vec::new(), (Vec::new(), Vec::new()));
        for (class, &images) in images.iter().enumerate() {
            let scores = answers.iter().map(|(vector, _)| vector[class]);
            let shown = answers.iter().map(|(_, shown)| shown.contains(&class));
            if images < FEWEST_POSITIVES {
                pooled.0.extend(scores);
                pooled.1.extend(shown);
                own.push(None);
            } else {
                let (scores, shown): (Vec<f64>, Vec<bool>) = scores.zip(shown).unzip();
                own.push(Some(ScoreMap::train(method, &scores, &shown)?));
            }
        }
        let pooled = match pooled.0.is_empty() {
            true => None,
            false => Some(ScoreMap::train(method, &pooled.0, &pooled.1)?),
        };
        Ok(OneVsRest { own, pooled })
    }

    /// The classes that share the pooled model, counted from 0.
    pub fn pooled_classes(&self) -> impl Iterator<Item = usize> {
        let classes = self.own.iter().enumerate();
        classes.filter_map(|(class, own)| own.is_none().then_some(class))
    }

    /// The calibrated scores x' of `scores`, one for each class, each between 0 and 1.
    pub fn calibrated(&self, scores: &[f64]) -> Result<Vec<f64>, CalibrationError> {
        refuse_vector(scores, self.own.len(), 0)?;
        let models = self
            .own
            .iter()
            .map(|own| own.as_ref().or(self.pooled.as_ref()));
        let pairs = scores.iter().zip(models);
        // A class without a model of its own has the pooled one: `train` makes it where such a class is.
        Ok(pairs
            .filter_map(|(&score, model)| Some(model?.probability(score)))
            .collect())
    }

    /// The class of the largest calibrated score, which need not be that of the largest score, and its confidence.
    pub fn answer(&self, scores: &[f64]) -> Result<(usize, f64), CalibrationError> {
        Ok(top(&self.calibrated(scores)?))
    }
}
