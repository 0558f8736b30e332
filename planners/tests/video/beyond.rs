//! What neither paper has: thresholds for each class, several ways of answering on the phone, and a watch over confidences.

use layerlab_planners::video::calibration::{CalibrationMethod, ScoreMap};
use layerlab_planners::video::fastva::{
    FrameChoice, LocalModel, RemoteModel, Scheduled, ServerMode, VideoModels,
};
use layerlab_planners::video::replay::{
    PolicySettings, ReplayBandwidth, ReplayFrame, ReplayResults, ReplayWorld, RightAnswers,
    VideoPolicy, replay_policy,
};
use layerlab_planners::video::{AgreementWatch, TOLERATED_AGREEMENT, VideoError, VideoStream};
use layerlab_profiles::{Bytes, Nanos};
use proptest::prelude::*;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::any_world::worlds;

const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn results(world: &ReplayWorld, policy: VideoPolicy) -> ReplayResults {
    let results = replay_policy(world, policy, &PolicySettings::default()).expect("sensible");
    let Scheduled::Planned(results) = results else {
        panic!("{policy} may leave frames out");
    };
    results
}

/// Frames of two classes, which the phone tells apart but is not sure of. The server is right about 95 % of one, and 45 % of the
/// other.
fn world_of_two_classes(seed: u64) -> ReplayWorld {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let frame = |place: usize| {
        let confidence = random.random_range(0.3..0.7);
        let server = [0.95, 0.45][place % 2];
        ReplayFrame {
            sizes: vec![Bytes::from_bytes(30_000)],
            local: vec![confidence],
            uncalibrated: confidence,
            by_class: Some(vec![server]),
            right: Some(RightAnswers {
                local: vec![random.random_bool(confidence)],
                remote: vec![vec![random.random_bool(server)]],
            }),
        }
    };
    let local = LocalModel {
        name: "phone's".to_owned(),
        time: ms(10),
        accuracy: 0.5,
    };
    let remote = RemoteModel {
        name: "server's".to_owned(),
        time: ms(10),
        accuracies: vec![0.7],
    };
    ReplayWorld {
        stream: VideoStream::new(ms(33), ms(200)).expect("sensible"),
        frames: (0..600).map(frame).collect(),
        // Every second frame can be sent.
        bandwidth: ReplayBandwidth::Constant(4_000_000),
        round_trip: ms(50),
        models: VideoModels::new(vec![local], vec![remote]).expect("fractions"),
        server: ServerMode::Pipelined,
        calibration: Nanos::ZERO,
        seed: 1,
    }
}

#[test]
fn a_threshold_for_each_class_sends_what_the_server_is_good_at() {
    let mut gain = 0.0;
    for seed in 0..5 {
        let world = world_of_two_classes(seed);
        let [by_class, alike] =
            [VideoPolicy::CboByClass, VideoPolicy::Cbo].map(|policy| results(&world, policy));
        gain += by_class.right_share() - alike.right_share();
        let sent_of = |results: &ReplayResults, class: usize| {
            let of_class = results.frames().iter().skip(class).step_by(2);
            of_class
                .filter(|it| matches!(it.by, FrameChoice::Remote { .. }))
                .count()
        };
        assert!(sent_of(&by_class, 0) > 9 * sent_of(&by_class, 1));
        assert!(sent_of(&alike, 0) < 2 * sent_of(&alike, 1));
    }
    // Half of the frames are sent: from 0.7 in the place of 0.5, to 0.95.
    assert!(gain / 5.0 > 0.08, "{}", gain / 5.0);
}

#[test]
fn what_is_known_of_a_class_is_of_the_same_resolutions() {
    let mut world = world_of_two_classes(0);
    world.frames[3].by_class = Some(vec![0.5, 0.5]);
    for policy in [VideoPolicy::CboByClass, VideoPolicy::Cbo] {
        let refused = replay_policy(&world, policy, &PolicySettings::default());
        assert!(
            matches!(refused, Err(VideoError::Resolutions { .. })),
            "{refused:?}"
        );
    }
    world.frames[3].by_class = Some(vec![f64::NAN]);
    let refused = replay_policy(&world, VideoPolicy::CboByClass, &PolicySettings::default());
    assert!(refused.is_err(), "{refused:?}");
}

/// A fast way of answering, and one that takes almost as long as until the next frame.
fn world_of_two_placements() -> ReplayWorld {
    let world = world_of_two_classes(1);
    let [fast, slow] = [(5, 0.5), (30, 0.8)].map(|(time, accuracy)| LocalModel {
        name: format!("{time} ms"),
        time: ms(time),
        accuracy,
    });
    let frame = |frame: &ReplayFrame| ReplayFrame {
        local: vec![frame.local[0], frame.local[0] + 0.3],
        right: None,
        ..frame.clone()
    };
    ReplayWorld {
        frames: world.frames.iter().map(frame).collect(),
        models: VideoModels::new(vec![fast, slow], world.models.remote().to_vec())
            .expect("fractions"),
        ..world
    }
}

#[test]
fn the_slower_and_better_placement_answers_where_there_is_time() {
    let world = world_of_two_placements();
    let [chosen, first] =
        [VideoPolicy::CboPlacements, VideoPolicy::Cbo].map(|policy| results(&world, policy));
    assert!(chosen.accuracy() > first.accuracy() + 0.1, "{chosen:?}");
    let by = |results: &ReplayResults, model: usize| {
        let frames = results.frames().iter();
        frames
            .filter(|frame| frame.by == FrameChoice::Local { model })
            .count()
    };
    assert!(by(&chosen, 1) > 300 && by(&first, 1) == 0);

    // It would leave no time to send: 200 - 60 ms for sending, 10 ms for the server and 50 ms for the way.
    let hasty = ReplayWorld {
        stream: VideoStream::new(ms(33), ms(140)).expect("sensible"),
        ..world.clone()
    };
    let chosen = results(&hasty, VideoPolicy::CboPlacements);
    assert_eq!(by(&chosen, 1), 0);
    // Where nothing can be sent, there is time.
    let alone = ReplayWorld {
        bandwidth: ReplayBandwidth::Constant(0),
        ..hasty
    };
    assert_eq!(by(&results(&alone, VideoPolicy::CboPlacements), 1), 600);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_way_of_answering_is_no_choice_and_a_choice_is_never_late_where_the_fastest_is_not(
        world in worlds(),
    ) {
        if world.models.local().len() == 1 {
            let one = results(&world, VideoPolicy::CboPlacements);
            prop_assert_eq!(one, results(&world, VideoPolicy::Cbo));
            return Ok(());
        }
        let alone = ReplayWorld { bandwidth: ReplayBandwidth::Constant(0), ..world };
        let chosen = results(&alone, VideoPolicy::CboPlacements);
        let local = alone.models.local();
        let fastest = local.iter().min_by_key(|model| model.time).expect("some").clone();
        let only = |frame: &ReplayFrame| ReplayFrame {
            local: vec![frame.local[0]],
            right: None,
            ..frame.clone()
        };
        let fast = ReplayWorld {
            frames: alone.frames.iter().map(only).collect(),
            models: VideoModels::new(vec![fastest], alone.models.remote().to_vec()).expect("fractions"),
            ..alone.clone()
        };
        let fast = results(&fast, VideoPolicy::CboLocal);
        for (chosen, fast) in chosen.frames().iter().zip(fast.frames()) {
            prop_assert!(chosen.delay.is_some() || fast.delay.is_none());
        }
    }
}

/// An agreement of 30 % at confidence 0 to 95 % at 1 or so.
fn agreement() -> ScoreMap {
    let confidences: Vec<f64> = (0..1000).map(|it| f64::from(it) / 1000.0).collect();
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let agree: Vec<bool> = confidences
        .iter()
        .map(|confidence| random.random_bool(0.3 + 0.65 * confidence))
        .collect();
    ScoreMap::train(CalibrationMethod::Platt, &confidences, &agree).expect("trains")
}

/// A stream in which agreement is `less` than was measured from frame `from` on.
fn watched(seed: u64, frames: u64, (from, less): (u64, f64)) -> AgreementWatch {
    let measured = agreement();
    let mut watch = AgreementWatch::new(vec![measured.clone()]);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for frame in 0..frames {
        let confidence = random.random_range(0.0..1.0);
        let chance = measured.probability(confidence);
        let chance = if frame < from { chance } else { chance - less };
        let agree = random.random_bool(chance.clamp(0.0, 1.0));
        watch.see(confidence, 0, agree).expect("a fraction");
    }
    watch
}

#[test]
fn a_stream_that_is_as_measured_is_told_from_one_that_has_changed() {
    // One of a thousand may give an alarm: 12 of 4000 or more happen once in a thousand times.
    let alarms = (0..4000).filter(|&seed| watched(seed, 300, (u64::MAX, 0.0)).alarm().is_some());
    assert!(alarms.count() < 12);
    // What a curve through a few hundred frames may be off by is no change, however long a stream is.
    for seed in 0..10 {
        for less in [0.8, -0.8] {
            let watch = watched(seed, 20_000, (0, less * TOLERATED_AGREEMENT));
            assert_eq!(watch.alarm(), None, "{seed}: {}", watch.evidence());
        }
    }
    for seed in 0..200 {
        // By a quarter more than is tolerated, agreement falls late in the stream, and rises from the first frame on.
        let change = TOLERATED_AGREEMENT + 0.25;
        for (from, less) in [(1500, change), (0, -change)] {
            let watch = watched(seed, from + 500, (from, less));
            let alarm = watch.alarm().expect("it has changed");
            assert!(alarm > from, "{seed}: {alarm}");
            assert!(watch.agreed().abs_diff(watch.expected() as u64) > 50);
        }
    }
}

#[test]
fn what_was_not_measured_is_not_watched() {
    let mut watch = AgreementWatch::new(vec![agreement()]);
    assert!(watch.see(0.5, 1, true).is_err());
    assert!(watch.see(1.5, 0, true).is_err());
    assert_eq!((watch.compared(), watch.evidence()), (0, 1.0));
    watch.see(0.5, 0, true).expect("a fraction");
    assert_eq!(
        (watch.compared(), watch.agreed(), watch.alarm()),
        (1, 1, None)
    );
}
