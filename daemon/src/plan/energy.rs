//! `layerlab plan min-energy`: which placement draws least of those that keep a time or an accuracy (docs/method.md §13).

use std::path::PathBuf;

use layerlab_planners::export::energy_plan_json;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::{
    EnergyLimit, EnergyPlan, Goal, Problem, TimeTable, least_energy, least_energy_alone,
};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Placement, SignedNanos};

use super::alone::about_accuracy;
use super::beside::Predicted;
use super::describe::{UNKNOWN, planned_from, strip, surely};
use super::learnt::{Input, PlanSubject, TimesAlone};
use super::verify::VerifyArgs;
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::show::drawn;

#[derive(clap::Args)]
#[group(id = "limit", multiple = false, args = ["time", "accuracy"])]
pub(crate) struct MinEnergy {
    /// The time that one inference may take, such as 550ms or 1.2s
    #[arg(long, value_name = "DURATION")]
    time: Option<humantime::Duration>,
    /// The accuracy that is required, a fraction such as 0.6
    #[arg(long, value_name = "FRACTION")]
    accuracy: Option<f64>,
    #[command(flatten)]
    input: Input,
    /// Print JSON
    #[arg(long, conflicts_with = "verify")]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(super) async fn run(args: &MinEnergy, agent: Option<PathBuf>) -> Result<(), Failure> {
    let within = args.time.map(|time| std::time::Duration::from(time).into());
    let limit = match (within, args.accuracy) {
        (Some(within), _) => EnergyLimit::Time { within },
        (None, Some(at_least)) => EnergyLimit::Accuracy { at_least },
        (None, None) => EnergyLimit::Unlimited,
    };
    if let Some(alone) = args.input.times_alone()? {
        args.refuse_accuracy(&alone)?;
        let subject = alone.subject();
        let energies = subject.energies()?;
        let planned = least_energy_alone(&alone.times, &energies, within, subject.confidence);
        let planned = planned.exit_with(Code::Input)?;
        return tell(args, limit, planned, subject, &energies, agent).await;
    }
    let refuse = |_, baseline| Ok(limit.refuse_unless_sensible(baseline)?);
    let learnt = args.input.learn(refuse, false)?;
    let energies = learnt.subject().energies()?;
    let planned = least_energy(&learnt.problem, &energies, limit).exit_with(Code::Input)?;
    tell(args, limit, planned, learnt.subject(), &energies, agent).await
}

impl MinEnergy {
    /// Refuses what needs the accuracy that the profile does not have.
    fn refuse_accuracy(&self, alone: &TimesAlone) -> Result<(), Failure> {
        if self.accuracy.is_some() {
            return Err(alone.missing.clone()).exit_with(Code::Input);
        }
        match self.input.rows_option() {
            Some(option) => Err(about_accuracy(option)),
            None => Ok(()),
        }
    }
}

/// Prints the plan, and runs it if a device is named.
async fn tell(
    args: &MinEnergy,
    limit: EnergyLimit,
    planned: Option<EnergyPlan>,
    subject: PlanSubject<'_>,
    energies: &TimeTable,
    agent: Option<PathBuf>,
) -> Result<(), Failure> {
    if args.json {
        let confidence = subject.confidence;
        let json = energy_plan_json(subject.source, limit, confidence, planned.as_ref());
        output::print(json.exit_with(Code::Internal)?.trim_end())?;
    }
    let Some(plan) = planned else {
        let message =
            format!("min-energy has no plan {limit}: no placement is fast enough; allow more time");
        return Err(Failure::new(Code::NoPlan, anyhow::anyhow!(message)));
    };
    if args.json {
        return Ok(());
    }
    let energy = args.verify.predicted_energy(&plan.combination, subject)?;
    output::print(describe(&plan, subject, energies))?;
    let predicted = Predicted::from(&plan).with_energy(energy);
    let verifying = (args.verify).measure_beside(predicted, &plan.combination, subject, agent);
    verifying.await
}

/// The placements that draw least within the limits of these goals.
pub(super) fn least_within(
    problem: &Problem,
    energies: &TimeTable,
    goals: &[Goal],
) -> Result<Vec<(EnergyLimit, Option<EnergyPlan>)>, Failure> {
    let limit = |goal: &Goal| match *goal {
        Goal::MaxAccuracy { within } => EnergyLimit::Time { within },
        Goal::MinTime { at_least } => EnergyLimit::Accuracy { at_least },
    };
    let least = |limit| Ok((limit, least_energy(problem, energies, limit)?));
    let all: Result<_, layerlab_planners::least_energy::EnergyPlanError> =
        goals.iter().map(limit).map(least).collect();
    all.exit_with(Code::Input)
}

fn describe(plan: &EnergyPlan, subject: PlanSubject<'_>, energies: &TimeTable) -> String {
    let in_nj = SignedNanos::from_nanos;
    let energy = Estimate {
        value: in_nj(plan.energy_nj),
        ci95: plan
            .energy_ci95_nj
            .map(|(low, high)| (in_nj(low), in_nj(high))),
    };
    let names = subject.processors;
    let interval = plan
        .time_ci95
        .map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    let mut text = format!(
        "{}\n{}\n\nenergy    {}, above what the idle device draws\n",
        strip(&plan.combination, names),
        plan.combination,
        drawn(energy),
    );
    for (place, name) in (0..).zip(names) {
        let all = Placement::all_on(place, subject.profile.layers.len());
        if let Ok(all) = PackedPlacement::of(&all)
            && energies.allows(&all)
        {
            let value = energies.time(&all).total();
            let all = drawn(Estimate { value, ci95: None });
            text.push_str(&format!("          {all} with all layers on {name}\n"));
        }
    }
    let accuracy = match &plan.accuracy {
        Some(accuracy) => format!("{:.4}{}", accuracy.value, surely(accuracy)),
        None => UNKNOWN.to_owned(),
    };
    text.push_str(&format!(
        "time      {}{interval}\naccuracy  {accuracy}\n",
        plan.time
    ));
    if !plan.keeps_limit {
        let confidence = subject.confidence;
        let percent = confidence.map_or(0.0, |one| one.share() * 100.0);
        text.push_str(&format!(
            "\n- no placement is known to keep the limit with a confidence of {percent} %: this one keeps it by estimates"
        ));
    }
    if !plan.is_optimum {
        text.push_str(
            "\n- there are too many placements to try them all: another one may draw less",
        );
    }
    text.push_str(&planned_from(subject));
    text
}
