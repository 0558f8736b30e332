//! CBO and its baselines in the simulator, at the paper's sizes: what its figures claim.

use layerlab_planners::video::cbo::{
    self, AnsweredFrame, EdgeConditions, OffloadPlan, SendingOrder,
};
use layerlab_planners::video::fastva::{FrameChoice, LocalModel, VideoModels};
use layerlab_planners::video::replay::{
    CboKnowledge, CboModel, CboOptimalPolicy, CboPolicy, FastVaAlgorithm, ReplayResults,
    ReplayWorld, SchedulePolicy, ServerPolicy,
};
use layerlab_profiles::Nanos;

use crate::replays::{fastva, problem, run};
use crate::simulated::cbo_world;

const MBPS: u64 = 1_000_000;

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
            server: None,
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
        let cbo = |knowledge| CboPolicy {
            order: SendingOrder::EarliestDeadline,
            knowledge,
            model: CboModel::First,
        };
        let all_local = vec![FrameChoice::Local { model: 0 }; world.frames.len()];
        let plan = best_offloads(&world);
        let results = [
            run(&world, cbo(CboKnowledge::Calibrated)),
            run(&world, cbo(CboKnowledge::Uncalibrated)),
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
