//! What makes the plans of one network over one link: JointDNN's planner, or where an accuracy is required the one that also
//! chooses among the phone's processors.

use anyhow::anyhow;
use layerlab_planners::edge::{
    AccurateOutcome, AccurateSplit, Link, MeasuredNetwork, PlacedProblem, Power, Quantity,
    SplitAlgorithm, SplitGoal, SplitLimits, SplitOutcome, SplitPlan, SplitProblem, check_split,
    split, split_accurately,
};

use super::accuracy::{LimitedAccuracy, RequiredAccuracy};
use crate::exit::{Code, ExitWith, Failure};

pub(super) struct Planner<'a> {
    network: &'a MeasuredNetwork,
    link: &'a Link,
    problem: Problem<'a>,
}

enum Problem<'a> {
    /// Each group is on whichever processor runs it soonest.
    Soonest(SplitProblem),
    /// An accuracy is to be kept.
    Accurate(PlacedProblem, &'a LimitedAccuracy<'a>),
}

/// A plan, and the network of what it runs.
pub(super) struct Answer {
    pub(super) plan: SplitPlan,
    pub(super) network: MeasuredNetwork,
    /// Where one is required.
    pub(super) accurate: Option<AccurateSplit>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        network: &'a MeasuredNetwork,
        link: &'a Link,
        limited: Option<&'a LimitedAccuracy<'a>>,
    ) -> Result<Planner<'a>, Failure> {
        // Energies are those above what an idle phone draws.
        let idle = Power::ZERO;
        let problem = match limited {
            None => {
                let problem = SplitProblem::new(network.network().clone(), link, idle);
                Problem::Soonest(problem.exit_with(Code::Input)?)
            }
            Some(limited) => {
                let mut others = network
                    .by_digit(&limited.required.placed_on)
                    .exit_with(Code::Input)?;
                let reference = others
                    .remove(&0)
                    .ok_or_else(|| anyhow!("no network has the digit 0; please report this"))
                    .exit_with(Code::Internal)?;
                let problem = PlacedProblem::new(reference, others, link, idle);
                Problem::Accurate(problem.exit_with(Code::Input)?, limited)
            }
        };
        Ok(Planner {
            network,
            link,
            problem,
        })
    }

    /// The plan, after it was added up again; or why there is none.
    pub(super) fn answer(
        &self,
        goal: SplitGoal,
        algorithm: SplitAlgorithm,
    ) -> Result<Result<Answer, String>, Failure> {
        let answer = match &self.problem {
            Problem::Soonest(problem) => {
                match split(problem, goal, algorithm).exit_with(Code::Input)? {
                    SplitOutcome::Planned(plan) => Answer {
                        plan,
                        network: self.network.clone(),
                        accurate: None,
                    },
                    SplitOutcome::Infeasible(why) => return Ok(Err(why.to_string())),
                }
            }
            Problem::Accurate(problem, limited) => {
                let outcome = split_accurately(problem, &limited.limit, goal, algorithm);
                match outcome.exit_with(Code::Input)? {
                    AccurateOutcome::Planned(split) => {
                        let placed_on = &limited.required.placed_on;
                        let network = self.network.of_placement(placed_on, split.placement());
                        Answer {
                            plan: split.plan().clone(),
                            network: network.exit_with(Code::Internal)?,
                            accurate: Some(*split),
                        }
                    }
                    AccurateOutcome::Infeasible(why) => return Ok(Err(why.to_string())),
                    AccurateOutcome::TooInaccurate(why) => return Ok(Err(why.to_string())),
                }
            }
        };
        self.check(&answer)?;
        Ok(Ok(answer))
    }

    /// The plan by an algorithm that costs least, without other limits than that of accuracy; nothing where there is none.
    pub(super) fn least(
        &self,
        minimise: Quantity,
        algorithm: SplitAlgorithm,
    ) -> Result<Option<Answer>, Failure> {
        let goal = SplitGoal {
            minimise,
            limits: SplitLimits::default(),
        };
        Ok(self.answer(goal, algorithm)?.ok())
    }

    /// Refuses a plan that does not add up.
    fn check(&self, answer: &Answer) -> Result<(), Failure> {
        let refuse = |fault: &dyn std::fmt::Display| {
            let error = anyhow!("the plan does not add up: {fault}; please report this");
            Err(Failure::new(Code::Internal, error))
        };
        let network = answer.network.network();
        if let Some(fault) = check_split(&answer.plan, network, self.link, Power::ZERO).first() {
            return refuse(fault);
        }
        let fault = match (&self.problem, &answer.accurate) {
            (Problem::Accurate(_, limited), Some(split)) => {
                let required: &RequiredAccuracy = limited.required;
                required.check(split, &answer.network).into_iter().next()
            }
            _ => None,
        };
        fault.map_or(Ok(()), |fault| refuse(&fault))
    }
}
