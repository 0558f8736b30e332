//! Profiles against those before them: good ones, worse ones, and a baseline.

use std::path::PathBuf;

use jiff::Timestamp;
use layerlab_profiles::Nanos;
use layerlab_profiles::document::Method;

use super::*;
use crate::baseline::Baselines;
use crate::record::RunState;

const JUDGING: Judging = Judging {
    settings: GateSettings {
        tolerance: 0.05,
        alpha: 0.01,
    },
    good: 1,
};

/// A published profile whose every time on the CPU is so many per cent longer, in a folder of its own.
fn slower(folder: &Path, percent: u64) -> (PathBuf, Profile) {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
    let mut profile = Profile::read(&published.join("oneplus7/vocnet-mini")).expect("a profile");
    let longer = |time: Nanos| Nanos::from_nanos(time.as_nanos() * (100 + percent) / 100);
    for sample in profile
        .samples
        .iter_mut()
        .filter(|one| one.processor == "cpu")
    {
        sample.duration = longer(sample.duration);
    }
    for block in profile
        .blocks
        .iter_mut()
        .filter(|one| one.processor == "cpu")
    {
        block.before.sentinel = longer(block.before.sentinel);
        block.after.sentinel = longer(block.after.sentinel);
    }
    let profile = profile.rederive(Method::Graph).expect("derived before");
    let out = folder.join(format!("slower-{percent}"));
    if !out.exists() {
        std::fs::create_dir(&out).expect("room");
        profile.write(&out).expect("room");
    }
    (out, profile)
}

fn run(number: i64, profile: &Path, verdict: Option<Verdict>) -> Run {
    Run {
        number,
        state: RunState::Done,
        profile: Some(profile.to_owned()),
        verdict,
        ..Run::default()
    }
}

#[test]
fn a_profile_is_compared_with_the_last_good_one_and_not_with_one_that_was_worse() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, _) = slower(folder.path(), 0);
    let (bad, of_bad) = slower(folder.path(), 30);
    let first = run(1, &good, None);
    let found = verdict(&of_bad, &bad, std::slice::from_ref(&first), None, JUDGING);
    let found = found.expect("one before it");
    assert!(found.is_worse(), "{found:?}");
    assert_eq!(
        (found.against.as_path(), found.is_baseline),
        (&*good, false)
    );
    let named = found.worse.iter().any(|one| one.contains("on cpu: +30"));
    assert!(named, "{:?}", found.worse);
    assert!(
        !found.worse.iter().any(|one| one.contains("npu")),
        "{found:?}"
    );
    // Nothing is known to have changed: it repeats the first.
    assert_eq!((found.changed.len(), found.repeat_alarmed), (0, Some(true)));

    // The next one is as slow: it is still worse than the last good one, though no alarm beside the one before it.
    let second = run(2, &bad, Some(found));
    let (again, of_again) = slower(folder.path(), 31);
    let earlier = [second, first];
    let found = verdict(&of_again, &again, &earlier, None, JUDGING).expect("two before it");
    assert!(found.is_worse(), "{found:?}");
    assert_eq!(found.against, good);
    assert_eq!(found.repeat_alarmed, Some(false));

    // Until somebody says that so it shall be.
    let baselines = Baselines::in_state(folder.path());
    let set = baselines
        .set(&bad, None, Timestamp::UNIX_EPOCH)
        .expect("room");
    let found = verdict(&of_again, &again, &earlier, Some(&set), JUDGING);
    let found = found.expect("a baseline");
    assert!(!found.is_worse() && found.is_baseline, "{found:?}");
}

#[test]
fn what_is_of_another_device_or_gone_is_not_compared_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let (own, profile) = slower(folder.path(), 0);
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
    let others = [
        run(3, &published.join("mate10pro/vocnet-mini"), None),
        run(2, &folder.path().join("gone"), None),
        // What another daemon published that was killed then.
        run(1, &own, None),
    ];
    assert_eq!(verdict(&profile, &own, &others, None, JUDGING), None);
}

/// A device whose days differ by more than its samples tell raises an alarm beside the last good profile, and none beside
/// several that differ as much; what was worse is not among them.
#[test]
fn beside_several_good_ones_how_far_these_differ_is_no_alarm() {
    let folder = tempfile::tempdir().expect("a folder");
    let days = [0, 20, 3, 17, 9].map(|percent| slower(folder.path(), percent).0);
    let runs = days.iter().zip(1..);
    let mut earlier: Vec<Run> = runs
        .map(|(profile, number)| run(number, profile, None))
        .collect();
    earlier.reverse();
    let (own, profile) = slower(folder.path(), 18);
    let several = Judging { good: 5, ..JUDGING };
    let beside = |earlier: &[Run], judging| {
        let found = verdict(&profile, &own, earlier, None, judging);
        found.expect("some before it")
    };
    let alone = beside(&earlier, JUDGING);
    assert!(alone.is_worse() && alone.good == 1, "{alone:?}");
    assert_eq!(alone.repeat_alarmed, Some(true));
    let among = beside(&earlier, several);
    assert!(!among.is_worse(), "{among:?}");
    assert_eq!((among.good, among.repeat_alarmed), (5, Some(false)));
    assert_eq!(among.against, days[4], "the newest of them");
    assert!(
        among
            .reference()
            .starts_with("the last 5 good profiles, the newest of them ")
    );

    // No more than were asked for, the newest; as long as there are fewer, the last one alone.
    let four = Judging { good: 4, ..JUDGING };
    assert_eq!(beside(&earlier, four).good, 4);
    assert_eq!(beside(&earlier[1..], several).good, 1);
    // What lies before a known change is not among them.
    let mut of_another_system = Profile::read(&days[1]).expect("a profile");
    of_another_system.header.provenance.device_system = "an older one".to_owned();
    let changed = folder.path().join("of-an-older-system");
    std::fs::create_dir(&changed).expect("room");
    of_another_system.write(&changed).expect("room");
    let mut with_change = earlier.clone();
    with_change[3].profile = Some(changed);
    assert_eq!(beside(&with_change, four).good, 1);
    // One that was worse is not among them.
    let mut with_worse = earlier;
    with_worse[1].verdict = Some(Verdict {
        worse: vec!["layer 1".to_owned()],
        ..Verdict::default()
    });
    assert_eq!(beside(&with_worse, several).good, 1);
    assert_eq!(beside(&with_worse, four).good, 4);
}
