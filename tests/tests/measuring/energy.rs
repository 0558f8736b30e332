//! Energy beside times: what a simulated phone's layers draw follows from the powers in its file, which the code under test never
//! sees, however late, off, noisy and coarse its gauge is.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::check::{Severity, check_directory};
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_tests::proof::energy::{MeteredPhone, PHONE};
use layerlab_tests::{layerlab, model, output, stderr, stdout, succeed};

fn phone(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = PHONE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the device file");
        text = text.replace(from, to);
    }
    let path = folder.join("phone.toml");
    std::fs::write(&path, text).expect("room");
    path
}

fn profile(device: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = layerlab();
    command.args(["profile", "--design", "local", "--samples", "10", "--model"]);
    command.arg(model("alexnet")).arg("--device").arg(device);
    command.arg("--out").arg(out).args(more);
    command
}

#[test]
fn the_powers_of_the_device_file_are_found_and_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = phone(folder.path(), &[]);
    let out = folder.path().join("profile");
    let said = succeed(&mut profile(&device, &out, &["--energy", "30s"]));
    for part in [
        "Energy by a simulated gauge",
        "3 visits",
        "cpu: draws",
        "npu: draws",
        "all layers:",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (read, findings) = check_directory(&out).expect("a profile");
    let wrong: Vec<_> = findings
        .iter()
        .filter(|one| one.severity == Severity::Error)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let energy = read.energy.as_ref().expect("energies");
    let planted = MeteredPhone::new(PHONE, &model("alexnet"));
    for (name, kind) in [
        ("cpu", ProcessorKind::Cpu),
        ("npu", ProcessorKind::Accelerator),
    ] {
        let found = energy.of_processor(name).expect("measured");
        let (watts, times) = planted.planted(kind);
        let off = found.busy_uw as f64 / 1e6 / watts - 1.0;
        assert!(off.abs() < 0.03, "{name}: {off}");
        let whole = layerlab_profiles::Segment::whole(11);
        let drawn = times.segment(whole).as_nanos() as f64 * watts;
        let off = found.whole_nj.expect("it runs all").as_nanojoules() as f64 / drawn - 1.0;
        assert!(off.abs() < 0.03, "{name}, all layers: {off}");
    }
    assert_eq!(energy.layers.len(), 22);
    let shown = succeed(layerlab().arg("show").arg(&out));
    assert!(shown.contains("Energy by a simulated gauge"), "{shown}");
    let json = succeed(layerlab().args(["show", "--json"]).arg(&out));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["energy"]["layers"].as_array().map(Vec::len), Some(22));
    // The same seed gives the same windows.
    let again = folder.path().join("again");
    succeed(&mut profile(&device, &again, &["--energy", "30s"]));
    assert_eq!(
        Profile::read(&again).expect("a profile").energy,
        read.energy
    );
}

#[test]
fn a_gauge_of_a_phone_that_is_plugged_in_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = phone(folder.path(), &[("[gauge]", "[gauge]\npowered = true")]);
    let out = folder.path().join("profile");
    let run = output(&mut profile(&device, &out, &["--energy", "30s"]));
    assert_eq!(run.status.code(), Some(4), "{}", stderr(&run));
    let said = stderr(&run);
    assert!(
        said.contains("unplug it") && said.contains("suspend charging"),
        "{said}"
    );
    assert!(stdout(&run).is_empty() && !out.exists());
}

#[test]
fn what_has_no_meter_or_too_short_windows_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = PHONE.find("[gauge]").expect("a gauge");
    let end = PHONE.find("[[processor]]").expect("processors");
    let device = phone(folder.path(), &[(&PHONE[begin..end], "")]);
    let out = folder.path().join("profile");
    let refused = |more: &[&str], code: i32, part: &str| {
        let run = output(&mut profile(&device, &out, more));
        let said = stderr(&run);
        assert_eq!(run.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(!out.exists());
    };
    refused(&["--energy", "30s"], 4, "[gauge]");
    refused(&["--energy", "30s", "--meter", "rapl"], 4, "--meter auto");
    refused(&["--energy", "29s"], 2, "write 30s");
    refused(&["--energy", "30s", "--meter", "gauge"], 2, "fuel-gauge");
    refused(&["--meter", "rapl"], 2, "--energy");
    refused(
        &["--energy", "30s", "--energy-visits", "2"],
        2,
        "energy-visits",
    );
}
