//! Baselines that are set, replaced, told apart by their devices, and changed behind one's back.

use super::*;

fn published(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
    folder.join(name).canonicalize().expect("a profile")
}

fn subject(name: &str) -> ProfileSubject {
    let profile = Profile::read(&published(name)).expect("a profile");
    ProfileSubject::of(&profile.header)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

const VOCNET: &str = "oneplus7/vocnet-mini";

#[test]
fn a_baseline_is_found_by_what_it_is_of_until_it_is_removed() {
    let state = tempfile::tempdir().expect("a folder");
    let baselines = Baselines::in_state(state.path());
    assert_eq!(baselines.list().expect("none yet"), []);
    let set = baselines
        .set(&published(VOCNET), None, at(1))
        .expect("room");
    // Another process, later.
    let again = Baselines::in_state(state.path());
    let of = |name: &str, device| again.of(&subject(name), device).expect("a file");
    assert_eq!(of(VOCNET, None), Some(set.clone()));
    assert_eq!(of(VOCNET, Some("R58")), Some(set.clone()));
    assert_eq!(of("oneplus7/yolo-mini", None), None);
    assert_eq!(of("mate10pro/vocnet-mini", None), None);
    assert!(set.read().is_ok());
    // Once more, it takes its own place.
    let later = again.set(&published(VOCNET), None, at(2)).expect("room");
    assert_eq!(again.list().expect("a file"), [later]);
    assert!(again.remove(&published(VOCNET)).expect("room"));
    assert!(!again.remove(&published(VOCNET)).expect("room"));
    assert_eq!(of(VOCNET, None), None);
}

#[test]
fn phones_of_one_kind_have_baselines_of_their_own() {
    let state = tempfile::tempdir().expect("a folder");
    let baselines = Baselines::in_state(state.path());
    for (device, second) in [(None, 1), (Some("R58"), 2), (Some("R59"), 3)] {
        let set = baselines.set(&published(VOCNET), device, at(second));
        set.expect("room");
    }
    let subject = subject(VOCNET);
    let found = |device: &str| {
        let found = baselines.of(&subject, Some(device)).expect("a file");
        found.and_then(|one| one.lab_device)
    };
    assert_eq!(found("R58").as_deref(), Some("R58"));
    assert_eq!(found("R59").as_deref(), Some("R59"));
    // That of any device is for those that have none of their own.
    assert_eq!(found("R60"), None);
    let several = baselines.of(&subject, None).expect_err("one of three");
    let said = several.to_string();
    assert!(said.contains("any, R58, R59"), "{said}");
}

#[test]
fn a_baseline_that_was_changed_since_is_refused() {
    let (state, folder) = (tempfile::tempdir(), tempfile::tempdir());
    let (state, folder) = (state.expect("a folder"), folder.expect("a folder"));
    for file in published(VOCNET).read_dir().expect("a profile") {
        let file = file.expect("a file").path();
        let name = file.file_name().expect("a name");
        std::fs::copy(&file, folder.path().join(name)).expect("room");
    }
    let baselines = Baselines::in_state(state.path());
    let set = baselines.set(folder.path(), None, at(1)).expect("room");
    let header = folder.path().join("profile.json");
    let text = std::fs::read_to_string(&header).expect("there");
    std::fs::write(&header, text + "\n").expect("room");
    let refused = set.read().expect_err("changed");
    assert!(
        matches!(refused, BaselineError::Changed { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("baseline set"), "{refused}");
}

#[test]
fn a_file_that_is_none_and_one_of_a_newer_layerlab_are_named() {
    let state = tempfile::tempdir().expect("a folder");
    let baselines = Baselines::in_state(state.path());
    std::fs::create_dir(state.path().join("lab")).expect("room");
    let file = state.path().join("lab/baselines.json");
    for (text, word) in [
        ("{", "remove the file"),
        (r#"{"version": 2, "baselines": [], "more": 1}"#, "newer"),
    ] {
        std::fs::write(&file, text).expect("room");
        let said = baselines.list().expect_err("unreadable").to_string();
        assert!(said.contains("baselines.json"), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
