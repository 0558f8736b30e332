//! What users see: the tables on the terminal, the JSON for scripts, and the demo.

use std::path::Path;

use layerlab_tests::{file, layerlab, output, stderr, stdout, succeed};

/// Publishes alexnet on the symmetric phone, whose times are exact, in `folder`.
fn publish(folder: &Path) -> std::path::PathBuf {
    let out = folder.join("alexnet");
    let mut command = layerlab();
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--samples",
            "6",
            "--gap-us",
            "0",
            "--out",
        ])
        .arg(&out);
    command.arg("--model").arg(file("models/alexnet.onnx"));
    succeed(
        command
            .arg("--device")
            .arg(file("devices/asymmetric-fusion.toml")),
    );
    out
}

#[test]
fn devices() {
    insta::assert_snapshot!(succeed(layerlab().arg("devices")));
}

#[test]
fn devices_for_scripts() {
    let json = succeed(layerlab().args(["devices", "--json"]));
    let devices: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let simulated = |name| {
        let device = devices
            .as_array()?
            .iter()
            .find(|device| device["name"] == name)?;
        device["simulated"].as_bool()
    };
    assert_eq!(simulated("host"), Some(false));
    assert_eq!(simulated("mate10pro"), Some(true));
}

#[test]
fn a_model() {
    let model = file("models/variants/residual.onnx");
    insta::assert_snapshot!(succeed(layerlab().args(["model", "inspect"]).arg(model)));
}

#[test]
fn a_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = publish(folder.path());
    insta::assert_snapshot!(succeed(layerlab().arg("show").arg(&out)));
    let json = succeed(layerlab().args(["show", "--json"]).arg(&out));
    let view: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(view["header"]["simulated"], true);
    assert_eq!(view["times"].as_array().map(Vec::len), Some(2 * 11));
}

#[test]
fn a_sound_profile_is_checked_without_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = publish(folder.path());
    let checked = succeed(layerlab().arg("check").arg(&out));
    insta::with_settings!({filters => vec![(folder.path().to_str().expect("UTF-8"), "FOLDER")]}, {
        insta::assert_snapshot!(checked);
    });
}

/// From the samples alone: by least squares as the papers' segments allow it, and back again.
#[test]
fn times_are_derived_anew_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = publish(folder.path());
    let graph = folder.path().join("graph");
    let derive = |method: &str| {
        let mut command = layerlab();
        command.arg("derive").arg(&out).args(["--method", method]);
        command
    };
    succeed(derive("graph").arg("--out").arg(&graph));
    succeed(layerlab().arg("check").arg(&graph));
    let shown = succeed(layerlab().arg("show").arg(&out));
    assert_eq!(succeed(&mut derive("differencing")), shown);

    // On a device without noise both methods give the same numbers.
    let compared = succeed(layerlab().arg("compare").arg(&out).arg(&graph));
    assert!(compared.contains("0 of 32 numbers differ"), "{compared}");
    let other = folder.path().join("pixel6");
    let mut command = layerlab();
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--device",
            "pixel6",
            "--out",
        ])
        .arg(&other);
    succeed(command.arg("--model").arg(file("models/alexnet.onnx")));
    let json = succeed(layerlab().args(["compare", "--json"]).arg(&out).arg(&other));
    let numbers: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let numbers = numbers.as_array().expect("a list");
    assert!(
        numbers
            .iter()
            .filter(|number| number["significant"] == true)
            .count()
            > 20
    );

    let yolo = folder.path().join("yolo");
    let mut command = layerlab();
    command
        .args([
            "profile",
            "--design",
            "prefix-suffix",
            "--device",
            "pixel6",
            "--out",
        ])
        .arg(&yolo);
    succeed(command.arg("--model").arg(file("models/yolo-small.onnx")));
    let refused = output(layerlab().arg("compare").arg(&out).arg(&yolo));
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        stderr(&refused).contains("different models"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn help_names_every_command_and_every_exit_code() {
    let help = succeed(layerlab().arg("--help"));
    for word in [
        "demo",
        "profile",
        "devices",
        "doctor",
        "quarantine",
        "model",
        "check",
        "show",
        "compare",
        "derive",
        "set",
        "Exit codes",
        "130",
    ] {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
}

#[test]
fn without_arguments_it_explains_itself() {
    let output = output(&mut layerlab());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage:"));
}

#[test]
fn the_demo_ends_in_a_table_per_phone_and_sound_profiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("demo");
    let run = output(
        layerlab()
            .args([
                "demo",
                "--design",
                "prefix-suffix",
                "--samples",
                "6",
                "--out",
            ])
            .arg(&out),
    );
    assert!(run.status.success(), "{}", stderr(&run));
    assert_eq!(
        stderr(&run),
        "",
        "no progress bars where there is no terminal"
    );
    let said = stdout(&run);
    for phone in ["mate10pro", "oneplus7", "pixel6"] {
        for model in ["yolo-small", "alexnet"] {
            let profile = out.join(phone).join(model);
            assert!(said.contains(profile.to_str().expect("UTF-8")), "{said}");
            succeed(layerlab().arg("check").arg(&profile));
        }
    }
    let again = output(
        layerlab()
            .args([
                "demo",
                "--design",
                "prefix-suffix",
                "--samples",
                "6",
                "--out",
            ])
            .arg(&out),
    );
    assert_eq!(
        again.status.code(),
        Some(5),
        "a published profile is not overwritten unasked"
    );
    succeed(
        layerlab()
            .args([
                "demo",
                "--design",
                "prefix-suffix",
                "--samples",
                "6",
                "--replace",
                "--out",
            ])
            .arg(&out),
    );
}

/// The same seed gives the same profile, byte for byte, apart from its provenance.
#[test]
fn two_runs_with_the_same_seed_give_the_same_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, seed: &str| {
        let out = folder.path().join(name);
        let mut command = layerlab();
        command
            .args([
                "profile",
                "--design",
                "prefix-suffix",
                "--samples",
                "6",
                "--seed",
                seed,
                "--out",
            ])
            .arg(&out);
        command.arg("--model").arg(file("models/alexnet.onnx"));
        succeed(command.args(["--device", "pixel6"]));
        let tables = ["layers.csv", "times.csv", "segments.csv", "samples.csv"];
        let mut files =
            tables.map(|table| std::fs::read_to_string(out.join(table)).expect("a table"));
        files.sort();
        let json = std::fs::read_to_string(out.join("profile.json")).expect("profile.json");
        let mut json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        json.as_object_mut()
            .expect("an object")
            .remove("provenance");
        (files, json)
    };
    let first = run("first", "3");
    assert_eq!(first, run("again", "3"));
    assert_ne!(first, run("other", "4"));
}
