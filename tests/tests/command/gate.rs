//! `compare --gate`: a phone that became slower fails, and says where; the same phone again passes.

use std::path::{Path, PathBuf};

use layerlab_tests::{device, layerlab, model, output, root, stdout, succeed};

use super::assert_fails;
use super::metered;

const WORSE: i32 = 7;
const USAGE: i32 = 2;
const INPUT: i32 = 3;

/// A profile of the phone of this file.
fn publish(folder: &Path, phone: &Path, seed: &str) -> PathBuf {
    let out = folder.join(format!("profile-{seed}"));
    let mut command = layerlab();
    command.args(["profile", "--design", "local", "--seed", seed]);
    command.arg("--model").arg(model("alexnet"));
    command.arg("--device").arg(phone).arg("--out").arg(&out);
    succeed(&mut command);
    out
}

#[test]
fn a_phone_whose_cpu_became_slower_fails_and_the_same_one_again_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let phone = device("oneplus7");
    let good = publish(folder.path(), &phone, "1");
    let again = publish(folder.path(), &phone, "2");
    // The CPU's convolutions take a quarter longer.
    let text = std::fs::read_to_string(&phone).expect("a device file");
    let cpu = "convolution_flop_per_s = 19e9";
    assert!(text.contains(cpu), "the CPU's speed is elsewhere");
    let slower = folder.path().join("slower.toml");
    let changed = text.replacen(cpu, "convolution_flop_per_s = 15.2e9", 1);
    std::fs::write(&slower, changed).expect("room");
    let bad = publish(folder.path(), &slower, "3");

    let gate = |other: &Path, options: &[&str]| {
        let mut command = layerlab();
        command.arg("compare").arg(&good).arg(other).args(options);
        command
    };
    let passed = succeed(&mut gate(&again, &["--gate", "5%"]));
    assert!(
        passed.contains(" numbers are worse by more than 5 %"),
        "{passed}"
    );
    assert!(passed.contains("accuracy was not compared"), "{passed}");
    // What it could have seen, and what it takes to see more.
    let seen = passed
        .lines()
        .find(|line| line.trim_start().starts_with("cpu "));
    assert!(seen.is_some_and(|line| line.contains(" to ")), "{passed}");
    assert!(passed.contains("of each of them on cpu, "), "{passed}");
    let hard = succeed(&mut gate(&again, &["--gate", "5%", "--to-see", "0.2%"]));
    assert!(
        hard.contains("--samples ") && hard.contains(" --visits "),
        "{hard}"
    );

    let failed = output(&mut gate(&bad, &["--gate", "5%"]));
    assert_fails(&failed, WORSE, &["worse", "more than 5 %"]);
    let said = stdout(&failed);
    let row = |what: &str, on: &str| {
        said.lines()
            .any(|line| line.contains(what) && line.contains(on))
    };
    assert!(row("layer 1 C1", "cpu"), "{said}");
    assert!(row("whole model", "cpu"), "{said}");
    assert!(!row("", " npu "), "nothing became slower there: {said}");

    let failed = output(&mut gate(&bad, &["--gate", "5%", "--json"]));
    assert_fails(&failed, WORSE, &["worse"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&failed)).expect("JSON");
    assert_eq!(json["passed"], false);
    let sight = json["sight"].as_array().expect("a list");
    assert_eq!(sight.len(), 2);
    let numbers = json["numbers"].as_array().expect("a list");
    // Eleven layers and the whole on each processor, and ten cuts.
    assert_eq!(numbers.len(), 2 * 12 + 10);
    let tolerant = output(&mut gate(&bad, &["--gate", "60%", "--alpha", "0.001"]));
    assert!(tolerant.status.success(), "{}", stdout(&tolerant));

    // Against several good ones, how far they differ counts as well.
    let more = ["4", "5"].map(|seed| publish(folder.path(), &phone, seed));
    let against_all = |new: &Path, options: &[&str]| {
        let mut command = gate(&again, options);
        command.args(&more).arg(new);
        command
    };
    let failed = output(&mut against_all(&bad, &["--gate", "2%"]));
    assert_fails(&failed, WORSE, &["worse than the 4 before it", "2 %"]);
    let said = stdout(&failed);
    assert!(
        said.contains("good 4: ") && said.contains("other: "),
        "{said}"
    );
    let whole = said.lines().find(|line| line.contains("whole model"));
    assert!(whole.is_some_and(|line| line.contains(" cpu ")), "{said}");
    let new = publish(folder.path(), &phone, "6");
    let passed = succeed(&mut against_all(&new, &["--gate", "5%"]));
    assert!(passed.contains("the 4 good profiles differ"), "{passed}");
    let json = succeed(&mut against_all(&new, &["--gate", "5%", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["good"], &json["passed"]), (&4.into(), &true.into()));
    assert!(json["sight"][0]["both_longer"].is_null(), "{json}");
    // One of them is no new one, and two are too few.
    let refused = output(&mut against_all(&good, &["--gate", "5%"]));
    assert_fails(&refused, INPUT, &["are the same profile"]);
    let refused = output(gate(&again, &["--gate", "5%"]).arg(&new));
    assert_fails(
        &refused,
        INPUT,
        &["2 good profiles do not tell", "give one, or 4"],
    );

    // Which one is of something else is said by its folder.
    let other = root().join("profiles/published/oneplus7/vocnet-mini");
    let mut with_other = gate(&again, &["--gate", "5%"]);
    let refused = output(with_other.arg(&other).arg(&more[0]).arg(&new));
    let words = ["oneplus7/vocnet-mini: ", "of different things"];
    assert_fails(&refused, INPUT, &words);
    let mut beside_other = against_all(&other, &["--gate", "5%"]);
    let refused = output(&mut beside_other);
    assert_fails(&refused, INPUT, &["profile-1: ", "different models"]);

    for (options, word) in [
        (&["--gate", "100%"][..], "such as 5%"),
        (&["--gate", "5%", "--alpha", "1"][..], "such as 0.01"),
        (&["--alpha", "0.1"][..], "--gate"),
        (&["a-third-profile"][..], "--gate"),
    ] {
        let refused = output(&mut gate(&again, options));
        assert_eq!(refused.status.code(), Some(USAGE));
        let said = layerlab_tests::stderr(&refused);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_phone_that_draws_more_fails_though_it_is_as_fast() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, bad) = (folder.path().join("good"), folder.path().join("bad"));
    metered::publish(&good, [3_000, 500]);
    metered::publish(&bad, [3_000, 600]);
    let gate = |other: &Path, options: &[&str]| {
        let mut command = layerlab();
        command.args(["compare", "--gate", "5%"]).arg(&good);
        command.arg(other).args(options);
        command
    };
    succeed(&mut gate(&good, &[]));
    let failed = output(&mut gate(&bad, &[]));
    assert_fails(&failed, WORSE, &["worse", "more than 5 %"]);
    let said = stdout(&failed);
    assert!(said.contains("energy of the whole model"), "{said}");
    let rows = said.lines().filter(|line| line.contains("energy of "));
    for row in rows {
        assert!(row.contains(" npu ") && row.contains("J "), "{said}");
    }
    let failed = output(&mut gate(&bad, &["--json"]));
    let json: serde_json::Value = serde_json::from_str(&stdout(&failed)).expect("JSON");
    assert_eq!(json["has_energy"], true);
    let numbers = json["numbers"].as_array().expect("a list");
    let energies = numbers.iter().filter(|number| number["what"] == "energy");
    // Eleven layers and the whole on each processor.
    assert_eq!(energies.count(), 2 * 12);
    let without = root().join("profiles/published/oneplus7/vocnet-mini");
    let said = succeed(&mut gate(&without, &[]));
    assert!(said.contains("energy was not compared"), "{said}");
}
