//! What the commands that run campaigns have in common.

use std::path::PathBuf;

use layerlab_campaign::orders::PlannerError;
use layerlab_campaign::publish::PublishError;
use layerlab_campaign::{CampaignError, RunError};
use layerlab_farm::LinkError;
use layerlab_farm::adb::AdbError;

use super::exit::{Code, ExitWith, Failure};

/// The agent's program: the one named, or the one beside this program.
pub(super) fn agent_program(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(program) = named {
        return Ok(program);
    }
    let this = std::env::current_exe().exit_with(Code::Internal)?;
    Ok(this.with_file_name("layerlab-agent"))
}

/// A campaign that failed, with the exit code that says at whose door.
pub(super) fn campaign_failure(error: CampaignError) -> Failure {
    let code = match &error {
        CampaignError::Publish(error) => publish_code(error),
        CampaignError::Plan(_)
        | CampaignError::Processor(_)
        | CampaignError::Run(RunError::Planner(PlannerError::BudgetTooSmall { .. })) => Code::Input,
        CampaignError::Run(RunError::Link(
            LinkError::Refused { .. } | LinkError::Adb(AdbError::AgentRefused { .. }),
        )) => Code::Input,
        CampaignError::Run(RunError::Planner(_))
        | CampaignError::Probe(_)
        | CampaignError::Journal(_)
        | CampaignError::Build(_)
        | CampaignError::Evaluation(_) => Code::Internal,
        CampaignError::Run(_) => Code::Device,
    };
    Failure::new(code, error)
}

/// A result that could not be published.
pub(super) fn publish_failure(error: PublishError) -> Failure {
    Failure::new(publish_code(&error), error)
}

fn publish_code(error: &PublishError) -> Code {
    match error {
        PublishError::Unfit { .. } => Code::Check,
        _ => Code::Output,
    }
}
