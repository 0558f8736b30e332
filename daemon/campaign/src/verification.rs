//! Planned placements run on a device: are they as fast and as accurate as predicted?

use layerlab_profiles::Placement;

use super::{
    AccuracySettings, CampaignError, Evaluated, EvaluationSettings, Follower, ModelFile, Passes,
    PlacementTime, Placements, SetFile, evaluate, time_placements,
};
use layerlab_farm::Link;

/// The placements to run, and what to find out.
pub struct Verification<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// Which layer runs on which processor.
    pub placements: Vec<Placement>,
    /// How they are timed, and on which processors.
    pub passes: Passes,
    /// The images by which their accuracies are measured; without them the time alone is.
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
    /// How long each placement takes.
    pub time: Vec<PlacementTime>,
    /// What their answers are worth.
    pub accuracy: Option<Evaluated>,
}

impl Verification<'_> {
    /// Runs the placements on the device behind `link`.
    pub async fn run<L: Link, F: Follower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<Verified, CampaignError> {
        let time = time_placements(link, self.model, &self.placements, &self.passes).await?;
        let accuracy = match &self.set {
            None => None,
            Some(of) => {
                let settings = EvaluationSettings {
                    processors: self.passes.processors.clone(),
                    placements: Placements::These(self.placements.clone()),
                    seed: of.seed,
                    answers: Some(of.answers),
                    stop_at_half_width: None,
                    memory: AccuracySettings::default().memory,
                    // As they were just timed.
                    as_runs: true,
                    keep_answers: false,
                };
                Some(evaluate(link, self.model, of.set, &settings, follower).await?)
            }
        };
        Ok(Verified { time, accuracy })
    }
}
