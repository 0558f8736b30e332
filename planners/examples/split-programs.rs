//! Networks of 37 layers between a phone and a server, with what the least splits of each cost by JointDNN's planner: a line of
//! JSON for each, for `tests/split_programs.py`, which has an integer solver say the same. 200 chains and 200 networks with skips,
//! missing groups and returned weights; eight goals each. `split-programs 5` prints the first five of either.

#![expect(clippy::print_stdout, reason = "its lines are what it is for")]
#![expect(clippy::print_stderr, reason = "as is a wrong command line")]
// The tests of the planner use the rest of `planted`.
#![allow(dead_code)]

use std::process::ExitCode;

use layerlab_planners::edge::{Quantity, SplitAlgorithm, SplitCost, SplitGoal, Wait, split};
use serde_json::{Value, json};

#[path = "../tests/edge/goals.rs"]
mod goals;
#[path = "../tests/edge/planted.rs"]
mod planted;

use planted::Planted;

const LAYERS: u32 = 37;
const INSTANCES: u64 = 200;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let count = arguments
        .next()
        .map_or(Ok(INSTANCES), |count| count.parse());
    let (Ok(count), None) = (count, arguments.next()) else {
        eprintln!(
            "split-programs: write how many networks of either kind, or nothing for {INSTANCES}"
        );
        return ExitCode::from(2);
    };
    for seed in 0..count {
        for (kind, planted) in [
            ("chain", Planted::chain(LAYERS, seed)),
            ("skips", Planted::new(LAYERS, seed)),
        ] {
            println!("{}", instance(kind, seed, &planted));
        }
    }
    ExitCode::SUCCESS
}

fn instance(kind: &str, seed: u64, planted: &Planted) -> Value {
    let problem = planted.problem();
    let least = |goal: SplitGoal| -> Option<SplitCost> {
        let outcome = split(&problem, goal, SplitAlgorithm::Joint).expect("sensible goals");
        outcome.plan().map(|plan| plan.cost())
    };
    let goals = goals::goals(seed, least).into_iter().map(|goal| {
        let limits = Quantity::ALL.map(|quantity| goal.limits.of(quantity));
        let place = Quantity::ALL.iter().position(|&one| one == goal.minimise);
        let found = least(goal).map(|cost| cost.of(goal.minimise));
        json!({"minimise": place, "limits": limits, "found": found})
    });
    let groups = planted.network.groups().iter().map(|group| {
        let phone = group.phone.map(|cost| (cost.time.as_nanos(), cost.energy.as_nanojoules()));
        let server = group.server.map(|time| time.as_nanos());
        json!({"first": group.segment.first(), "last": group.segment.last(), "phone": phone, "server": server})
    });
    let tensors = planted.network.tensors().iter().map(|tensor| {
        json!({
            "producer": tensor.producer,
            "consumers": tensor.consumers,
            "bytes": tensor.bytes.as_bytes(),
            "is_result": tensor.is_result,
        })
    });
    let weights = planted.network.returned_weights().iter();
    let (link, radio) = (planted.link, planted.link.radio);
    json!({
        "kind": kind,
        "seed": seed,
        "layers": planted.network.layers(),
        "groups": groups.collect::<Vec<Value>>(),
        "tensors": tensors.collect::<Vec<Value>>(),
        "returned_weights": weights.map(|bytes| bytes.as_bytes()).collect::<Vec<u64>>(),
        "upload": {"bps": link.upload_bps, "wait": wait(link.upload_wait), "slope": radio.upload_microwatts_per_mbps},
        "download": {"bps": link.download_bps, "wait": wait(link.download_wait), "slope": radio.download_microwatts_per_mbps},
        "base": radio.base.as_microwatts(),
        "idle": planted.idle.as_microwatts(),
        "goals": goals.collect::<Vec<Value>>(),
    })
}

fn wait(wait: Wait) -> Value {
    json!({
        "smallest": wait.smallest.as_nanos(),
        "large": wait.large.as_nanos(),
        "large_from": wait.large_from.as_bytes(),
    })
}
