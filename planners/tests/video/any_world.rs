//! Every policy in any world: no panic, and no answer that its phone, its link and its server could not have given in time. What
//! could be is worked out here from the world alone.

use layerlab_planners::video::fastva::{
    FrameChoice, LocalModel, RemoteModel, Scheduled, ServerMode, VideoGoal, VideoModels,
};
use layerlab_planners::video::replay::{
    PolicySettings, ReplayBandwidth, ReplayFrame, ReplayResults, ReplayWorld, VideoPolicy,
    replay_policy,
};
use layerlab_planners::video::{VideoError, VideoStream};
use layerlab_profiles::{Bytes, Nanos};
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;

fn models() -> impl Strategy<Value = VideoModels> {
    let local = prop::collection::vec((1..90 * MILLI, 0.0..=1.0_f64), 1..3);
    let remote = prop::collection::vec((1..120 * MILLI, 0.0..=1.0_f64, 0.0..=1.0_f64), 1..3);
    (local, remote).prop_map(|(local, remote)| {
        let local = local.into_iter().map(|(time, accuracy)| LocalModel {
            name: "phone's".to_owned(),
            time: Nanos::from_nanos(time),
            accuracy,
        });
        let remote = remote.into_iter().map(|(time, small, large)| RemoteModel {
            name: "server's".to_owned(),
            time: Nanos::from_nanos(time),
            accuracies: vec![small, large],
        });
        VideoModels::new(local.collect(), remote.collect()).expect("fractions")
    })
}

fn bandwidth() -> impl Strategy<Value = ReplayBandwidth> {
    let interval = (1..200 * MILLI).prop_map(Nanos::from_nanos);
    let bytes = prop::collection::vec(0..100_000_u64, 1..6);
    prop_oneof![
        3 => (0..40_000_000_u64).prop_map(ReplayBandwidth::Constant),
        1 => (interval, bytes).prop_map(|(interval, bytes)| ReplayBandwidth::Trace { interval, bytes }),
    ]
}

pub(super) fn worlds() -> impl Strategy<Value = ReplayWorld> {
    let frame = (
        (0..4_000_u64, 0..60_000_u64),
        (0.0..=1.0_f64, 0.0..=1.0_f64),
    );
    let frames = prop::collection::vec((frame, 0.0..=1.0_f64), 1..10);
    let times = (10 * MILLI..120 * MILLI, 1..400 * MILLI, 0..250 * MILLI);
    let rest = (0..20 * MILLI, any::<bool>(), any::<u64>());
    (models(), bandwidth(), frames, times, rest).prop_map(
        |(models, bandwidth, frames, (interval, within, round_trip), rest)| {
            let (calibration, serial, seed) = rest;
            let local = models.local().len();
            let nanos = Nanos::from_nanos;
            let frame = |(((small, more), (first, other)), uncalibrated)| ReplayFrame {
                sizes: [small, small + more].map(Bytes::from_bytes).to_vec(),
                local: [first, other][..local].to_vec(),
                uncalibrated,
                by_class: (uncalibrated < 0.5).then(|| vec![first, other]),
                right: None,
            };
            ReplayWorld {
                stream: VideoStream::new(nanos(interval), nanos(within)).expect("sensible"),
                frames: frames.into_iter().map(frame).collect(),
                bandwidth,
                round_trip: nanos(round_trip),
                models,
                server: if serial {
                    ServerMode::Serial
                } else {
                    ServerMode::Pipelined
                },
                calibration: nanos(calibration),
                seed,
            }
        },
    )
}

/// What sending `size` takes at least.
fn shortest_sending(world: &ReplayWorld, size: Bytes) -> u128 {
    let bits = u128::from(size.as_bytes()) * 8;
    match &world.bandwidth {
        ReplayBandwidth::Constant(bps) => bits * 1_000_000_000 / u128::from(*bps).max(1),
        ReplayBandwidth::Trace { interval, bytes } => {
            let most = u128::from(*bytes.iter().max().expect("an interval")).max(1);
            bits / 8 * u128::from(interval.as_nanos()) / most
        }
    }
}

/// What a frame's answer occupies and how long after that it is there; (phone, link, behind), in nanoseconds.
fn demand(world: &ReplayWorld, place: usize, by: FrameChoice) -> (u128, u128, u128) {
    let nanos = |time: Nanos| u128::from(time.as_nanos());
    match by {
        FrameChoice::Local { model } => (nanos(world.models.local()[model].time), 0, 0),
        FrameChoice::Remote { model, resolution } => {
            let sending = shortest_sending(world, world.frames[place].sizes[resolution]);
            let (server, trip) = (
                nanos(world.models.remote()[model].time),
                nanos(world.round_trip),
            );
            match world.server {
                ServerMode::Pipelined => (0, sending, server + trip),
                ServerMode::Serial => (0, sending + server, trip),
            }
        }
        FrameChoice::Skipped => (0, 0, 0),
    }
}

fn assert_possible(world: &ReplayWorld, results: &ReplayResults, policy: VideoPolicy) {
    let frames = results.frames();
    assert_eq!(frames.len(), world.frames.len());
    let within = u128::from(world.stream.within().as_nanos());
    for (place, frame) in frames.iter().enumerate() {
        let (phone, link, behind) = demand(world, place, frame.by);
        let says = format!("{policy}, frame {place}: {frame:?}");
        match frame.delay {
            Some(delay) => {
                let delay = u128::from(delay.as_nanos());
                assert!(delay <= within && delay >= phone + link + behind, "{says}");
            }
            None => assert!(frame.by == FrameChoice::Skipped && !frame.right, "{says}"),
        }
        let accuracy = match frame.by {
            FrameChoice::Local { model } => world.frames[place].local[model],
            FrameChoice::Remote { model, resolution } => {
                world.models.remote()[model].accuracies[resolution]
            }
            FrameChoice::Skipped => 0.0,
        };
        assert_eq!(frame.accuracy, accuracy, "{says}");
    }
    // What neighbouring frames take together fits between the first one's arrival and the last one's due time.
    let arrival = |place: usize| u128::from(world.stream.arrival(place).as_nanos());
    for first in 0..frames.len() {
        let (mut phone, mut link) = (0, 0);
        for (last, frame) in frames.iter().enumerate().skip(first) {
            let (on_phone, on_link, behind) = demand(world, last, frame.by);
            (phone, link) = (phone + on_phone, link + on_link);
            let room = arrival(last) + within - arrival(first);
            assert!(
                on_phone == 0 || phone <= room,
                "{policy}: {first} to {last}"
            );
            assert!(
                on_link == 0 || link + behind <= room,
                "{policy}: {first} to {last}"
            );
        }
    }
}

/// Whether the phone's fastest model answers the frames up to `last` in time.
fn is_answered_by_the_fastest(world: &ReplayWorld, last: usize) -> bool {
    let times = world.models.local().iter();
    let fastest = times.map(|model| model.time.as_nanos()).min().expect("one");
    let mut idle = 0;
    (0..=last).all(|place| {
        let arrival = world.stream.arrival(place).as_nanos();
        idle = idle.max(arrival) + fastest;
        idle <= arrival + world.stream.within().as_nanos()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn no_policy_gives_an_answer_that_could_not_be(
        world in worlds(),
        (weight, window) in (0.0..300.0_f64, 1..8_usize),
        by_utility in any::<bool>(),
    ) {
        for policy in VideoPolicy::ALL {
            let goal = match by_utility || policy == VideoPolicy::MaxUtility {
                true => VideoGoal::Utility { weight },
                false => VideoGoal::Accuracy,
            };
            let settings = PolicySettings { goal, window, ..PolicySettings::default() };
            match replay_policy(&world, policy, &settings) {
                Ok(Scheduled::Planned(results)) => assert_possible(&world, &results, policy),
                Ok(Scheduled::Infeasible { frame }) => {
                    prop_assert_eq!(policy, VideoPolicy::Local);
                    prop_assert!(!is_answered_by_the_fastest(&world, frame), "{}", frame);
                    prop_assert!(frame == 0 || is_answered_by_the_fastest(&world, frame - 1));
                }
                Err(error) => {
                    prop_assert_eq!(error, VideoError::NotConstant);
                    prop_assert!(matches!(policy, VideoPolicy::CboOptimal | VideoPolicy::FastvaOptimal));
                    let recorded = matches!(world.bandwidth, ReplayBandwidth::Trace { .. });
                    prop_assert!(recorded);
                }
            }
        }
    }
}
