//! Chains of 37 layers, as long as VGG16, against an integer program of arc flows: one unit of flow goes from the phone
//! before the first layer to the phone after the last, along groups and across the link. It replaces the products of
//! jointdnn Eq. 6.

use layerlab_planners::edge::{
    Direction, Energy, Quantity, Side, SplitAlgorithm, SplitCost, SplitGoal, SplitLimits, split,
};
use layerlab_profiles::Nanos;
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

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

#[test]
fn chains_of_37_layers_cost_what_the_integer_program_says() {
    let mut bound = 0;
    for seed in 0..6 {
        let planted = Planted::chain(LAYERS, seed);
        let problem = planted.problem();
        let cost = |goal| -> Option<SplitCost> {
            let outcome = split(&problem, goal, SplitAlgorithm::Joint).expect("sensible");
            planted.checked(&outcome).map(|plan| plan.cost())
        };
        let assert_same = |goal: SplitGoal| {
            let ours = cost(goal).map(|cost| millis(cost.of(goal.minimise)));
            let (ours, theirs) = (
                ours.expect("a plan"),
                least(&planted, goal).expect("a flow"),
            );
            // Integer solvers stop within a gap.
            assert!(
                (ours - theirs).abs() <= 1e-6 * theirs,
                "seed {seed}, {goal:?}: {ours}, {theirs}"
            );
        };
        let free = |minimise| SplitGoal {
            minimise,
            limits: SplitLimits::default(),
        };
        let (fastest, frugal) = (free(Quantity::Latency), free(Quantity::Energy));
        assert_same(fastest);
        assert_same(frugal);
        let [fast, low] = [fastest, frugal].map(|goal| cost(goal).expect("no limits"));
        let energy = fast
            .energy
            .as_nanojoules()
            .midpoint(low.energy.as_nanojoules());
        let mut limited = fastest;
        limited.limits.energy = Some(Energy::from_nanojoules(energy));
        assert_same(limited);
        let within = cost(limited).expect("the frugal split keeps it");
        bound += usize::from(within != fast);
        limited.limits.server_time = Some(within.server_time);
        let latency = within.latency.as_nanos();
        limited.limits.latency = Some(Nanos::from_nanos(latency + latency / 20));
        limited.minimise = Quantity::Energy;
        assert_same(limited);
    }
    assert!(bound >= 2, "limits that change the optimum: {bound}");
}
