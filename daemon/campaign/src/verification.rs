//! A planned placement run on a device: is it as fast and as accurate as predicted?

use layerlab_profiles::Placement;

use super::{
    AccuracySettings, CampaignError, Evaluated, EvaluationSettings, Follower, ModelFile, Passes,
    PlacementTime, Placements, SetFile, evaluate, time_placements,
};
use layerlab_farm::Link;

/// The placement to run, and what to find out.
pub struct Verification<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// Which layer runs on which processor.
    pub placement: Placement,
    /// How it is timed, and on which processors.
    pub passes: Passes,
    /// The images by which its accuracy is measured; without them the time alone is.
    pub set: Option<VerificationSet<'a>>,
}

/// The images that a prediction was learnt on: what differs then is the prediction's error, not the luck of other
/// images.
pub struct VerificationSet<'a> {
    /// The evaluation set.
    pub set: &'a SetFile,
    /// The seed of the evaluation that the prediction was learnt from.
    pub seed: u64,
    /// How many answers it gave.
    pub answers: usize,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// How long the placement takes.
    pub time: Vec<PlacementTime>,
    /// What its answers are worth.
    pub accuracy: Option<Evaluated>,
}

impl Verification<'_> {
    /// Runs the placement on the device behind `link`.
    pub async fn run<L: Link, F: Follower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<Verified, CampaignError> {
        let placements = std::slice::from_ref(&self.placement);
        let time = time_placements(link, self.model, placements, &self.passes).await?;
        let accuracy = match &self.set {
            None => None,
            Some(of) => {
                let settings = EvaluationSettings {
                    processors: self.passes.processors.clone(),
                    placements: Placements::These(vec![self.placement.clone()]),
                    seed: of.seed,
                    answers: Some(of.answers),
                    stop_at_half_width: None,
                    memory: AccuracySettings::default().memory,
                };
                Some(evaluate(link, self.model, of.set, &settings, follower).await?)
            }
        };
        Ok(Verified { time, accuracy })
    }
}
