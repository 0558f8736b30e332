//! Why a campaign gave no profile.

use layerlab_profiles::document::{BuildError, EvaluationError};

use super::drive::RunError;
use super::publish::PublishError;
use super::settings::MissingProcessor;
use super::times_plan::TimesPlanError;
use layerlab_farm::LinkError;

/// What keeps a follower from keeping a journal.
pub type JournalTrouble = Box<dyn std::error::Error + Send + Sync>;

/// Why a campaign gave no profile.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The device does not fit the plan.
    #[error(transparent)]
    Plan(#[from] TimesPlanError),
    /// The device lacks a processor of which accuracy was to be measured.
    #[error(transparent)]
    Processor(#[from] MissingProcessor),
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
    /// The profile cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl From<LinkError> for CampaignError {
    fn from(error: LinkError) -> Self {
        CampaignError::Run(error.into())
    }
}
