//! Plans by time alone, where no accuracy is required: also of networks whose accuracy was not measured.

use std::path::PathBuf;

use layerlab_planners::export::time_plan_json;
use layerlab_planners::{Algorithm, Goal, fastest_plan};

use super::beside::Predicted;
use super::describe::describe_by_time;
use super::{Common, one};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;

/// The fastest placement: with its accuracy, where the profile says something of that.
pub(super) async fn min_time(args: &Common, agent: Option<PathBuf>) -> Result<(), Failure> {
    let Some(alone) = args.input.times_alone()? else {
        // No accuracy is below 0.
        let goal = Goal::MinTime { at_least: 0.0 };
        return one(args, goal, Algorithm::Fastest, agent).await;
    };
    if let Some(option) = args.about_accuracy() {
        return Err(about_accuracy(option));
    }
    let plan = fastest_plan(&alone.profile.layers, &alone.times).exit_with(Code::Input)?;
    let subject = alone.subject();
    if args.json {
        let json = time_plan_json(subject.source, &plan).exit_with(Code::Internal)?;
        return output::print(json.trim_end());
    }
    let energy = args.verify.predicted_energy(&plan.combination, subject)?;
    output::print(describe_by_time(&plan, subject))?;
    let predicted = Predicted::from(&plan).with_energy(energy);
    let verifying = (args.verify).measure_beside(predicted, &plan.combination, subject, agent);
    verifying.await
}

impl Common {
    /// An option that is given and needs the accuracy of placements.
    fn about_accuracy(&self) -> Option<&'static str> {
        let is_by_time = matches!(self.algorithm, None | Some(Algorithm::Fastest));
        let given = [
            (!is_by_time).then_some("--algorithm"),
            self.k.map(|_| "--k"),
            self.refine.most().map(|_| "--refine"),
            self.input.rows_option(),
        ];
        given.into_iter().flatten().next()
    }
}

/// That an option needs what the profile does not have.
pub(super) fn about_accuracy(option: &str) -> Failure {
    let message = format!(
        "{option} is about accuracy, of which the profile says nothing: leave it out to plan without"
    );
    Failure::new(Code::Input, anyhow::anyhow!(message))
}
