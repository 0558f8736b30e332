//! Live decisions are a replay's: in a world that does just what the phone believes, every policy does the same at the same times,
//! whether the simulator drives it or things that happen do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use layerlab_planners::video::calibration::Calibrator;
use layerlab_planners::video::fastva::{
    LocalModel, RemoteModel, Scheduled, ServerMode, VideoGoal, VideoModels,
};
use layerlab_planners::video::live::{LiveError, LiveSettings, LiveVideo};
use layerlab_planners::video::replay::{
    PolicySettings, ReplayBandwidth, ReplayCommand, ReplayFrame, ReplayFrameState, ReplayWorld,
    VideoPolicy, outcome, replay_policy,
};
use layerlab_planners::video::{Uplink, VideoError, VideoStream};
use layerlab_profiles::video::Confidence;
use layerlab_profiles::{Bytes, Nanos};
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;

fn settings() -> impl Strategy<Value = LiveSettings> {
    let times = (
        10 * MILLI..120 * MILLI,
        1..400 * MILLI,
        0..250 * MILLI,
        0..40 * MILLI,
    );
    let models = (
        1..90 * MILLI,
        1..120 * MILLI,
        0.0..=1.0_f64,
        0.0..=1.0_f64,
        0.0..=1.0_f64,
    );
    let policies: Vec<VideoPolicy> = VideoPolicy::ALL
        .into_iter()
        .filter(|policy| policy.not_live().is_none())
        .collect();
    let policy = prop::sample::select(policies);
    let link = prop_oneof![1 => Just(0), 5 => 100_000..40_000_000_u64];
    let by_class = prop::option::of(prop::array::uniform2(0.0..=1.0_f64));
    (times, models, policy, (link, by_class), 1..12_usize).prop_map(
        |(times, models, policy, (bandwidth_bps, by_class), frames)| {
            let (interval, within, round_trip, prepare) = times;
            let (local, remote, accuracy, small, large) = models;
            let nanos = Nanos::from_nanos;
            LiveSettings {
                policy,
                settings: PolicySettings {
                    goal: VideoGoal::Utility { weight: 50.0 },
                    window: 4,
                    ..PolicySettings::default()
                },
                frames,
                interval: nanos(interval),
                within: nanos(within),
                bandwidth_bps,
                round_trip: nanos(round_trip),
                prepare: nanos(prepare),
                local: LocalModel {
                    name: "phone's".to_owned(),
                    time: nanos(local),
                    accuracy,
                },
                remote: RemoteModel {
                    name: "server's".to_owned(),
                    time: nanos(remote),
                    accuracies: vec![small, large],
                },
                confidence: Confidence::AsAnswered,
                calibrator: Calibrator::Uncalibrated,
                by_class: by_class.iter().map(|it| it.to_vec()).collect(),
            }
        },
    )
}

/// A frame's bytes in both resolutions, and the phone's score.
type Shot = ((u64, u64), f32);

fn world(settings: &LiveSettings, shots: &[Shot]) -> ReplayWorld {
    let frame = |&((small, more), score): &Shot| ReplayFrame {
        sizes: [small, small + more].map(Bytes::from_bytes).to_vec(),
        local: vec![f64::from(score)],
        uncalibrated: f64::from(score),
        by_class: settings.by_class.first().cloned(),
        right: None,
    };
    let models = VideoModels::new(vec![settings.local.clone()], vec![settings.remote.clone()]);
    ReplayWorld {
        stream: VideoStream::new(settings.interval, settings.within).expect("sensible"),
        frames: shots
            .iter()
            .cycle()
            .take(settings.frames)
            .map(frame)
            .collect(),
        bandwidth: ReplayBandwidth::Constant(settings.bandwidth_bps),
        round_trip: settings.round_trip + settings.prepare,
        models: models.expect("fractions"),
        server: ServerMode::Pipelined,
        calibration: Nanos::ZERO,
        seed: 1,
    }
}

/// What happens; of what happens at once, the first of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Served(usize),
    Answered(usize),
    Woken,
    Ready(usize),
}

/// A phone, a link and a server that are just as the phone believes.
struct Believed<'a> {
    world: &'a ReplayWorld,
    settings: &'a LiveSettings,
    happens: BinaryHeap<Reverse<(Nanos, Happens)>>,
    npu_idle: Nanos,
    link_idle: Nanos,
    states: Vec<ReplayFrameState>,
}

impl Believed<'_> {
    fn obey(&mut self, now: Nanos, command: ReplayCommand) {
        match command {
            ReplayCommand::RunLocal { frame, model } => {
                self.npu_idle = self.npu_idle.max(now) + self.settings.local.time;
                self.states[frame].local = Some((model, self.npu_idle));
                self.happens
                    .push(Reverse((self.npu_idle, Happens::Answered(frame))));
            }
            ReplayCommand::Send {
                frame,
                model,
                resolution,
            } => {
                let link = Uplink::new(self.settings.bandwidth_bps, self.settings.round_trip);
                let sending = link.sending(self.world.frames[frame].sizes[resolution]);
                let served = sending.map(|sending| {
                    self.link_idle = self.link_idle.max(now) + sending;
                    self.link_idle + self.settings.remote.time + link.round_trip()
                });
                self.states[frame].remote = Some((model, resolution, served));
                if let Some(served) = served {
                    self.happens.push(Reverse((served, Happens::Served(frame))));
                }
            }
        }
    }
}

/// What a live phone does with the frames of the world.
fn lived(
    settings: &LiveSettings,
    world: &ReplayWorld,
    mut live: LiveVideo,
) -> Vec<ReplayFrameState> {
    let mut there = Believed {
        world,
        settings,
        happens: BinaryHeap::new(),
        npu_idle: Nanos::ZERO,
        link_idle: Nanos::ZERO,
        states: vec![ReplayFrameState::default(); world.frames.len()],
    };
    for frame in 0..world.frames.len() {
        let ready = world.stream.arrival(frame) + settings.prepare;
        there.happens.push(Reverse((ready, Happens::Ready(frame))));
    }
    loop {
        let next = there.happens.peek().map(|Reverse(next)| *next);
        let woken = live.wake().map(|wake| (wake, Happens::Woken));
        let Some((now, what)) = next.into_iter().chain(woken).min() else {
            return there.states;
        };
        if what != Happens::Woken {
            there.happens.pop();
        }
        let commands = match what {
            Happens::Ready(frame) => live.arrived(now, world.frames[frame].sizes.clone()),
            Happens::Answered(frame) => {
                let score = world.frames[frame].uncalibrated as f32;
                let answered = live.answered(now, frame, &[score]);
                answered.map(|(answer, commands)| {
                    assert_eq!((answer.class, answer.confidence), (0, f64::from(score)));
                    commands
                })
            }
            Happens::Served(frame) => {
                let served = live.served(now, frame, settings.remote.time);
                served.map(|()| Vec::new())
            }
            Happens::Woken => live.woken(now),
        };
        for command in commands.expect("a sensible world") {
            there.obey(now, command);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_happens_decides_as_the_simulator_does(
        settings in settings(),
        shots in prop::collection::vec(((0..4_000_u64, 0..60_000_u64), 0.0..=1.0_f32), 1..6),
    ) {
        let world = world(&settings, &shots);
        let replayed = replay_policy(&world, settings.policy, &settings.settings).expect("sensible");
        let live = LiveVideo::new(settings.clone()).expect("sensible");
        let (Scheduled::Planned(replayed), live) = (replayed, live) else {
            return Ok(());
        };
        let live = live.planned();
        prop_assert!(live.is_some(), "the replay found a schedule");
        let states = lived(&settings, &world, live.expect("it is some"));
        // The phone's own answers come later than in the replay by what it takes to prepare a frame.
        let as_told: Vec<ReplayFrameState> = states
            .iter()
            .map(|state| ReplayFrameState {
                local: state.local.map(|(model, at)| (model, at - settings.prepare)),
                ..*state
            })
            .collect();
        let lived = outcome(&world, &as_told);
        prop_assert_eq!(lived.frames(), replayed.frames());
    }
}

/// cbo, on a link that carries a frame in 20 ms.
fn one() -> LiveSettings {
    LiveSettings {
        policy: VideoPolicy::Cbo,
        settings: PolicySettings::default(),
        frames: 3,
        interval: Nanos::from_millis(40),
        within: Nanos::from_millis(200),
        bandwidth_bps: 8_000_000,
        round_trip: Nanos::from_millis(50),
        prepare: Nanos::from_millis(5),
        local: LocalModel {
            name: "phone's".to_owned(),
            time: Nanos::from_millis(10),
            accuracy: 0.5,
        },
        remote: RemoteModel {
            name: "server's".to_owned(),
            time: Nanos::from_millis(10),
            accuracies: vec![0.9],
        },
        confidence: Confidence::AsAnswered,
        calibrator: Calibrator::Uncalibrated,
        by_class: Vec::new(),
    }
}

fn live(settings: LiveSettings) -> LiveVideo {
    let live = LiveVideo::new(settings).expect("sensible");
    live.planned().expect("feasible")
}

fn sends(commands: &[ReplayCommand]) -> bool {
    commands
        .iter()
        .any(|it| matches!(it, ReplayCommand::Send { .. }))
}

#[test]
fn without_a_server_the_phone_answers_alone() {
    let ms = Nanos::from_millis;
    let size = || vec![Bytes::from_bytes(20_000)];
    let mut live = live(one());
    live.arrived(ms(5), size()).expect("a frame");
    let (_, commands) = live.answered(ms(15), 0, &[0.2]).expect("an answer");
    assert!(sends(&commands), "the server is surer: {commands:?}");
    assert_eq!(live.wake(), Some(ms(35)));
    live.lost();
    assert_eq!(live.wake(), None);
    let commands = live.arrived(ms(45), size()).expect("a frame");
    assert_eq!(commands.len(), 1, "the phone answers it: {commands:?}");
    let (_, commands) = live.answered(ms(55), 1, &[0.2]).expect("an answer");
    assert_eq!(commands, []);
}

#[test]
fn what_makes_no_stream_is_refused() {
    let ahead = LiveSettings {
        policy: VideoPolicy::CboOptimal,
        ..one()
    };
    let refused = LiveVideo::new(ahead).err();
    assert!(
        matches!(refused, Some(VideoError::NotLive("cbo-optimal", _))),
        "{refused:?}"
    );
    let slow = LiveSettings {
        policy: VideoPolicy::Local,
        local: LocalModel {
            time: Nanos::from_millis(90),
            ..one().local
        },
        frames: 100,
        ..one()
    };
    let infeasible = LiveVideo::new(slow).expect("sensible");
    assert!(matches!(infeasible, Scheduled::Infeasible { frame } if frame > 0));
    let mut live = live(one());
    for asked in [
        live.answered(Nanos::ZERO, 0, &[0.5]).err(),
        live.served(Nanos::ZERO, 0, Nanos::ZERO).err(),
    ] {
        assert_eq!(asked, Some(LiveError::NotAsked { frame: 0 }));
    }
    let sizes = vec![Bytes::ZERO; 3];
    live.arrived(Nanos::ZERO, sizes)
        .expect("nothing is sent yet");
    let refused = live.answered(Nanos::ZERO, 0, &[0.2]).err();
    assert!(
        matches!(
            refused,
            Some(LiveError::Video(VideoError::Resolutions { .. }))
        ),
        "{refused:?}"
    );
}

#[test]
fn what_a_phone_is_told_is_read_as_it_was_written() {
    let json = serde_json::to_string(&one()).expect("JSON");
    assert!(json.contains(r#""policy":"cbo""#), "{json}");
    let read: LiveSettings = serde_json::from_str(&json).expect("settings");
    assert_eq!(read, one());
}
