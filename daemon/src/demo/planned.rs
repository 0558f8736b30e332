//! A plan under a time limit from the demo's own profile, and what running it gave.

use std::path::Path;

use layerlab_campaign::{ModelFile, SetFile};
use layerlab_farm::Link;
use layerlab_planners::export::{VerifiedPlacement, VerifiedPlacements};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::sweep::{KeepingAlgorithm, accuracy_limits, sweep_keeping, time_limits};
use layerlab_planners::{Algorithm, Goal, Outcome, Plan, plan};
use layerlab_profiles::{Nanos, Placement};

use crate::exit::{Code, ExitWith, Failure};
use crate::plan::learnt::{Input, Learnt};
use crate::plan::{on_one_processor, verify};
use crate::sweep_plot;

/// How many limits of each kind the picture shows.
const STEPS: usize = 20;

/// What was planned and found out.
pub(super) struct Planned {
    pub(super) learnt: Learnt,
    /// The time that one inference may take.
    pub(super) within: Nanos,
    pub(super) plan: Plan,
    verified: VerifiedPlacements,
}

impl Planned {
    /// Plans from the profile in a folder: the most accurate within two thirds of the time that all layers take on the CPU.
    pub(super) fn from_profile(folder: &Path) -> Result<Planned, Failure> {
        let learnt = Input::of_folder(folder.to_owned())?.learn(|_, _| Ok(()), false)?;
        let layers = learnt.profile.layers.len();
        let all_cpu = PackedPlacement::all_cpu(layers).exit_with(Code::Internal)?;
        let most = 2 * learnt.problem.time(&all_cpu).as_nanos().unsigned_abs() / 3;
        // A round number is easier to remember.
        let within = Nanos::from_micros(most / 100_000 * 100);
        let goal = Goal::MaxAccuracy { within };
        match plan(&learnt.problem, goal, Algorithm::Mlmp).exit_with(Code::Input)? {
            Outcome::Planned(plan) => Ok(Planned {
                learnt,
                within,
                plan: *plan,
                verified: VerifiedPlacements::new(),
            }),
            Outcome::Infeasible(none) => Err(Failure::new(Code::NoPlan, anyhow::anyhow!("{none}"))),
        }
    }

    /// Runs the plan on its device.
    pub(super) async fn verify<L: Link>(
        &mut self,
        link: &L,
        model: &ModelFile,
        set: &SetFile,
    ) -> Result<(), Failure> {
        let placements: Vec<Placement> = vec![self.plan.combination().clone()];
        self.verified =
            verify::run(link, model, Some(set), placements, self.learnt.subject()).await?;
        Ok(())
    }

    /// What running it gave.
    pub(super) fn measured(&self) -> Option<&VerifiedPlacement> {
        self.verified.get(self.plan.combination())
    }

    /// Time against accuracy: what can be planned, with the plan that was run.
    pub(super) fn picture(&self, title: &str) -> Result<String, Failure> {
        let problem = &self.learnt.problem;
        let mut goals = time_limits(problem, STEPS);
        // Its own limit is one of them.
        goals.push(Goal::MaxAccuracy {
            within: self.within,
        });
        goals.sort_by_key(|goal| match goal {
            Goal::MaxAccuracy { within } => *within,
            Goal::MinTime { .. } => Nanos::ZERO,
        });
        goals.extend(accuracy_limits(problem, STEPS));
        let algorithms: [KeepingAlgorithm; 1] = [(Algorithm::Mlmp, None)];
        let outcomes = sweep_keeping(problem, &goals, &algorithms).exit_with(Code::Input)?;
        let on_one = on_one_processor(&self.learnt);
        sweep_plot::svg(title, &algorithms, &outcomes, &self.verified, &on_one)
            .map_err(anyhow::Error::msg)
            .exit_with(Code::Internal)
    }
}
