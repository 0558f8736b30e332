//! A phone of the lab becomes slower: its next profile is told to be worse, until that is accepted as the baseline.

use std::path::{Path, PathBuf};

use layerlab_lab::record::{RunState, Verdict};
use layerlab_tests::device;
use layerlab_tests::lab::{Daemon, Lab};

use super::job;

const WORSE: i32 = 7;
const INPUT: i32 = 3;

/// The speed of the CPU in the device file, and that of one whose convolutions take a quarter longer.
const CPU: [&str; 2] = [
    "convolution_flop_per_s = 19e9",
    "convolution_flop_per_s = 15.2e9",
];

/// Measures once more, with this seed, by a daemon that has just begun, and gives the profile's folder and verdict.
fn measured(lab: &Lab, seed: usize) -> (PathBuf, Option<Verdict>) {
    let daemon: Daemon = lab.daemon();
    lab.wait_until_open();
    let measure = format!("[measure]\ndesign = \"local\"\nseed = {seed}\n");
    let devices = "[[devices]]\nabi = \"x86_64\"\n";
    lab.submit(&job("alexnet", &format!("{devices}{measure}")));
    lab.succeed(&["job", "wait", &seed.to_string(), "--timeout", "2m"]);
    daemon.stop();
    let run = lab.kept().runs.remove(&(seed as i64)).expect("a run");
    assert_eq!(run.state, RunState::Done, "what is worse has not failed");
    (run.profile.expect("published"), run.verdict)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_profile_that_is_worse_is_told_and_its_successors_are_until_it_is_the_baseline() {
    let phones = tempfile::tempdir().expect("a folder");
    let phone = phones.path().join("phone.toml");
    let file = std::fs::read_to_string(device("oneplus7")).expect("a device file");
    assert!(file.contains(CPU[0]), "the CPU's speed is elsewhere");
    std::fs::write(&phone, &file).expect("room");
    let lab = Lab::new(&format!(
        "[phones]\nlocal = [{:?}]\n[gates]\nload-percent = 100\n",
        text(&phone)
    ));
    let (first, verdict) = measured(&lab, 1);
    assert_eq!(verdict, None, "nothing was there before");
    let (again, verdict) = measured(&lab, 2);
    let verdict = verdict.expect("one before it");
    assert_eq!((&verdict.against, verdict.is_worse()), (&first, false));
    assert_eq!(verdict.repeat_alarmed, Some(false));

    std::fs::write(&phone, file.replacen(CPU[0], CPU[1], 1)).expect("room");
    let (slower, verdict) = measured(&lab, 3);
    let verdict = verdict.expect("two before it");
    assert_eq!((&verdict.against, verdict.is_worse()), (&again, true));
    let names = |part: &str| verdict.worse.iter().any(|one| one.contains(part));
    assert!(names("layer 1 C1 on cpu: +2"), "{:?}", verdict.worse);
    assert!(!names("npu"), "{:?}", verdict.worse);

    let jobs = lab.succeed(&["jobs", "--all"]);
    assert_eq!(jobs.matches("1/1, 1 worse").count(), 1, "{jobs}");
    let shown = lab.succeed(&["job", "show", "3"]);
    let told = format!("worse than {}", again.display());
    assert!(shown.contains(&told), "{shown}");
    let report = lab.succeed(&["report"]);
    assert!(
        report.starts_with("3 of 3 profiles published, 1 worse than before."),
        "{report}"
    );
    for part in ["Worse than before", "Alarms between repeats", "50.0 %"] {
        assert!(report.contains(part), "{part} in {report}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&lab.succeed(&["report", "--json"])).expect("JSON");
    let gate = &json["gate"][0];
    assert_eq!((&gate["repeats"], &gate["alarms"]), (&2.into(), &1.into()));
    let verdict = &json["jobs"][2]["runs"][0]["published"]["verdict"];
    assert_eq!(verdict["is_baseline"], false);

    // Nobody has accepted it: the next one is compared with the last good one, too.
    let (also_slower, verdict) = measured(&lab, 4);
    let verdict = verdict.expect("three before it");
    assert_eq!((&verdict.against, verdict.is_worse()), (&again, true));
    assert_eq!(verdict.repeat_alarmed, Some(false));
    let gate = ["compare", "--gate", "5%", "--baseline", text(&also_slower)];
    let refused = lab.run(&gate);
    assert_eq!(refused.status.code(), Some(INPUT));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("layerlab baseline set PROFILE"), "{said}");

    let set = lab.succeed(&["baseline", "set", text(&slower)]);
    assert!(set.contains("is the baseline of alexnet on"), "{set}");
    lab.succeed(&gate);
    let (_, verdict) = measured(&lab, 5);
    let verdict = verdict.expect("a baseline");
    assert_eq!((&verdict.against, verdict.is_worse()), (&slower, false));
    assert!(verdict.is_baseline);

    // The other way round: with the first as the baseline, it is worse.
    lab.succeed(&["baseline", "set", text(&first)]);
    assert_eq!(lab.run(&gate).status.code(), Some(WORSE));
    let list = lab.succeed(&["baseline", "list"]);
    assert!(
        list.contains(text(&first)) && !list.contains(text(&slower)),
        "{list}"
    );
    // Profiles that later ones are compared with stay, however old.
    let prune = [
        "lab",
        "prune",
        "--older-profiles",
        "--budget",
        "0B",
        "--json",
    ];
    let goes = lab.succeed(&prune);
    assert!(goes.contains(text(&again)), "{goes}");
    assert!(!goes.contains(&format!("{}\"", first.display())), "{goes}");
    lab.succeed(&["baseline", "remove", text(&first)]);
    let goes = lab.succeed(&prune);
    assert!(goes.contains(&format!("{}\"", first.display())), "{goes}");
    assert_eq!(
        lab.run(&["baseline", "remove", text(&first)]).status.code(),
        Some(INPUT)
    );
}
