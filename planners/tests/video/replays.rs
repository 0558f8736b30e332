//! All policies in the simulator, at the papers' sizes: what their figures claim, and that none is better than the optimum.

use layerlab_planners::video::cbo::{AnsweredFrame, EdgeConditions, OffloadPlan, SendingOrder};
use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, Scheduled, VideoGoal, VideoModels, local, optimal,
};
use layerlab_planners::video::replay::{
    CboOptimalPolicy, CboPolicy, FastVaAlgorithm, FastVaPolicy, ReplayBandwidth, ReplayPolicy,
    ReplayResults, ReplayWorld, SchedulePolicy, ServerPolicy, replay,
};
use layerlab_planners::video::{Uplink, VideoStream, cbo};
use layerlab_profiles::{Bytes, Nanos};

use crate::simulated::{cbo_world, fastva_world, stream, table_2};

const MBPS: u64 = 1_000_000;

fn run(world: &ReplayWorld, mut policy: impl ReplayPolicy) -> ReplayResults {
    replay(world, &mut policy).expect("sensible")
}

fn fastva(algorithm: FastVaAlgorithm) -> FastVaPolicy {
    FastVaPolicy::new(algorithm, BufferedFrames::Floor)
}

fn problem(world: &ReplayWorld) -> FastVaProblem {
    let ReplayBandwidth::Constant(bps) = world.bandwidth else {
        panic!("a constant link");
    };
    let uplink = Uplink::new(bps, world.round_trip);
    FastVaProblem {
        server: world.server,
        ..FastVaProblem::new(world.stream, uplink, world.models.clone())
    }
}

fn sizes(world: &ReplayWorld) -> Vec<Vec<Bytes>> {
    world.frames.iter().map(|frame| frame.sizes.clone()).collect()
}

#[test]
fn local_has_the_accuracy_of_table_2_and_is_infeasible_below_17_ms_a_frame() {
    let ask = |stream: VideoStream| {
        let uplink = Uplink::new(0, Nanos::ZERO);
        let problem = FastVaProblem::new(stream, uplink, table_2());
        local(&problem, 3_000, VideoGoal::Accuracy).expect("sensible")
    };
    for (fps, expected) in [(30, 0.461), (50, 0.419)] {
        let schedule = ask(stream(fps)).planned().expect("fast enough");
        assert!((schedule.accuracy() - expected).abs() <= 0.002, "{fps}: {}", schedule.accuracy());
        // The simulator gives the same.
        let world = fastva_world(1, fps, 0, 3_000);
        let results = run(&world, SchedulePolicy::new(schedule.choices().to_vec()));
        assert!((results.accuracy() - schedule.accuracy()).abs() < 1e-9);
        assert_eq!(results.missed_share(), 0.0);
        assert!((results.right_share() - results.accuracy()).abs() < 0.03);
    }
    let every = |micros| VideoStream::new(Nanos::from_micros(micros), Nanos::from_millis(200));
    assert!(ask(every(17_000).expect("sensible")).planned().is_some());
    let too_fast = ask(every(16_900).expect("sensible"));
    assert!(matches!(too_fast, Scheduled::Infeasible { frame: 1.. }), "{too_fast:?}");
}

#[test]
fn max_accuracy_is_close_to_the_optimum_and_never_better() {
    let mut gaps = Vec::new();
    for seed in 0..200 {
        let fps = [20, 30, 40, 50][seed as usize % 4];
        let bandwidth = [500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500][seed as usize % 9];
        let world = fastva_world(seed, fps, bandwidth * 1_000, 16);
        let found = run(&world, fastva(FastVaAlgorithm::MaxAccuracy));
        let best = optimal(&problem(&world), &sizes(&world)).expect("sensible");
        let gap = best.most_accurate().accuracy() - found.accuracy();
        assert!(gap > -1e-9, "seed {seed}: better than the optimum by {}", -gap);
        gaps.push(gap);
    }
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / 200.0;
    let p95 = gaps[189];
    println!("gap mean {mean:.4} p95 {p95:.4} most {:.4}", gaps[199]);
    assert!(mean <= 0.02 && p95 <= 0.04, "mean {mean}, p95 {p95}");
}
