//! What holds runs back: quarantines, publication, what nobody can give; and what is said of it.

use super::*;
use crate::job::VideoSpec;
use crate::record::{RecordChange, What};
use crate::state::PublicationOutcome;
use crate::talk::{DeviceState, RefusalCode};
use layerlab_campaign::LinkSettings;
use layerlab_profiles::link::LinkKind;

#[test]
fn a_device_that_is_lifted_out_of_quarantine_is_used_at_once_whatever_it_is_called() {
    for name in ["a", "the serial of a"] {
        let mut state = lab(&[]);
        let serial = "the serial of a".to_owned();
        let a = Device {
            serial,
            ..device("a")
        };
        state.devices(vec![a], now());
        submit(&mut state, spec(1, 0));
        assert_eq!(follow(&mut state, now()).start, [start(1, "a")]);
        let reason = "it fell".to_owned();
        let failed = StayOutcome::DeviceFailed { reason };
        state.left("a", failed, Spent::default(), later(1));
        assert_eq!(follow(&mut state, later(2)).start, []);
        assert_eq!(state.lift(name, later(3)), Answer::Done);
        assert_eq!(follow(&mut state, later(3)).start, [start(1, "a")]);
        // Nobody is in quarantine any more.
        let again = state.lift(name, later(3));
        assert!(matches!(again, Answer::Refused { .. }), "{again:?}");
    }
}

#[test]
fn a_device_that_a_user_puts_into_quarantine_is_left_alone() {
    let mut state = lab(&["a"]);
    let hour = std::time::Duration::from_secs(3600);
    state.quarantine("a", "its screen is being mended", hour, None, now());
    submit(&mut state, spec(1, 0));
    let decisions = follow(&mut state, later(1));
    assert_eq!((decisions.start, decisions.wake), (vec![], Some(later(60))));
    assert_eq!(follow(&mut state, later(60)).start, [start(1, "a")]);
}

#[test]
fn a_device_that_was_gone_too_long_is_used_as_soon_as_it_is_back() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(1, 0));
    assert_eq!(follow(&mut state, now()).start, [start(1, "a")]);
    state.devices(Vec::new(), later(1));
    let reason = "a is not plugged in".to_owned();
    let gone = StayOutcome::DeviceGone { reason };
    state.left("a", gone, Spent::default(), later(11));
    assert_eq!(follow(&mut state, later(11)).start, []);
    state.devices(vec![device("a")], later(12));
    assert_eq!(follow(&mut state, later(12)).start, [start(1, "a")]);
}

#[test]
fn a_run_that_lacks_only_publication_holds_no_device() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(2, 0));
    assert_eq!(follow(&mut state, now()).start, [start(1, "a")]);
    let unpublished = |reason: &str| StayOutcome::Unpublished {
        reason: reason.to_owned(),
    };
    let no_room = unpublished("there is no room");
    state.left("a", no_room, Spent::default(), later(1));
    assert_eq!(follow(&mut state, later(1)).start, [start(2, "a")]);
    let published = |run| StayOutcome::Published {
        folder: PathBuf::from(format!("profile {run}")),
        findings: Vec::new(),
        verdict: None,
    };
    state.left("a", published(2), Spent::default(), later(2));
    // The device is free, and the run is none of its business any more.
    assert_eq!(follow(&mut state, later(2)).start, []);
    let told = crate::status::status(&state, None, later(2)).waiting;
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].reason,
        "measured, and waits for publication: there is no room"
    );
    assert_eq!(state.due_publications(later(2)), [1]);
    let tried = state.due_publications(later(2));
    assert!(tried.is_empty(), "it is being tried");
    let still = PublicationOutcome::Unpublished {
        reason: "there is no room".to_owned(),
    };
    state.publication_tried(1, still, later(3));
    assert_eq!(follow(&mut state, later(3)).start, []);
    assert_eq!(state.due_publications(later(4)), [1]);
    let published = PublicationOutcome::Published {
        folder: PathBuf::from("profile 1"),
        findings: Vec::new(),
        verdict: None,
    };
    state.publication_tried(1, published, later(5));
    let (job, run) = state.run(1).expect("a run");
    assert_eq!((job.state, run.state), (JobState::Done, RunState::Done));
}

#[test]
fn a_run_whose_measurements_are_not_at_hand_goes_on_where_its_journal_is() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(1, 0));
    follow(&mut state, now());
    let reason = "there is no room".to_owned();
    let unpublished = StayOutcome::Unpublished { reason };
    state.left("a", unpublished, Spent::default(), later(1));
    assert_eq!(state.due_publications(later(2)), [1]);
    state.publication_tried(1, PublicationOutcome::NotAtHand, later(2));
    assert_eq!(follow(&mut state, later(2)).start, [start(1, "a")]);
}

#[test]
fn a_cancelled_run_is_not_published_any_more() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(1, 0));
    follow(&mut state, now());
    let reason = "there is no room".to_owned();
    let unpublished = StayOutcome::Unpublished { reason };
    state.left("a", unpublished, Spent::default(), later(1));
    assert_eq!(state.cancel(1, later(2)), Answer::Done);
    assert!(state.due_publications(later(2)).is_empty());
    assert_eq!(state.take_unwanted_publications(), [1]);
}

#[test]
fn a_job_of_too_many_runs_is_refused_in_a_sentence() {
    let mut state = lab(&["a", "b"]);
    let each = Selector {
        each: true,
        ..Selector::default()
    };
    let spec = JobSpec {
        devices: vec![each; 6],
        repeats: 1000,
        ..spec(1, 0)
    };
    let Answer::Refused { code, message } = state.submit(spec, true, now()) else {
        panic!("it is refused");
    };
    assert_eq!(code, RefusalCode::TooMuch);
    assert!(message.contains("12000 profiles"), "{message}");
    assert!(state.kept.jobs.is_empty());
}

/// Those that this processor answers.
fn frames(processor: &str) -> VideoSpec {
    VideoSpec {
        set_sha256: "ef".repeat(32),
        path: "frames.set".into(),
        processor: Some(processor.to_owned()),
        answers: None,
        frames: 500,
        seed: 1,
    }
}

#[test]
fn what_a_run_of_frames_gives_is_no_profile() {
    let mut state = lab(&["a"]);
    let spec = JobSpec {
        video: Some(frames("npu")),
        ..spec(1, 0)
    };
    submit(&mut state, spec);
    follow(&mut state, now());
    let published = StayOutcome::Published {
        folder: "profiles/run-1".into(),
        findings: vec!["its halves are small".to_owned()],
        verdict: None,
    };
    state.left("a", published, Spent::default(), later(1));
    let run = &state.kept.runs[&1];
    assert_eq!((run.state, &run.profile), (RunState::Done, &None));
    assert_eq!(run.video.as_deref(), Some("profiles/run-1".as_ref()));
    assert_eq!(run.published(), run.video.as_deref());
    let changes = state.take_changes();
    let told = changes.iter().find_map(|change| match change {
        RecordChange::Event(event) => match &event.what {
            What::VideoPublished { folder, findings } => Some((folder.clone(), findings.len())),
            What::Published { .. } => panic!("it is no profile"),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(told, Some(("profiles/run-1".into(), 1)));
}

/// A job for a link, of devices of any kind.
fn link() -> JobSpec {
    let link = LinkSettings::usual(
        "lab".to_owned(),
        LinkKind::Wifi,
        "192.168.1.2:7377".to_owned(),
        "token".into(),
    );
    JobSpec {
        name: "links".to_owned(),
        models: Vec::new(),
        link: Some(link),
        ..spec(1, 0)
    }
}

#[test]
fn a_link_is_measured_once_for_each_repeat_and_is_no_profile() {
    let mut state = lab(&["a"]);
    let link = JobSpec {
        repeats: 2,
        ..link()
    };
    submit(&mut state, link);
    assert_eq!(state.kept.runs.len(), 2);
    follow(&mut state, now());
    let published = StayOutcome::Published {
        folder: "profiles/run-1".into(),
        findings: Vec::new(),
        verdict: None,
    };
    state.left("a", published, Spent::default(), later(1));
    let run = &state.kept.runs[&1];
    let others = (&run.profile, &run.video);
    assert_eq!((run.state, others), (RunState::Done, (&None, &None)));
    assert_eq!(run.link.as_deref(), Some("profiles/run-1".as_ref()));
    assert_eq!(run.published(), run.link.as_deref());
    let is_told = |change: &RecordChange| match change {
        RecordChange::Event(event) => matches!(event.what, What::LinkPublished { .. }),
        _ => false,
    };
    assert!(state.take_changes().iter().any(is_told));
}

#[test]
fn simulated_devices_measure_no_link() {
    let mut state = lab(&["a", "b"]);
    for device in state.kept.devices.values_mut() {
        device.simulated = true;
    }
    // The same devices are good for profiles, whichever job is asked first.
    let mut profiles = spec(1, 0);
    profiles.priority = 1;
    submit(&mut state, profiles);
    let said = state.submit(link(), true, now());
    let Answer::Submitted { job, warnings, .. } = said else {
        panic!("it is taken: {said:?}");
    };
    assert!(
        warnings[0].contains("is simulated, and has no link such as lab"),
        "{warnings:?}"
    );
    follow(&mut state, now());
    let of_job = |run: &&Run| run.job == job;
    let states: Vec<RunState> = (state.kept.runs.values().filter(of_job))
        .map(|run| run.state)
        .collect();
    assert_eq!(states, [RunState::Queued]);
    let running = state
        .kept
        .runs
        .values()
        .filter(|run| run.state == RunState::Running);
    assert_eq!(running.count(), 1);
    // A phone that is not simulated does it.
    if let Some(device) = state.kept.devices.get_mut("b") {
        device.simulated = false;
    }
    follow(&mut state, now());
    let run = state.kept.runs.values().find(of_job).expect("a run");
    assert_eq!(run.phone.as_deref(), Some("b"));
}

#[test]
fn what_no_device_gives_is_said_when_a_job_is_submitted_and_as_long_as_it_waits() {
    let mut state = lab(&["a", "b"]);
    state.rules.pools.insert("night".to_owned());
    state.processors("a", vec!["cpu".to_owned(), "npu".to_owned()]);
    state.processors("b", vec!["cpu".to_owned()]);
    let asking = |selector: Selector, processors: &[&str]| {
        let mut spec = spec(1, 0);
        spec.devices = vec![selector];
        spec.measure.processors = processors.iter().map(|it| (*it).to_owned()).collect();
        spec
    };
    let named = |name: &str| Selector {
        serial: Some(name.to_owned()),
        ..Selector::default()
    };
    let pool = Selector {
        pool: Some("day".to_owned()),
        ..Selector::default()
    };
    let cases = [
        (asking(pool, &[]), "no pool `day` (it has night)"),
        (asking(named("z"), &[]), "has seen no device with serial z"),
        (
            asking(named("b"), &["gpu"]),
            "b has no processor `gpu`, but cpu",
        ),
        (asking(Selector::default(), &["gpu"]), "a has no processor"),
        (asking(Selector::default(), &["npu"]), ""),
        (
            JobSpec {
                video: Some(frames("gpu")),
                ..asking(named("b"), &[])
            },
            "b has no processor `gpu`, but cpu",
        ),
    ];
    for (number, (spec, problem)) in (1..).zip(cases) {
        let Answer::Submitted { warnings, .. } = state.submit(spec, true, now()) else {
            panic!("it is taken: a device may come");
        };
        let impossible = crate::status::status(&state, None, now()).impossible;
        let told: Vec<&String> = impossible
            .iter()
            .filter(|(job, _)| *job == number)
            .map(|(_, problem)| problem)
            .collect();
        assert_eq!(told, warnings.iter().collect::<Vec<_>>());
        let said = warnings.join("; ");
        assert_eq!(said.is_empty(), problem.is_empty(), "{said}");
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn what_a_run_waits_for_is_the_real_cause_and_since_and_free_at_are_true() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(2, 0));
    follow(&mut state, now());
    state.took("a", 1, vec![600_000]);
    let status = |state: &LabState, at| crate::status::status(state, None, at);
    let reasons = |state: &LabState, at| -> Vec<String> {
        let waiting = status(state, at).waiting.into_iter();
        waiting.map(|waiting| waiting.reason).collect()
    };
    // At its gate for four minutes.
    let battery = "battery at 20 %, 30 % are needed";
    state.not_ready("a", Some(battery.to_owned()), later(1));
    let a = &status(&state, later(5)).devices[0];
    assert_eq!(
        (a.state, a.since, a.free_at),
        (DeviceState::Waiting, later(1), None)
    );
    let not_ready = format!("a is not ready: {battery}");
    assert_eq!(reasons(&state, later(5)), [not_ready.as_str(), &not_ready]);
    // On its run, which takes ten minutes.
    state.not_ready("a", None, later(5));
    let a = &status(&state, later(6)).devices[0];
    assert_eq!(
        (a.state, a.since, a.free_at),
        (DeviceState::Busy, later(5), Some(later(14)))
    );
    // It takes longer than usual: nobody knows how long.
    assert_eq!(status(&state, later(20)).devices[0].free_at, None);
    let reason = "it fell".to_owned();
    let failed = StayOutcome::DeviceFailed { reason };
    state.left("a", failed, Spent::default(), later(20));
    let a = &status(&state, later(30)).devices[0];
    assert_eq!(
        (a.state, a.since, a.free_at),
        (DeviceState::Quarantined, later(20), Some(later(80)))
    );
    let reasons = reasons(&state, later(30));
    assert!(
        reasons[0].contains("a is quarantined until") && reasons[0].ends_with(": it fell"),
        "{reasons:?}"
    );
    let a = &status(&state, later(90)).devices[0];
    assert_eq!((a.state, a.since), (DeviceState::Free, later(80)));
}
