//! `layerlab plan min-energy`, and energy in sweeps.

use std::collections::BTreeSet;
use std::path::Path;

use layerlab_tests::{layerlab, output, root, succeed};

use super::assert_fails;
use super::metered::publish;

fn json(profile: &Path, more: &[&str]) -> serde_json::Value {
    let mut command = layerlab();
    command.args(["plan", "min-energy", "--json", "--no-cache"]);
    let said = succeed(command.arg(profile).args(more));
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn what_draws_least_follows_from_powers_and_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (frugal, hungry) = (folder.path().join("frugal"), folder.path().join("hungry"));
    publish(&frugal, [3_000, 500]);
    publish(&hungry, [300, 5_000]);
    let on_npu = json(&frugal, &["--time", "1s"]);
    assert_eq!(on_npu["plan"]["combination"], "11111111111");
    assert_eq!(on_npu["plan"]["is_optimum"], true);
    assert_eq!(on_npu["plan"]["keeps_limit"], true);
    let on_cpu = json(&hungry, &["--time", "1s"]);
    assert_eq!(on_cpu["plan"]["combination"], "00000000000");
    // Without a limit, with what is known of its accuracy.
    let unlimited = json(&frugal, &[]);
    assert_eq!(unlimited["plan"], on_npu["plan"]);
    assert!(unlimited["limit_time_ns"].is_null() && on_npu["limit_time_ns"].is_u64());
    assert!(unlimited["plan"]["accuracy"].is_f64());
    // What is left on the CPU for its accuracy draws more.
    let energy = |plan: &serde_json::Value| plan["plan"]["energy_nj"].as_i64().expect("nJ");
    let accurate = json(&frugal, &["--accuracy", "0.8"]);
    assert!(energy(&accurate) >= energy(&on_npu));
    assert!(accurate["plan"]["accuracy"].as_f64().expect("a fraction") >= 0.8);
    let said = succeed(
        layerlab()
            .args(["plan", "min-energy", "--time", "1s"])
            .arg(&frugal),
    );
    for part in [
        "energy ",
        "with all layers on cpu",
        "time ",
        "accuracy ",
        "simulated device",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_sweep_says_what_each_placement_draws_where_that_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    publish(&profile, [3_000, 500]);
    let sweep = |profile: &Path| {
        let mut command = layerlab();
        succeed(
            command
                .args(["plan", "sweep", "--steps", "4", "--no-cache"])
                .arg(profile),
        )
    };
    let csv = sweep(&profile);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let heads = reader.headers().expect("columns").clone();
    let place = |name: &str| heads.iter().position(|head| head == name).expect(name);
    let (goal, energy, low) = (
        place("goal"),
        place("energy_nj"),
        place("energy_ci95_low_nj"),
    );
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("rows");
    let goals: BTreeSet<&str> = rows.iter().map(|row| &row[goal]).collect();
    assert_eq!(
        goals,
        BTreeSet::from(["max-accuracy", "min-energy", "min-time"])
    );
    let planned = rows
        .iter()
        .filter(|row| &row[place("outcome")] == "planned");
    for row in planned {
        assert!(
            row[energy].parse::<i64>().is_ok() && !row[low].is_empty(),
            "{row:?}"
        );
    }
    let least = rows.iter().filter(|row| &row[goal] == "min-energy");
    assert_eq!(least.count(), 8);
    // No other placement of the same limit that keeps it draws less.
    for of_least in rows.iter().filter(|row| &row[goal] == "min-energy") {
        let limits = [place("limit_time_ns"), place("limit_accuracy")];
        let same = rows.iter().filter(|row| {
            &row[goal] != "min-energy"
                && limits.iter().all(|&limit| row[limit] == of_least[limit])
                && &row[place("keeps_limit")] == "true"
        });
        let drawn = |row: &csv::StringRecord| row[energy].parse::<i64>().expect("nJ");
        for other in same {
            assert!(drawn(of_least) <= drawn(other), "{of_least:?} {other:?}");
        }
    }
    let without = sweep(&root().join("profiles/published/oneplus7/vocnet-mini"));
    assert!(!without.contains("energy"));
}

#[test]
fn limits_that_make_no_sense_and_plans_without_energies_are_refused() {
    let published = root().join("profiles/published/oneplus7/vocnet-mini");
    let plan = |profile: &Path, more: &[&str]| {
        let mut command = layerlab();
        output(command.args(["plan", "min-energy"]).arg(profile).args(more))
    };
    let run = plan(&published, &["--time", "1s"]);
    assert_fails(
        &run,
        3,
        &["does not say what inferences draw", "--energy 30s"],
    );
    let both = plan(&published, &["--time", "1s", "--accuracy", "0.5"]);
    assert_eq!(both.status.code(), Some(2));
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    publish(&profile, [3_000, 500]);
    assert_fails(
        &plan(&profile, &["--time", "1us"]),
        8,
        &["no placement is fast enough"],
    );
    assert_fails(
        &plan(&profile, &["--accuracy", "2"]),
        3,
        &["must be a fraction"],
    );
    let reload = plan(&profile, &["--time", "1s", "--memory", "reload"]);
    assert_fails(&reload, 3, &["--memory resident"]);
}
