//! What a run measures: the profile of a model, what answering the frames of a video costs, or what a link carries.

use std::path::Path;

use layerlab_profiles::document::{Fitness, Profile};
use layerlab_profiles::link::LinkDocument;
use layerlab_profiles::video::VideoDocument;

use super::OpenDevice;
use super::follow::Keeper;
use crate::job::{JobSpec, RunKind};
use crate::library::{InUse, Library, LibraryError};
use layerlab_campaign::publish::{PublishError, SigningKey, Staging};
use layerlab_campaign::{
    Campaign, CampaignAccuracy, CampaignError, CampaignPart, ModelFile, SetFile, VideoCampaign,
};

/// What a run has measured.
pub(super) enum Measured {
    Profile(Box<Profile>),
    Video(Box<VideoDocument>),
    Link(Box<LinkDocument>),
}

impl Measured {
    /// Makes it visible at `target`; what is doubtful about it. What a daemon published that was killed before it could say so
    /// is published again.
    pub(super) fn publish(
        &self,
        target: &Path,
        key: Option<SigningKey>,
    ) -> Result<Vec<String>, PublishError> {
        let staging = Staging::prepare(target, true)?;
        match self {
            Measured::Profile(profile) => {
                let findings = staging.signed_by(key).publish(profile)?;
                Ok(findings.iter().map(|it| it.rule.to_string()).collect())
            }
            Measured::Video(video) => {
                let findings = staging.publish_video(video)?;
                Ok(findings.into_iter().map(|it| it.sentence).collect())
            }
            Measured::Link(link) => {
                let findings = staging.publish_link(link)?;
                Ok(findings.into_iter().map(|it| it.sentence).collect())
            }
        }
    }
}

/// Which parts a run of the job consists of, each with a journal of its own; a link's measurement has none.
pub(super) fn parts(spec: &JobSpec) -> impl Iterator<Item = CampaignPart> {
    let kind = spec.kind();
    let is_profile = kind == RunKind::Profile;
    let times = spec.measure.settings();
    let is_asked_for = move |part: &CampaignPart| match part {
        CampaignPart::Times => is_profile,
        CampaignPart::Energy => is_profile && times.energy.is_some(),
        CampaignPart::Steady => is_profile && times.steady.is_some(),
        CampaignPart::Accuracy => is_profile && spec.accuracy.is_some(),
        CampaignPart::Video => kind == RunKind::Video,
        CampaignPart::Tensors => false,
    };
    CampaignPart::ALL.into_iter().filter(is_asked_for)
}

/// The lab's copies of what a run is about.
pub(super) struct RunFiles {
    pub(super) model: ModelFile,
    /// Of a job that asks for accuracy or for frames.
    set: Option<SetFile>,
    /// What was read once may be read again when the run goes on.
    _in_use: InUse,
}

impl RunFiles {
    /// Those of the model of place `model` in `spec`, which are `in_use`.
    pub(super) fn of(
        library: &Library,
        spec: &JobSpec,
        model: usize,
        in_use: InUse,
    ) -> Result<RunFiles, LibraryError> {
        let model = library.model(&spec.models[model])?;
        let set = spec.sets().next().map(|(_, sha256)| library.set(sha256));
        Ok(RunFiles {
            model,
            set: set.transpose()?,
            _in_use: in_use,
        })
    }

    /// Measures what `spec` asks for, on a device that was found to be so `fit`; `target` is where it will be published.
    pub(super) async fn measure(
        &self,
        spec: &JobSpec,
        target: &Path,
        fit: Option<Fitness>,
        device: &OpenDevice,
        keeper: &mut Keeper<'_>,
    ) -> Result<Measured, CampaignError> {
        let model = &self.model;
        if let Some((video, set)) = spec.video.as_ref().zip(self.set.as_ref()) {
            let settings = &video.settings();
            let campaign = VideoCampaign {
                model,
                set,
                settings,
            };
            let mut document = campaign.measure(device, keeper).await?;
            document.header.provenance.fitness = fit;
            return Ok(Measured::Video(Box::new(document)));
        }
        let accuracy = spec.accuracy.as_ref().zip(self.set.as_ref());
        let campaign = Campaign {
            times: spec.measure.settings(),
            accuracy: accuracy.map(|(of, set)| CampaignAccuracy {
                set,
                settings: of.settings(),
            }),
            target: target.to_owned(),
            replace: true,
            // It is signed when it is published, by whoever does that.
            signing_key: None,
            fitness: fit,
            model,
        };
        let profile = campaign.measure(device, keeper).await?;
        Ok(Measured::Profile(Box::new(profile)))
    }
}
