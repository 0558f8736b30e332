//! Measuring what is in doubt: the plan gets better, keeps what it says, and ends up sure.

use crate::planted;

use layerlab_planners::refine::{best_measured, doubts};
use layerlab_planners::regress::{Grid, Kind};
use layerlab_planners::sweep::time_limits;
use layerlab_planners::{
    AccuracyModel, AccuracyRow, AccuracyTable, Algorithm, Confidence, Goal, Outcome, Plan, Problem,
    Set, plan,
};
use layerlab_profiles::Placement;
use planted::{BASELINE, Planted};
use rayon::prelude::*;

const LAYERS: usize = 22;

/// What is known of a network while it is refined.
struct Known<'a> {
    planted: &'a Planted,
    table: AccuracyTable,
}

impl Known<'_> {
    /// The network with the references and the first `train` of its rows to train on.
    fn of(planted: &Planted, train: usize) -> Known<'_> {
        let mut left = train;
        let rows = planted.table.rows().iter().filter(|row| match row.set {
            Set::Train => {
                let is_taken = left > 0;
                left = left.saturating_sub(1);
                is_taken
            }
            Set::Test => false,
            Set::Reference => true,
        });
        let rows: Vec<AccuracyRow> = rows.cloned().collect();
        let table = AccuracyTable::new(planted.layers.len(), BASELINE, rows);
        Known {
            planted,
            table: table.expect("all single layers are there"),
        }
    }

    fn problem(&self, confidence: Option<Confidence>) -> Problem {
        let grid = Grid {
            kinds: vec![Kind::Ridge],
            ..Grid::default()
        };
        let Planted { layers, .. } = self.planted;
        let model = AccuracyModel::train(layers, &self.table, &grid).expect("trains");
        let problem = Problem::new(layers, self.planted.times(), &self.table, Box::new(model));
        problem.expect("of one model").with_confidence(confidence)
    }

    /// Measures a placement, as the network really answers.
    fn measure(&mut self, placement: &Placement) {
        let loss = self.planted.loss(placement);
        let half_width = 1.96 * (loss.abs() / 500.0).sqrt();
        let row = AccuracyRow {
            combination: placement.clone(),
            set: Set::Train,
            loss,
            loss_ci95: Some((loss - 0.8 * half_width, loss + half_width)),
        };
        let more = self.table.clone().with_more(vec![row]);
        self.table = more.expect("it was not measured before");
    }

    /// Plans, measures what is in doubt, four at a time, and plans again; the plan, how many were measured, and whether the
    /// plan is sure.
    fn refine(
        &mut self,
        goal: Goal,
        confidence: Option<Confidence>,
        most: usize,
    ) -> (Plan, usize, bool) {
        let mut measured = 0;
        loop {
            let problem = self.problem(confidence);
            let plan = planned(&problem, goal);
            let more = 4.min(most - measured);
            let found = doubts(&problem, &plan, more);
            if found.count == 0 || more == 0 {
                let plan = best_measured(&problem, goal).unwrap_or(plan);
                return (plan, measured, found.count == 0);
            }
            for one in &found.placements {
                self.measure(&one.placement);
                measured += 1;
            }
        }
    }
}

fn planned(problem: &Problem, goal: Goal) -> Plan {
    match plan(problem, goal, Algorithm::Mlmp).expect("a sensible goal") {
        Outcome::Planned(plan) => *plan,
        Outcome::Infeasible(why) => panic!("{why}"),
    }
}

/// What the plan is really worth.
fn truth(planted: &Planted, plan: &Plan) -> f64 {
    BASELINE - planted.loss(plan.combination())
}

#[test]
#[ignore = "takes half a minute: make slow-test"]
fn twenty_placements_measured_where_it_matters_reach_the_plan_of_three_hundred() {
    const NETWORKS: u64 = 24;
    let of_network = |seed: u64| -> [f64; 3] {
        let planted = Planted::with_rows(LAYERS, seed, 360);
        let few = Known::of(&planted, 100).problem(None);
        let goal = time_limits(&few, 6)[2];
        let many = planned(&Known::of(&planted, 300).problem(None), goal);
        let before = planned(&few, goal);
        let (refined, measured, _) = Known::of(&planted, 100).refine(goal, None, 20);
        assert!(measured <= 20);
        [&before, &refined, &many].map(|plan| truth(&planted, plan))
    };
    let found: Vec<[f64; 3]> = (0..NETWORKS).into_par_iter().map(of_network).collect();
    let mean = |place: usize| found.iter().map(|one| one[place]).sum::<f64>() / NETWORKS as f64;
    let reached = found.iter().filter(|one| one[1] >= one[2] - 0.002).count();
    let said = format!(
        "of 100: {:.4}, refined: {:.4}, of 300: {:.4}; {reached} of {NETWORKS} reach it",
        mean(0),
        mean(1),
        mean(2)
    );
    assert!(mean(1) >= mean(2), "{said}");
    assert!(mean(1) > mean(0), "{said}");
    assert!(reached >= 22, "{said}");
}

/// A plan that is sure was measured, and no placement beside the front that was not is really better, in most cases.
#[test]
fn a_plan_that_is_sure_is_measured_and_nothing_near_it_is_much_better() {
    let mut sure = 0;
    for seed in 0..10 {
        let planted = Planted::with_rows(12, seed, 120);
        let mut known = Known::of(&planted, 100);
        let goal = time_limits(&known.problem(None), 6)[2];
        let (plan, _, is_sure) = known.refine(goal, None, 200);
        assert!(is_sure, "200 of 4,096 placements are enough, {seed}");
        assert!(plan.accuracy().is_measured);
        // All placements, by what they are really worth.
        let best = planned(&planted.known(), goal);
        let lost = truth(&planted, &best) - truth(&planted, &plan);
        sure += usize::from(lost <= 0.002);
    }
    assert!(sure >= 9, "{sure} of 10 are within 0.002 of the optimum");
}

#[test]
fn the_plan_itself_is_measured_first_and_what_was_measured_is_in_no_doubt() {
    let planted = Planted::with_rows(LAYERS, 3, 120);
    let known = Known::of(&planted, 100);
    for confidence in [None, Some(Confidence::USUAL)] {
        let problem = known.problem(confidence);
        for goal in time_limits(&problem, 8)
            .into_iter()
            .chain([0.5, 0.7, 0.78].map(|at_least| Goal::MinTime { at_least }))
        {
            let plan = planned(&problem, goal);
            let found = doubts(&problem, &plan, usize::MAX);
            let of_table = |placement: &Placement| {
                let rows = known.table.rows().iter();
                rows.clone().any(|row| row.combination == *placement)
            };
            assert!(found.placements.iter().all(|one| !of_table(&one.placement)));
            assert!(found.considered > found.placements.len());
            if !plan.accuracy().is_measured {
                assert_eq!(found.placements[0].placement, *plan.combination(), "{goal}");
            }
            for one in &found.placements {
                match goal {
                    Goal::MaxAccuracy { within } => assert!(one.time <= within.signed()),
                    Goal::MinTime { .. } => assert!(one.time <= plan.time().total()),
                }
            }
        }
    }
}

#[test]
fn a_refined_plan_was_measured_and_is_never_less_accurate_than_the_first_one() {
    (0..4_u64).into_par_iter().for_each(|seed| {
        let planted = Planted::with_rows(18, seed, 120);
        let mut known = Known::of(&planted, 100);
        let first = known.problem(None);
        let goal = time_limits(&first, 6)[2];
        let before = planned(&first, goal);
        // Most of these end in the midst of it, where the plan that learning gives was not measured.
        for most in [1, 3] {
            let (refined, measured, _) = known.refine(goal, None, most);
            assert!(measured <= most);
            assert!(refined.accuracy().is_measured);
            assert!(refined.keeps_limit());
            let gained = truth(&planted, &refined) - truth(&planted, &before);
            assert!(gained >= 0.0, "{seed}, {most}: {gained}");
        }
    });
}

/// The requirement is kept by what is measured, and the plan does not get slower by measuring.
fn assert_requirements_are_kept(networks: u64) {
    let of_network = |seed: u64| -> (f64, f64) {
        let planted = Planted::with_rows(LAYERS, seed, 120);
        let confidence = Some(Confidence::USUAL);
        let goal = Goal::MinTime {
            at_least: 0.9 * BASELINE,
        };
        let mut known = Known::of(&planted, 100);
        let before = planned(&known.problem(confidence), goal);
        let (refined, ..) = known.refine(goal, confidence, 20);
        assert!(refined.keeps_limit());
        assert!(truth(&planted, &refined) >= 0.9 * BASELINE - 0.02, "{seed}");
        let nanos = |plan: &Plan| plan.time().total().as_nanos() as f64;
        (nanos(&before), nanos(&refined))
    };
    let times: Vec<(f64, f64)> = (0..networks).into_par_iter().map(of_network).collect();
    let shares = times.iter().map(|(before, after)| after / before);
    let faster = shares.sum::<f64>() / networks as f64;
    assert!(faster < 1.0, "{faster}");
}

#[test]
fn a_requirement_is_kept_by_a_refined_plan() {
    assert_requirements_are_kept(4);
}

#[test]
#[ignore = "takes half a minute: make slow-test"]
fn a_requirement_is_kept_by_refined_plans_of_twenty_networks() {
    assert_requirements_are_kept(20);
}

#[test]
fn a_placement_is_not_measured_twice() {
    let planted = Planted::with_rows(8, 1, 60);
    let known = Known::of(&planted, 50);
    let row = known.table.rows()[0].clone();
    let error = known.table.clone().with_more(vec![row]).expect_err("twice");
    assert!(error.to_string().contains("was measured twice"), "{error}");
}
