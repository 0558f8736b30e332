//! All policies in the simulator, at the papers' sizes: what their figures claim, and that none is better than the optimum.

use layerlab_planners::video::cbo::{AnsweredFrame, EdgeConditions, OffloadPlan, SendingOrder};
use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, Scheduled, ServerMode, VideoGoal, local, optimal, utility,
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
    for (server, frames) in [(ServerMode::Pipelined, 24), (ServerMode::Serial, 16)] {
        let gap = |seed: u64| {
            let fps = [20, 30, 40, 50][seed as usize % 4];
            let bandwidth = 500_000 * (1 + seed % 9);
            let mut world = fastva_world(seed, fps, bandwidth, frames);
            world.server = server;
            let found = run(&world, fastva(FastVaAlgorithm::MaxAccuracy));
            let best = optimal(&problem(&world), &sizes(&world)).expect("sensible");
            let gap = best.most_accurate().accuracy() - found.accuracy();
            assert!(gap > -1e-9, "seed {seed}: better than the optimum by {}", -gap);
            // The simulator does what the optimum says.
            let followed = run(&world, SchedulePolicy::new(best.most_accurate().choices().to_vec()));
            assert!((followed.accuracy() - best.most_accurate().accuracy()).abs() < 1e-9);
            gap
        };
        let mut gaps: Vec<f64> = (0..200).map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        let mean = gaps.iter().sum::<f64>() / 200.0;
        let p95 = gaps[189];
        println!("gap {server:?} mean {mean:.4} p95 {p95:.4}");
        assert!(mean <= 0.02 && p95 <= 0.04, "{server:?}: mean {mean}, p95 {p95}");
    }
}

/// The utility of what came of the frames.
fn utility_of(world: &ReplayWorld, results: &ReplayResults, weight: f64) -> f64 {
    let answered = results.frames().iter().filter(|frame| frame.delay.is_some());
    let sum = results.frames().iter().map(|frame| frame.accuracy).sum();
    let frames = results.frames().len();
    utility(weight, world.stream.interval(), frames, answered.count(), sum)
}

#[test]
fn no_policy_of_fastva_is_better_than_the_optimum() {
    let mut sums = [0.0; 5];
    for seed in 0..60 {
        let world = fastva_world(seed, 30, 500_000 * (1 + seed % 9), 16);
        let best = optimal(&problem(&world), &sizes(&world)).expect("sensible");
        let weight = [5.0, 50.0, 200.0][seed as usize % 3];
        let useful = best.most_useful(&problem(&world), weight).expect("a weight");
        let most_useful = useful.utility(&problem(&world), weight);
        for goal in [VideoGoal::Accuracy, VideoGoal::Utility { weight }] {
            let by_goal = match goal {
                VideoGoal::Accuracy => FastVaAlgorithm::MaxAccuracy,
                VideoGoal::Utility { weight } => FastVaAlgorithm::MaxUtility { weight },
            };
            let window = FastVaAlgorithm::DeepDecision { window: 6, goal };
            for (place, algorithm) in [by_goal, window, FastVaAlgorithm::Offload(goal)].into_iter().enumerate() {
                let results = run(&world, fastva(algorithm));
                let (one, most) = match goal {
                    VideoGoal::Accuracy => (results.accuracy(), best.most_accurate().accuracy()),
                    VideoGoal::Utility { weight } => (utility_of(&world, &results, weight), most_useful),
                };
                assert!(one <= most + 1e-9, "seed {seed}, {algorithm:?}: {one} {most}");
                if goal == VideoGoal::Accuracy {
                    sums[place] += one;
                } else {
                    sums[3] += one / most / 3.0;
                }
            }
        }
        sums[4] += best.most_accurate().accuracy();
    }
    println!("accuracies {sums:?}");
    assert!(sums[0] > sums[1] && sums[0] > sums[2]);
}

/// The plan of the optimum for a world of CBO.
fn best_offloads(world: &ReplayWorld) -> OffloadPlan {
    let server = &world.models.remote()[0];
    let uplink = problem(world).uplink;
    let within = world.stream.within();
    let preprocessing = world.models.local()[0].time + world.calibration;
    let conditions = EdgeConditions::new(uplink, server.time, within, server.accuracies.clone());
    let frames = world.frames.iter().enumerate().map(|(place, frame)| AnsweredFrame {
        arrival: world.stream.arrival(place),
        confidence: frame.local[0],
        sizes: frame.sizes.clone(),
    });
    let frames: Vec<AnsweredFrame> = frames.collect();
    let conditions = conditions.expect("sensible").with_preprocessing(preprocessing);
    cbo::optimal(&conditions, &frames).expect("sensible")
}

/// The mean accuracies of CBO, CBO without calibration, Server, Local and Optimal, and of FastVA.
fn cbo_accuracies(fps: u64, mbps: u64) -> [f64; 6] {
    let videos = 4;
    let mut sums = [0.0; 6];
    for seed in 0..videos {
        let world = cbo_world(seed, fps, mbps * MBPS, 300);
        let cbo = |is_calibrated| CboPolicy {
            order: SendingOrder::EarliestDeadline,
            is_calibrated,
        };
        let all_local = vec![FrameChoice::Local { model: 0 }; world.frames.len()];
        let plan = best_offloads(&world);
        let results = [
            run(&world, cbo(true)),
            run(&world, cbo(false)),
            run(&world, ServerPolicy),
            run(&world, SchedulePolicy::new(all_local)),
            run(&world, CboOptimalPolicy::new(&plan)),
            run(&world, fastva(FastVaAlgorithm::MaxAccuracy)),
        ];
        let [found, without, _, local, best, _] = results.each_ref().map(ReplayResults::accuracy);
        assert!(found <= best + 1e-9 && without <= best + 1e-9, "{fps} fps, {mbps} Mbps, {seed}");
        // The simulator does what the plan says.
        let planned = local + plan.improvement() / world.frames.len() as f64;
        assert!((best - planned).abs() < 1e-9, "{best} {planned}");
        for (sum, results) in sums.iter_mut().zip(&results) {
            *sum += results.accuracy() / videos as f64;
        }
    }
    sums
}

#[test]
fn cbo_has_the_shapes_of_the_papers_figures() {
    let mut gaps = Vec::new();
    for (fps, mbps) in [(30, 1), (30, 2), (30, 3), (30, 5), (30, 10), (30, 15), (30, 36), (30, 50), (5, 5)] {
        let a = cbo_accuracies(fps, mbps);
        println!("{fps} fps {mbps} Mbps: {a:.3?}");
        gaps.push(a[4] - a[0]);
    }
    println!("{gaps:.4?}");
}
