//! All policies in the simulator, at the papers' sizes: what their figures claim, and that none is better than the optimum.

use layerlab_planners::video::cbo::{AnsweredFrame, EdgeConditions, OffloadPlan, SendingOrder};
use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, LocalModel, Scheduled, ServerMode, VideoGoal,
    VideoModels, local, optimal, utility,
};
use layerlab_planners::video::replay::{
    CboOptimalPolicy, CboPolicy, FastVaAlgorithm, FastVaPolicy, ReplayBandwidth, ReplayCommand,
    ReplayPolicy, ReplayResults, ReplayView, ReplayWorld, SchedulePolicy, ServerPolicy, replay,
};
use layerlab_planners::video::{Uplink, VideoError, VideoStream, cbo};
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

/// The plan of the optimum for a world of CBO.
fn best_offloads(world: &ReplayWorld) -> OffloadPlan {
    let server = &world.models.remote()[0];
    let uplink = problem(world).uplink;
    let within = world.stream.within();
    let preprocessing = world.models.local()[0].time + world.calibration;
    let conditions = EdgeConditions::new(uplink, server.time, within, server.accuracies.clone());
    let frames = world
        .frames
        .iter()
        .enumerate()
        .map(|(place, frame)| AnsweredFrame {
            arrival: world.stream.arrival(place),
            confidence: frame.local[0],
            sizes: frame.sizes.clone(),
        });
    let frames: Vec<AnsweredFrame> = frames.collect();
    let conditions = conditions
        .expect("sensible")
        .with_preprocessing(preprocessing);
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
        assert!(
            found <= best + 1e-9 && without <= best + 1e-9,
            "{fps} fps, {mbps} Mbps, {seed}"
        );
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
    let mut server_and_cbo_at_5_mbps = Vec::new();
    for (fps, mbps) in [
        (30, 1),
        (30, 2),
        (30, 3),
        (30, 5),
        (5, 5),
        (30, 10),
        (30, 36),
        (30, 50),
    ] {
        let [found, without, server, local, best, fastva] = cbo_accuracies(fps, mbps);
        let at = format!("{fps} fps, {mbps} Mbit/s");
        gaps.push(best - found);
        assert!(
            found >= without && found >= local,
            "{at}: {found} {without} {local}"
        );
        // Where the server can take every frame, it needs no confidence.
        assert!(fps == 5 || found >= fastva, "{at}: {found} {fastva}");
        assert!(mbps > 3 || local > server, "{at}: {local} {server}");
        assert!(
            mbps < 36 || (found - server).abs() <= 0.02,
            "{at}: {found} {server}"
        );
        if mbps == 5 {
            server_and_cbo_at_5_mbps.push((server, found));
        }
    }
    assert!(
        gaps.iter().sum::<f64>() / gaps.len() as f64 <= 0.01,
        "{gaps:?}"
    );
    let [(server, found), (slow_server, slow_found)] = server_and_cbo_at_5_mbps[..] else {
        panic!("{server_and_cbo_at_5_mbps:?}");
    };
    assert!(slow_server - server >= 0.15, "{server} {slow_server}");
    assert!(slow_found - found <= 0.06, "{found} {slow_found}");
}

/// Compress is FastVA with a pruned network on the CPU, which is more often right than the NPU's and much slower.
#[test]
fn a_compressed_model_on_the_cpu_is_worse_than_the_npu_on_slow_links() {
    for mbps in [1, 2, 3] {
        let npu = cbo_world(3, 30, mbps * MBPS, 300);
        let mut compress = npu.clone();
        let slow = LocalModel {
            name: "pruned ResNet-152".to_owned(),
            time: Nanos::from_millis(180),
            accuracy: 0.7,
        };
        compress.models =
            VideoModels::new(vec![slow], npu.models.remote().to_vec()).expect("sensible");
        compress.calibration = Nanos::ZERO;
        for frame in &mut compress.frames {
            frame.local = vec![0.7];
        }
        let accuracy = |world| run(world, fastva(FastVaAlgorithm::MaxAccuracy)).accuracy();
        let (npu, compress) = (accuracy(&npu), accuracy(&compress));
        assert!(npu > compress, "{mbps} Mbit/s: {npu} {compress}");
    }
}

#[test]
fn an_even_trace_gives_what_a_constant_link_gives_and_an_empty_one_nothing() {
    let constant = cbo_world(5, 30, 5 * MBPS, 100);
    let traced = |bytes: u64| ReplayWorld {
        bandwidth: ReplayBandwidth::Trace {
            interval: Nanos::from_millis(100),
            bytes: vec![bytes; 3],
        },
        ..constant.clone()
    };
    let policies = || -> Vec<Box<dyn ReplayPolicy>> {
        vec![
            Box::new(fastva(FastVaAlgorithm::MaxAccuracy)),
            Box::new(ServerPolicy),
            Box::new(CboPolicy {
                order: SendingOrder::Paper,
                is_calibrated: true,
            }),
        ]
    };
    for place in 0..3 {
        let run = |world: &ReplayWorld| {
            let mut policy = policies().swap_remove(place);
            replay(world, policy.as_mut()).expect("sensible")
        };
        // 5 Mbit/s.
        assert_eq!(run(&constant), run(&traced(62_500)));
        assert!(run(&constant).offloaded_share() > 0.0);
        assert_eq!(run(&traced(0)).offloaded_share(), 0.0);
    }
}

#[test]
fn a_link_that_slows_down_costs_server_frames_that_cbo_still_answers() {
    let mut world = cbo_world(6, 30, 0, 300);
    world.bandwidth = ReplayBandwidth::Trace {
        interval: Nanos::from_millis(1_000),
        bytes: vec![1_250_000, 12_500],
    };
    let server = run(&world, ServerPolicy);
    let cbo = run(
        &world,
        CboPolicy {
            order: SendingOrder::EarliestDeadline,
            is_calibrated: true,
        },
    );
    assert!(server.missed_share() > 0.1, "{}", server.missed_share());
    assert_eq!(cbo.missed_share(), 0.0);
    for frame in cbo.frames() {
        let delay = frame.delay.expect("the NPU answers every frame");
        assert!(delay <= world.stream.within());
    }
}

/// Says the same at every event.
struct Always(ReplayCommand);

impl ReplayPolicy for Always {
    fn decide(&mut self, _view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        Ok(vec![self.0])
    }
}

#[test]
fn a_command_that_cannot_be_obeyed_ends_the_replay_with_a_sentence() {
    let world = cbo_world(7, 30, MBPS, 3);
    let local = |frame, model| ReplayCommand::RunLocal { frame, model };
    let send = |frame, model, resolution| ReplayCommand::Send {
        frame,
        model,
        resolution,
    };
    for command in [
        local(0, 1),
        local(2, 0),
        local(0, 0),
        send(0, 1, 0),
        send(0, 0, 5),
        send(9, 0, 0),
    ] {
        let refused = replay(&world, &mut Always(command)).expect_err("not obeyed");
        assert!(
            matches!(refused, VideoError::Command { .. }),
            "{command:?}: {refused}"
        );
    }
    let empty = ReplayWorld {
        frames: Vec::new(),
        ..world.clone()
    };
    assert_eq!(replay(&empty, &mut ServerPolicy), Err(VideoError::NoFrames));
    let mut odd = world;
    odd.frames[1].local.clear();
    let refused = replay(&odd, &mut ServerPolicy).expect_err("no confidence");
    assert!(matches!(refused, VideoError::LocalAnswers { frame: 1, .. }));
}
