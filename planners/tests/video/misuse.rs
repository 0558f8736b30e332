//! Wrong use of FastVA is refused, and no use of it panics.

use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, LocalModel, RemoteModel, ServerMode, VideoBacklog,
    VideoGoal, VideoModels, deep_decision, local, max_accuracy, max_utility, offload, optimal,
};
use layerlab_planners::video::{MOST_FRAMES_WITHIN, Uplink, VideoError, VideoStream};
use layerlab_profiles::{Bytes, Nanos};
use proptest::prelude::*;

use crate::table::{stream, table_2};

fn problem() -> FastVaProblem {
    let uplink = Uplink::new(3_000_000, Nanos::from_millis(100));
    FastVaProblem::new(stream(30), uplink, table_2())
}

#[test]
fn streams_that_make_no_sense_are_refused() {
    let new = |interval, within| {
        VideoStream::new(Nanos::from_nanos(interval), Nanos::from_nanos(within)).err()
    };
    assert_eq!(new(0, 1), Some(VideoError::NoInterval));
    assert_eq!(new(1, 0), Some(VideoError::NoTimeLimit));
    assert_eq!(new(1, MOST_FRAMES_WITHIN), None);
    assert!(matches!(
        new(1, MOST_FRAMES_WITHIN + 1),
        Some(VideoError::TooManyFramesWithin { .. })
    ));
}

#[test]
fn models_that_make_no_sense_are_refused() {
    let local = |accuracy| LocalModel {
        name: "a".to_owned(),
        time: Nanos::ZERO,
        accuracy,
    };
    let remote = |accuracies: &[f64]| RemoteModel {
        name: "b".to_owned(),
        time: Nanos::ZERO,
        accuracies: accuracies.to_vec(),
    };
    assert_eq!(VideoModels::new(vec![], vec![]), Err(VideoError::NoModels));
    for odd in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        let on_phone = VideoModels::new(vec![local(odd)], vec![]).expect_err("no fraction");
        assert!(
            on_phone.to_string().contains("a on the phone"),
            "{on_phone}"
        );
        let on_server = VideoModels::new(vec![], vec![remote(&[0.5, odd])]).expect_err("none");
        assert!(
            on_server.to_string().contains("b on the server"),
            "{on_server}"
        );
    }
    let uneven = VideoModels::new(vec![], vec![remote(&[0.5]), remote(&[])]);
    assert!(matches!(
        uneven,
        Err(VideoError::Resolutions {
            found: 0,
            resolutions: 1,
            ..
        })
    ));
}

#[test]
fn frames_windows_and_weights_that_make_no_sense_are_refused() {
    let (problem, idle) = (problem(), VideoBacklog::default());
    let short = vec![Bytes::from_bytes(1); 4];
    let five = vec![Bytes::from_bytes(1); 5];
    let resolutions = VideoError::Resolutions {
        what: "frame 0".to_owned(),
        found: 4,
        resolutions: 5,
    };
    assert_eq!(
        max_accuracy(&problem, idle, &short),
        Err(resolutions.clone())
    );
    assert_eq!(
        max_utility(&problem, idle, &short, 1.0),
        Err(resolutions.clone())
    );
    assert_eq!(
        offload(&problem, &short, VideoGoal::Accuracy),
        Err(resolutions.clone())
    );
    assert_eq!(optimal(&problem, &[short]).err(), Some(resolutions));
    assert_eq!(optimal(&problem, &[]).err(), Some(VideoError::NoFrames));
    assert_eq!(
        local(&problem, 0, VideoGoal::Accuracy),
        Err(VideoError::NoFrames)
    );
    let window = deep_decision(&problem, idle, &five, 0, VideoGoal::Accuracy);
    assert_eq!(window, Err(VideoError::NoWindow));
    for weight in [f64::NAN, f64::INFINITY, -1.0] {
        let goal = VideoGoal::Utility { weight };
        for refused in [
            max_utility(&problem, idle, &five, weight).err(),
            offload(&problem, &five, goal).err(),
            local(&problem, 1, goal).err(),
            deep_decision(&problem, idle, &five, 1, goal).err(),
        ] {
            assert!(
                matches!(refused, Some(VideoError::Weight(_))),
                "{refused:?}"
            );
        }
        assert!(
            optimal(&problem, std::slice::from_ref(&five))
                .expect("sensible")
                .most_useful(&problem, weight)
                .is_err()
        );
    }
}

#[test]
fn without_a_server_nothing_is_sent_and_without_a_phone_nothing_else() {
    let idle = VideoBacklog::default();
    let both = table_2();
    let phone = VideoModels::new(both.local().to_vec(), vec![]).expect("models");
    let phone = FastVaProblem {
        models: phone,
        ..problem()
    };
    let decision = max_accuracy(&phone, idle, &[]).expect("sensible").planned();
    assert!(matches!(
        decision.expect("in time").first,
        FrameChoice::Local { .. }
    ));
    let server = VideoModels::new(vec![], both.remote().to_vec()).expect("models");
    let server = FastVaProblem {
        models: server,
        ..problem()
    };
    let small = vec![Bytes::from_bytes(1_000); 5];
    let decision = max_accuracy(&server, idle, &small)
        .expect("sensible")
        .planned();
    assert!(matches!(
        decision.expect("in time").first,
        FrameChoice::Remote { .. }
    ));
    let large = vec![Bytes::from_bytes(1_000_000); 5];
    assert_eq!(
        max_accuracy(&server, idle, &large)
            .expect("sensible")
            .planned(),
        None
    );
}

/// Times from none to for ever, mostly of the usual size.
fn times() -> impl Strategy<Value = Nanos> {
    prop_oneof![
        6 => (0..300_000_000_u64).prop_map(Nanos::from_nanos),
        1 => any::<u64>().prop_map(Nanos::from_nanos),
    ]
}

proptest! {
    #[test]
    fn any_problem_has_an_answer(
        (interval, within) in (10_000_000..100_000_000_u64, 1..400_000_000_u64),
        locals in prop::collection::vec((times(), 0.0..=1.0_f64), 0..3),
        remotes in prop::collection::vec((times(), 0.0..=1.0_f64, 0.0..=1.0_f64), 1..3),
        frames in prop::collection::vec([0..100_000_u64, 0..u64::MAX], 1..4),
        (bandwidth, round_trip, npu, uplink) in (any::<u64>(), times(), times(), times()),
        (serial, floor, window, weight) in (any::<bool>(), any::<bool>(), 1..6_usize, 0.0..1e3_f64),
    ) {
        let local_models = locals.into_iter().map(|(time, accuracy)| LocalModel {
            name: String::new(), time, accuracy,
        });
        let remote_models = remotes.into_iter().map(|(time, low, high)| RemoteModel {
            name: String::new(), time, accuracies: vec![low, high],
        });
        let models = VideoModels::new(local_models.collect(), remote_models.collect()).expect("some");
        let stream = VideoStream::new(Nanos::from_nanos(interval), Nanos::from_nanos(within));
        let problem = FastVaProblem {
            server: if serial { ServerMode::Serial } else { ServerMode::Pipelined },
            buffered: if floor { BufferedFrames::Floor } else { BufferedFrames::CeilingLessOne },
            ..FastVaProblem::new(stream.expect("sensible"), Uplink::new(bandwidth, round_trip), models)
        };
        let sizes: Vec<Vec<Bytes>> =
            frames.iter().map(|sizes| sizes.map(Bytes::from_bytes).to_vec()).collect();
        let backlog = VideoBacklog { npu, uplink };
        let decision = max_accuracy(&problem, backlog, &sizes[0]).expect("sensible");
        if let Some(decision) = decision.planned() {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&decision.value));
        }
        let useful = max_utility(&problem, backlog, &sizes[0], weight).expect("sensible");
        prop_assert!(useful.value >= 0.0 && useful.value.is_finite());
        let best = optimal(&problem, &sizes).expect("sensible");
        for goal in [VideoGoal::Accuracy, VideoGoal::Utility { weight }] {
            offload(&problem, &sizes[0], goal).expect("sensible");
            deep_decision(&problem, backlog, &sizes[0], window, goal).expect("sensible");
            if let Some(alone) = local(&problem, sizes.len(), goal).expect("sensible").planned() {
                prop_assert!(alone.accuracy() <= best.most_accurate().accuracy() + 1e-12);
            }
        }
    }
}
