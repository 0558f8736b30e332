//! What the commands that run campaigns have in common.

use std::path::PathBuf;

use layerlab_campaign::orders::PlannerError;
use layerlab_campaign::publish::PublishError;
use layerlab_campaign::{CampaignError, RunError};
use layerlab_farm::LinkError;
use layerlab_farm::adb::AdbError;
use layerlab_profiles::document::BuildError;
use layerlab_profiles::energy::EnergyError;

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
        | CampaignError::NoMeter
        | CampaignError::Processor(_)
        | CampaignError::Frames(_)
        | CampaignError::Tensors(_)
        | CampaignError::Run(RunError::Planner(
            PlannerError::BudgetTooSmall { .. }
            | PlannerError::NoPass { .. }
            | PlannerError::NeedsWhole { .. }
            | PlannerError::RunTooLarge { .. }
            | PlannerError::NoBaseline(_)
            | PlannerError::NothingElsewhere(_),
        )) => Code::Input,
        CampaignError::Run(RunError::Link(
            LinkError::Refused { .. } | LinkError::Adb(AdbError::AgentRefused { .. }),
        )) => Code::Input,
        CampaignError::Build(BuildError::States { .. })
        | CampaignError::Energy(EnergyError::Unseen { .. }) => Code::Device,
        CampaignError::Run(RunError::Planner(PlannerError::Observations { .. }))
        | CampaignError::Probe(_)
        | CampaignError::Journal(_)
        | CampaignError::Build(_)
        | CampaignError::Energy(_)
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
        PublishError::Unfit { .. } | PublishError::UnfitDocument { .. } => Code::Check,
        _ => Code::Output,
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Segment;
    use layerlab_profiles::document::Unsupported;

    use super::*;

    fn code_of(error: PlannerError) -> Code {
        campaign_failure(CampaignError::Run(RunError::Planner(error))).code
    }

    #[test]
    fn processors_that_cannot_run_the_model_are_wrong_input() {
        let (processor, segment) = ("npu".to_owned(), Segment::single(1));
        let reason = "it has no Elu".to_owned();
        let lacking = Unsupported {
            processor: processor.clone(),
            segment,
            reason: reason.clone(),
            needed: None,
        };
        let no_pass = PlannerError::NoPass {
            processor: processor.clone(),
            segment,
            reason,
        };
        assert_eq!(code_of(no_pass), Code::Input);
        assert_eq!(code_of(PlannerError::NoBaseline(lacking)), Code::Input);
        let nothing = PlannerError::NothingElsewhere(processor);
        assert_eq!(code_of(nothing), Code::Input);
    }

    #[test]
    fn a_processor_in_two_states_is_the_device_s_failure() {
        let states = BuildError::States {
            processor: "npu".to_owned(),
            usual: 2,
            other: 2,
            longer_percent: "50".to_owned(),
            how: "more",
        };
        let failure = campaign_failure(CampaignError::Build(states));
        assert_eq!(failure.code, Code::Device);
    }
}
