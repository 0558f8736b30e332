//! A campaign: one run of one model on one device, from its settings to a published profile. The command line, the demo
//! and the lab all run it; nothing else puts times, accuracy and publication together.

mod answers;
mod drive;
mod edge_link;
mod energy;
mod error;
mod evaluation;
pub mod evaluation_set;
mod follower;
mod frame_sizes;
mod host;
mod journal;
mod kept;
mod model_file;
pub mod orders;
mod placement;
pub mod plot;
mod probes;
mod provenance;
pub mod publish;
mod set_file;
mod settings;
mod survey;
mod tensors;
mod times;
mod times_plan;
mod verification;
mod video;

use std::future::Future;
use std::path::PathBuf;

use layerlab_profiles::check::Finding;
use layerlab_profiles::document::{Fitness, Profile};

pub use answers::LEAST_ANSWERS;
pub use drive::{File, RunError, drive, forget};
pub use edge_link::{
    LinkCampaign, LinkCampaignError, LinkSettings, Tunnel, TunnelElsewhere, WrittenShape,
    bits_per_second, port_here, program_for_server,
};
pub use energy::{
    EnergySettings, MeteredWindows, UnfitWindow, measure_energy, measure_placement_energy,
};
pub use error::{CampaignError, JournalTrouble};
pub use evaluation::{Evaluated, EvaluationSettings, Placements, evaluate, evaluate_in};
pub use follower::Follower;
pub use frame_sizes::{FrameSizes, UnfitFrames};
pub use host::host;
pub use journal::{CampaignPart, KnownJournal};
pub use kept::{Keeping, KeptAnswers, MOST_KEPT, TooLarge};
pub use model_file::{ModelFile, ModelFileError, QuantisedTwin};
pub use placement::{Passes, PlacementTime, time_placements};
pub use probes::{ProbeError, ProbeFiles};
pub use provenance::{rfc3339, this_program};
pub use set_file::SetFile;
pub use settings::{
    AccuracySettings, InOut, SteadySettings, TensorsSettings, TimesSettings, UnfitDuration,
    UnfitProcessors, VideoSettings,
};
pub use survey::find_unsupported;
pub use tensors::{TensorsCampaign, UnfitTensors};
pub use times::measure_times;
pub use times_plan::{ProcessorPlan, TimesPlan, TimesPlanError};
pub use verification::{Verification, VerificationSet, Verified};
pub use video::VideoCampaign;

use layerlab_farm::Link;
use publish::{PublishError, SigningKey, Staging, keep_refused};

/// What is profiled, how, and where the profile goes.
pub struct Campaign<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// How times are measured.
    pub times: TimesSettings,
    /// How accuracy is measured, if it is.
    pub accuracy: Option<CampaignAccuracy<'a>>,
    /// The folder that the profile becomes.
    pub target: PathBuf,
    /// Whether a profile that is there already is replaced.
    pub replace: bool,
    /// What the profile is signed with, if it is.
    pub signing_key: Option<SigningKey>,
    /// Whether the device was found fit to be measured, if anybody looked. Where that is overridden, throttling rejects no
    /// block.
    pub fitness: Option<Fitness>,
}

/// How a campaign measures accuracy.
pub struct CampaignAccuracy<'a> {
    /// The images, labelled.
    pub set: &'a SetFile,
    /// How they are answered.
    pub settings: AccuracySettings,
}

/// A profile that everybody can read now.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What was published.
    pub profile: Profile,
    /// What is doubtful about it.
    pub findings: Vec<Finding>,
    /// Why it has no steady times although they were asked for.
    pub not_steady: Option<String>,
}

/// What was measured.
struct Parts {
    profile: Profile,
    not_steady: Option<String>,
}

/// Who follows a campaign, and keeps its journals if it is to go on after an interruption.
pub trait CampaignFollower: Follower {
    /// A part begins: its journal, with the entries that were followed before.
    fn begin(
        &mut self,
        part: CampaignPart,
    ) -> impl Future<Output = Result<KnownJournal, JournalTrouble>> + Send;

    /// The part that began last has ended, or was left. Its result counts only if what came of it is kept.
    fn end(&mut self) -> impl Future<Output = Result<(), JournalTrouble>> + Send;
}

/// What becomes of the journals on the device once their parts are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journals {
    Stay,
    AreForgotten,
}

impl Campaign<'_> {
    /// Measures and publishes on the device behind `link`. A folder that cannot be written costs no measurement.
    pub async fn run<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<Published, CampaignError> {
        let staging = Staging::prepare(&self.target, self.replace)?;
        let parts = self.parts(link, follower, Journals::AreForgotten).await?;
        let Parts {
            profile,
            not_steady,
        } = parts;
        let staging = staging.signed_by(self.signing_key.clone());
        let findings = match staging.publish(&profile) {
            Err(PublishError::Unfit { findings, .. }) => {
                // Nothing else has the samples by now.
                let kept = keep_refused(&self.target, &profile);
                let kept = kept
                    .inspect_err(|error| tracing::warn!(%error, "the samples are not kept"))
                    .ok();
                return Err(PublishError::Unfit { findings, kept }.into());
            }
            published => published?,
        };
        Ok(Published {
            profile,
            findings,
            not_steady,
        })
    }

    /// Measures without publishing. The journals stay on the device, so that a campaign that was interrupted can go
    /// on from them; whoever kept them has them [forgotten](forget).
    pub async fn measure<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<Profile, CampaignError> {
        let parts = self.parts(link, follower, Journals::Stay).await?;
        if let Some(reason) = parts.not_steady {
            tracing::warn!(reason, "no steady times");
        }
        Ok(parts.profile)
    }

    /// Publishes what was measured; what is doubtful about it. May be tried again.
    pub fn publish(&self, profile: &Profile) -> Result<Vec<Finding>, PublishError> {
        let staging = Staging::prepare(&self.target, self.replace)?;
        staging.signed_by(self.signing_key.clone()).publish(profile)
    }

    async fn parts<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
        journals: Journals,
    ) -> Result<Parts, CampaignError> {
        let accuracy = match &self.accuracy {
            None => None,
            Some(accuracy) => {
                // A processor that is missing is missed before hours are spent on times.
                let hello = link.connect().await?.hello;
                let measured = self.times.chosen(&hello.processors)?;
                Some((accuracy.set, accuracy.settings.on(&measured)?))
            }
        };
        let (mut settings, model) = (self.times.clone(), self.model);
        if self
            .fitness
            .as_ref()
            .is_some_and(|fitness| fitness.overridden)
        {
            settings.hygiene.throttling_counts = true;
        }
        let steady = settings.steady.take();
        let metered = match settings.energy.take() {
            None => None,
            Some(energy) => {
                let journal = begun(follower, CampaignPart::Energy).await?;
                let metered =
                    measure_energy(link, model, &settings, &energy, &journal, follower).await;
                Some(ended(link, follower, journal, metered, journals).await?)
            }
        };
        let journal = begun(follower, CampaignPart::Times).await?;
        let cold = measure_times(link, model, settings.clone(), &journal, follower).await;
        let cold = ended(link, follower, journal, cold, journals).await;
        let (mut profile, not_steady) = match (cold, steady) {
            (cold, None) => (cold?, None),
            (cold, Some(steady)) => {
                let cold = match cold {
                    Ok(cold) => Some(cold),
                    Err(error) if error.is_throttled() => {
                        tracing::warn!(%error, "the device does not cool down; its steady times alone are measured");
                        None
                    }
                    Err(error) => return Err(error),
                };
                // One that did not cool down will not for this either.
                settings.steady = Some(SteadySettings {
                    rest: cold.is_some(),
                    ..steady
                });
                let journal = begun(follower, CampaignPart::Steady).await?;
                let steady = measure_times(link, model, settings, &journal, follower).await;
                let steady = ended(link, follower, journal, steady, journals).await;
                match (cold, steady) {
                    (None, steady) => (steady?, None),
                    (Some(cold), Ok(mut steady)) => {
                        steady.header.provenance.fitness = self.fitness.clone();
                        (cold.with_steady(steady), None)
                    }
                    (Some(cold), Err(error)) if error.is_throttled() => {
                        (cold, Some(error.to_string()))
                    }
                    (Some(_), Err(error)) => return Err(error),
                }
            }
        };
        profile.header.provenance.fitness = self.fitness.clone();
        if let Some(metered) = metered {
            profile = metered.added_to(profile)?;
        }
        let Some((set, settings)) = accuracy else {
            return Ok(Parts {
                profile,
                not_steady,
            });
        };
        let journal = begun(follower, CampaignPart::Accuracy).await?;
        let unsupported = &profile.unsupported;
        let evaluated =
            evaluate_in(link, model, set, &settings, unsupported, &journal, follower).await;
        let evaluated = ended(link, follower, journal, evaluated, journals).await?;
        let profile = profile.with_evaluation(evaluated.evaluation, &evaluated.judged)?;
        Ok(Parts {
            profile: profile.with_placements(evaluated.placements),
            not_steady,
        })
    }
}

async fn begun<F: CampaignFollower>(
    follower: &mut F,
    part: CampaignPart,
) -> Result<KnownJournal, CampaignError> {
    follower.begin(part).await.map_err(CampaignError::Journal)
}

/// The result of a part, if its journal is kept as its follower wants.
async fn ended<L: Link, F: CampaignFollower, T>(
    link: &L,
    follower: &mut F,
    journal: KnownJournal,
    result: Result<T, CampaignError>,
    journals: Journals,
) -> Result<T, CampaignError> {
    follower.end().await.map_err(CampaignError::Journal)?;
    let result = result?;
    if journals == Journals::AreForgotten {
        forget(link, journal.id).await;
    }
    Ok(result)
}
