//! Why a campaign gave no profile.

use layerlab_profiles::document::{BuildError, EvaluationError};
use layerlab_profiles::energy::EnergyError;

use super::drive::RunError;
use super::frame_sizes::UnfitFrames;
use super::probes::ProbeError;
use super::publish::PublishError;
use super::settings::UnfitProcessors;
use super::tensors::UnfitTensors;
use super::times_plan::TimesPlanError;
use layerlab_farm::LinkError;
use layerlab_protocol::FailureKind;

/// What keeps a follower from keeping a journal.
pub type JournalTrouble = Box<dyn std::error::Error + Send + Sync>;

/// Why a campaign gave no profile.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The device does not fit the plan.
    #[error(transparent)]
    Plan(#[from] TimesPlanError),
    /// Accuracy was to be measured of processors that the device lacks, or that are not fit for it.
    #[error(transparent)]
    Processor(#[from] UnfitProcessors),
    /// A probe cannot be made.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The device or its agent failed, or the run was left.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The journal cannot be read or kept on this host.
    #[error(transparent)]
    Journal(JournalTrouble),
    /// The samples make no profile.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The answers do not fit the profile.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// What was read of the power meter gives no energies of layers.
    #[error(transparent)]
    Energy(#[from] EnergyError),
    /// There is nothing to measure on.
    #[error("no processor of the device can run any layer, so that there is no energy to measure")]
    NoMeter,
    /// The model does not answer the frames of the set, or not on this device.
    #[error(transparent)]
    Frames(#[from] UnfitFrames),
    /// The model's tensors are not compressed over the pictures of the set, or not on this device.
    #[error(transparent)]
    Tensors(#[from] UnfitTensors),
    /// The profile cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl CampaignError {
    /// Whether the device was too hot, or too unsteady, for what was asked of it.
    pub(crate) fn is_throttled(&self) -> bool {
        let throttled = FailureKind::Throttled;
        matches!(self, CampaignError::Run(RunError::Order { kind, .. }) if *kind == throttled)
    }
}

impl From<LinkError> for CampaignError {
    fn from(error: LinkError) -> Self {
        CampaignError::Run(error.into())
    }
}
