//! FastVA in the simulator, at the paper's sizes: what its figures claim, and that nothing is better than the optimum.

use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, Scheduled, ServerMode, VideoGoal, local, optimal, utility,
};
use layerlab_planners::video::replay::{
    FastVaAlgorithm, FastVaPolicy, ReplayBandwidth, ReplayPolicy, ReplayResults, ReplayWorld,
    SchedulePolicy, replay,
};
use layerlab_planners::video::{Uplink, VideoStream};
use layerlab_profiles::{Bytes, Nanos};

use crate::simulated::fastva_world;
use crate::table::{stream, table_2};

pub(crate) fn run(world: &ReplayWorld, mut policy: impl ReplayPolicy) -> ReplayResults {
    replay(world, &mut policy).expect("sensible")
}

pub(crate) fn fastva(algorithm: FastVaAlgorithm) -> FastVaPolicy {
    FastVaPolicy::new(algorithm, BufferedFrames::Floor)
}

pub(crate) fn problem(world: &ReplayWorld) -> FastVaProblem {
    let ReplayBandwidth::Constant(bps) = world.bandwidth else {
        panic!("a constant link");
    };
    let uplink = Uplink::new(bps, world.round_trip);
    FastVaProblem {
        server: world.server,
        ..FastVaProblem::new(world.stream, uplink, world.models.clone())
    }
}

pub(crate) fn sizes(world: &ReplayWorld) -> Vec<Vec<Bytes>> {
    world
        .frames
        .iter()
        .map(|frame| frame.sizes.clone())
        .collect()
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
        assert!(
            (schedule.accuracy() - expected).abs() <= 0.002,
            "{fps}: {}",
            schedule.accuracy()
        );
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
    assert!(
        matches!(too_fast, Scheduled::Infeasible { frame: 1.. }),
        "{too_fast:?}"
    );
}

#[test]
fn max_accuracy_is_close_to_the_optimum_and_never_better() {
    for (server, frames) in [(ServerMode::Pipelined, 24), (ServerMode::Serial, 16)] {
        let gap = |seed: u64| {
            let fps = [20, 30, 40, 50][seed as usize % 4];
            let bandwidth = 500_000 * (1 + seed % 9);
            let mut world = fastva_world(seed, fps, bandwidth, frames);
            world.server = server;
            let found = run(&world, fastva(FastVaAlgorithm::MaxAccuracy));
            let best = optimal(&problem(&world), &sizes(&world)).expect("sensible");
            let gap = best.most_accurate().accuracy() - found.accuracy();
            assert!(
                gap > -1e-9,
                "seed {seed}: better than the optimum by {}",
                -gap
            );
            // The simulator does what the optimum says.
            let followed = run(
                &world,
                SchedulePolicy::new(best.most_accurate().choices().to_vec()),
            );
            assert!((followed.accuracy() - best.most_accurate().accuracy()).abs() < 1e-9);
            gap
        };
        let mut gaps: Vec<f64> = (0..200).map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        let mean = gaps.iter().sum::<f64>() / 200.0;
        let p95 = gaps[189];
        assert!(
            mean <= 0.02 && p95 <= 0.04,
            "{server:?}: mean {mean}, p95 {p95}"
        );
    }
}

/// The utility of what came of the frames.
fn utility_of(world: &ReplayWorld, results: &ReplayResults, weight: f64) -> f64 {
    let answered = results
        .frames()
        .iter()
        .filter(|frame| frame.delay.is_some());
    let sum = results.frames().iter().map(|frame| frame.accuracy).sum();
    let frames = results.frames().len();
    utility(
        weight,
        world.stream.interval(),
        frames,
        answered.count(),
        sum,
    )
}

#[test]
fn no_policy_of_fastva_is_better_than_the_optimum() {
    for seed in 0..60 {
        let world = fastva_world(seed, 30, 500_000 * (1 + seed % 9), 14);
        let problem = problem(&world);
        let best = optimal(&problem, &sizes(&world)).expect("sensible");
        let weight = [5.0, 50.0, 200.0][seed as usize % 3];
        let (accuracy, useful) = (VideoGoal::Accuracy, VideoGoal::Utility { weight });
        let window = |goal| FastVaAlgorithm::DeepDecision { window: 6, goal };
        let most = best.most_accurate().accuracy();
        for algorithm in [
            FastVaAlgorithm::MaxAccuracy,
            window(accuracy),
            FastVaAlgorithm::Offload(accuracy),
        ] {
            let found = run(&world, fastva(algorithm)).accuracy();
            assert!(
                found <= most + 1e-9,
                "seed {seed}, {algorithm:?}: {found} {most}"
            );
        }
        let most = best.most_useful(&problem, weight).expect("a weight");
        let most = most.utility(&problem, weight);
        for algorithm in [
            FastVaAlgorithm::MaxUtility { weight },
            window(useful),
            FastVaAlgorithm::Offload(useful),
        ] {
            let found = utility_of(&world, &run(&world, fastva(algorithm)), weight);
            assert!(
                found <= most + 1e-9,
                "seed {seed}, {algorithm:?}: {found} {most}"
            );
        }
    }
}

#[test]
fn max_accuracy_is_better_than_its_baselines_on_long_videos() {
    for (fps, bandwidth) in [
        (20, 500_000),
        (30, 2_500_000),
        (50, 3_500_000),
        (30, 4_500_000),
    ] {
        let world = fastva_world(fps, fps, bandwidth, 600);
        let found = run(&world, fastva(FastVaAlgorithm::MaxAccuracy)).accuracy();
        let goal = VideoGoal::Accuracy;
        for baseline in [
            FastVaAlgorithm::DeepDecision { window: 6, goal },
            FastVaAlgorithm::DeepDecision { window: 30, goal },
            FastVaAlgorithm::Offload(goal),
        ] {
            let other = run(&world, fastva(baseline)).accuracy();
            assert!(
                found > other,
                "{fps} fps, {bandwidth} bit/s, {baseline:?}: {found} {other}"
            );
        }
    }
}
