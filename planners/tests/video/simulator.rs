//! The simulator: links that change, and policies that ask for what there is not.

use layerlab_planners::video::VideoError;
use layerlab_planners::video::cbo::SendingOrder;
use layerlab_planners::video::replay::{
    CboKnowledge, CboModel, CboPolicy, FastVaAlgorithm, ReplayBandwidth, ReplayCommand,
    ReplayPolicy, ReplayView, ReplayWorld, ServerPolicy, replay,
};
use layerlab_profiles::Nanos;

use crate::replays::{fastva, run};
use crate::simulated::cbo_world;

const MBPS: u64 = 1_000_000;

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
                knowledge: CboKnowledge::Calibrated,
                model: CboModel::First,
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
            knowledge: CboKnowledge::Calibrated,
            model: CboModel::First,
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
