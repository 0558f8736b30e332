//! `--refine`: placements that may change a plan are measured, until none may or enough were.

use layerlab_planners::measured_rows::MeasuredRow;
use layerlab_planners::refine::{DoubtfulPlacement, Doubts, best_measured, doubts};
use layerlab_planners::{Algorithm, Goal, Outcome, plan};
use layerlab_profiles::Placement;

use super::learnt::{Input, Learnt};
use super::verify::OnDevice;
use crate::evaluate;
use crate::exit::{Code, ExitWith, Failure};
use layerlab_lab::text_table::table;

/// Placements that are measured before the losses are learnt again: what they show tells where to look next, and learning
/// takes a second or two.
const PER_ROUND: usize = 4;

#[derive(clap::Args)]
pub(super) struct RefineArgs {
    /// With --verify and --set: first measure the accuracy of up to so many placements that may change the plan, until none
    /// may; --rows keeps them
    #[arg(long, value_name = "COUNT", requires_all = ["verify", "set"],
        value_parser = clap::value_parser!(u64).range(1..))]
    refine: Option<u64>,
}

impl RefineArgs {
    /// How many placements may be measured, if the plan is to be refined.
    pub(super) fn most(&self) -> Option<usize> {
        self.refine.map(|most| most as usize)
    }

    /// Refuses algorithms whose plans measuring does not make sure: they overlook what others find.
    pub(super) fn refuse_unless_sure(&self, algorithm: Algorithm) -> Result<(), Failure> {
        if self.refine.is_none() || algorithm == Algorithm::Mlmp {
            return Ok(());
        }
        let message = format!(
            "--refine is for the algorithm {}; {algorithm} may overlook what measuring shows",
            Algorithm::Mlmp
        );
        Err(Failure::new(Code::Usage, anyhow::anyhow!(message)))
    }
}

/// What refining came to.
pub(super) struct Refinement {
    most: usize,
    /// What was measured, in this order, with what had been predicted.
    measured: Vec<(DoubtfulPlacement, MeasuredRow)>,
    /// What may still change the plan; nothing where there is no plan.
    left: Option<Doubts>,
}

/// Plans, measures what may change the plan, learns from it and plans again, until the plan is sure or `most` placements were
/// measured.
pub(super) async fn refine(
    input: &Input,
    mut learnt: Learnt,
    goal: Goal,
    device: &OnDevice,
    most: usize,
) -> Result<(Learnt, Refinement, Outcome), Failure> {
    let mut refinement = Refinement {
        most,
        measured: Vec::new(),
        left: None,
    };
    loop {
        let outcome = plan(&learnt.problem, goal, Algorithm::Mlmp).exit_with(Code::Input)?;
        let Some(plan) = outcome.plan() else {
            return Ok((learnt, refinement, outcome));
        };
        let more = PER_ROUND.min(most - refinement.measured.len());
        let found = doubts(&learnt.problem, plan, more.max(1));
        if found.count == 0 || more == 0 {
            refinement.left = Some(found);
            // What is only predicted to be better may be worse than what was measured.
            let measured = best_measured(&learnt.problem, goal);
            let outcome = measured.map_or(outcome, |plan| Outcome::Planned(Box::new(plan)));
            return Ok((learnt, refinement, outcome));
        }
        let measured = measure(device, &learnt, found.placements).await?;
        let rows: Vec<MeasuredRow> = measured.1.iter().map(|(_, row)| row.clone()).collect();
        let mut known = learnt.rows.clone();
        known.add(measured.0, rows);
        input.keep_rows(&known)?;
        refinement.measured.extend(measured.1);
        learnt = input.learn_again(learnt, known)?;
    }
}

type MeasuredRun = (
    layerlab_profiles::document::Provenance,
    Vec<(DoubtfulPlacement, MeasuredRow)>,
);

/// Measures these placements' accuracy by the images that the profile's were measured by.
async fn measure(
    device: &OnDevice,
    learnt: &Learnt,
    chosen: Vec<DoubtfulPlacement>,
) -> Result<MeasuredRun, Failure> {
    let placements: Vec<Placement> = chosen.iter().map(|one| one.placement.clone()).collect();
    let evaluated = device.evaluate(placements, learnt).await?;
    let rows = evaluate::rows(&evaluated)?;
    let provenance = evaluated.evaluation.provenance;
    let provenance = provenance
        .ok_or_else(|| anyhow::anyhow!("the evaluation does not say which run it was"))
        .exit_with(Code::Internal)?;
    let with_row = |one: DoubtfulPlacement| {
        let row = rows.iter().find(|row| row.combination == one.placement)?;
        let row = MeasuredRow {
            combination: row.combination.clone(),
            loss: row.loss,
            loss_ci95: row.loss_ci95,
            run: provenance.run.clone(),
        };
        Some((one, row))
    };
    let measured: Option<Vec<_>> = chosen.into_iter().map(with_row).collect();
    let measured = measured
        .ok_or_else(|| anyhow::anyhow!("the evaluation lacks a placement that it was asked for"))
        .exit_with(Code::Internal)?;
    Ok((provenance, measured))
}

/// What was measured, and whether the plan is sure.
pub(super) fn describe(
    refinement: &Refinement,
    outcome: &Outcome,
    input: &Input,
    learnt: &Learnt,
) -> String {
    let Refinement {
        most,
        measured,
        left,
    } = refinement;
    let mut parts = Vec::new();
    if !measured.is_empty() {
        let rows = measured.iter().map(|(before, row)| {
            let accuracy = learnt.problem.baseline() - row.loss;
            vec![
                row.combination.to_string(),
                before.time.to_string(),
                predicted(before),
                format!("{accuracy:.4}"),
            ]
        });
        let heads = ["measured anew", "time", "predicted", "measured"];
        parts.push(table(&heads, &[1, 2, 3], rows) + "\n");
    }
    let count = measured.len();
    let Some(left) = left else {
        return parts.join("\n");
    };
    let confidence = 100.0 * left.confidence.share();
    let looked_at = match left.is_every_placement {
        true => format!("of all {} placements that are fast enough", left.considered),
        false => format!(
            "of {} placements that are fast enough and at most two moves from the front or a measured one",
            left.considered
        ),
    };
    parts.push(match left.placements.first() {
        None => format!(
            "Sure (placements measured: {count}): {looked_at}, none that was not measured is better than the plan, each with a \
             confidence of {confidence} %."
        ),
        Some(first) => format!(
            "Not sure (placements measured: {count} of {most}): {looked_at}, {} that were not measured may be better \
             than {}, first {} (predicted {}).",
            left.count,
            match outcome.plan().is_some_and(|plan| plan.accuracy().is_measured) {
                true => "the plan, which is the best that was measured",
                false => "the plan",
            },
            first.placement,
            predicted(first)
        ),
    });
    parts.extend(input.where_rows_are(count));
    parts.join("\n")
}

fn predicted(one: &DoubtfulPlacement) -> String {
    let error = one
        .error
        .map_or_else(String::new, |error| format!(" ± {error:.4}"));
    format!("{:.4}{error}", one.predicted)
}
