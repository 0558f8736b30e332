//! Chains of 37 layers, as long as VGG16, against an integer program of arc flows: one unit of flow goes from the phone
//! before the first layer to the phone after the last, along groups and across the link. It replaces the products of
//! jointdnn Eq. 6. `tests/split-programs` has another solver do the same, and networks with skips.

use layerlab_planners::edge::{
    Direction, Quantity, Side, SplitAlgorithm, SplitCost, SplitGoal, SplitLimits, split,
};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

use crate::goals::goals;
use crate::planted::Planted;

const LAYERS: u32 = 37;

/// The place of the state after a layer, with its output on a side.
fn node(layer: u32, side: Side) -> usize {
    2 * layer as usize + side as usize
}

/// An arc, from a node to another, in ms, mJ and ms.
type Arc = (usize, usize, [f64; 3]);

/// Groups and crossings.
fn arcs(planted: &Planted) -> Vec<Arc> {
    let mut arcs = Vec::new();
    for group in planted.network.groups() {
        let (before, last) = (group.segment.first() - 1, group.segment.last());
        if let Some(phone) = group.phone {
            let costs = [
                phone.time.as_millis_f64(),
                phone.energy.as_millijoules_f64(),
                0.0,
            ];
            arcs.push((node(before, Side::Phone), node(last, Side::Phone), costs));
        }
        if let Some(time) = group.server {
            let millis = time.as_millis_f64();
            let idle = planted.idle.over(time).as_millijoules_f64();
            arcs.push((
                node(before, Side::Server),
                node(last, Side::Server),
                [millis, idle, millis],
            ));
        }
    }
    for tensor in planted.network.tensors() {
        let sides = [
            node(tensor.producer, Side::Phone),
            node(tensor.producer, Side::Server),
        ];
        for (from, to, direction) in [
            (sides[0], sides[1], Direction::Upload),
            (sides[1], sides[0], Direction::Download),
        ] {
            let cost = planted.link.transfer(direction, tensor.bytes, planted.idle);
            let (time, energy) = cost.expect("a bandwidth");
            arcs.push((
                from,
                to,
                [time.as_millis_f64(), energy.as_millijoules_f64(), 0.0],
            ));
        }
    }
    arcs
}

fn millis(cost: u64) -> f64 {
    cost as f64 / 1e6
}

/// The least of what the goal minimises, in ms or mJ; nothing where the program is infeasible.
fn least(planted: &Planted, goal: SplitGoal) -> Option<f64> {
    let place = |quantity| {
        Quantity::ALL
            .iter()
            .position(|&one| one == quantity)
            .expect("one of them")
    };
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let arcs = arcs(planted);
    let minimised = place(goal.minimise);
    let flows = arcs
        .iter()
        .map(|arc| program.add_integer_var(arc.2[minimised], (0, 1)));
    let flows: Vec<Variable> = flows.collect();
    for at in 0..=node(LAYERS, Side::Server) {
        let terms = arcs.iter().zip(&flows).filter_map(|(arc, &flow)| match at {
            at if at == arc.0 => Some((flow, 1.0)),
            at if at == arc.1 => Some((flow, -1.0)),
            _ => None,
        });
        let terms: Vec<(Variable, f64)> = terms.collect();
        let supply = match at {
            at if at == node(0, Side::Phone) => 1.0,
            at if at == node(LAYERS, Side::Phone) => -1.0,
            _ => 0.0,
        };
        program.add_constraint(terms.as_slice(), ComparisonOp::Eq, supply);
    }
    for (quantity, limit) in goal.limits.limited() {
        let terms = arcs
            .iter()
            .zip(&flows)
            .map(|(arc, &flow)| (flow, arc.2[place(quantity)]));
        let terms: Vec<(Variable, f64)> = terms.collect();
        program.add_constraint(terms.as_slice(), ComparisonOp::Le, millis(limit));
    }
    let outcome = program.solve().ok()?;
    Some(outcome.into_solution().ok()?.objective())
}

/// Compares what plans and integer programs cost, for eight goals each.
fn assert_same_costs(seeds: std::ops::Range<u64>) {
    let instances = (seeds.end - seeds.start) as usize;
    let (mut bound, mut impossible) = (0, 0);
    for seed in seeds {
        let planted = Planted::chain(LAYERS, seed);
        let problem = planted.problem();
        let cost = |goal| -> Option<SplitCost> {
            let outcome = split(&problem, goal, SplitAlgorithm::Joint).expect("sensible");
            planted.checked(&outcome).map(|plan| plan.cost())
        };
        for goal in goals(seed, cost) {
            let ours = cost(goal).map(|cost| cost.of(goal.minimise));
            let theirs = least(&planted, goal);
            // Integer solvers stop within a gap.
            let is_same = match (ours.map(millis), theirs) {
                (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-6 * theirs.max(1.0),
                (ours, theirs) => ours == theirs,
            };
            assert!(is_same, "seed {seed}, {goal:?}: {ours:?}, {theirs:?}");
            let limits = SplitLimits::default();
            let free = cost(SplitGoal { limits, ..goal }).map(|cost| cost.of(goal.minimise));
            impossible += usize::from(ours.is_none());
            bound += usize::from(ours.is_some() && ours != free);
        }
    }
    assert!(
        bound >= instances,
        "limits that change the optimum: {bound}"
    );
    assert_eq!(impossible, instances);
}

#[test]
fn chains_of_37_layers_cost_what_the_integer_program_says() {
    assert_same_costs(0..20);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn two_hundred_chains_of_37_layers_cost_what_the_integer_program_says() {
    assert_same_costs(0..200);
}
