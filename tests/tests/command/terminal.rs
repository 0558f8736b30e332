//! What users see: the tables on the terminal, the JSON for scripts, and the demo.

use std::path::{Path, PathBuf};

use layerlab::exit::Code;
use layerlab_tests::published::Published;
use layerlab_tests::{FEW, device, layerlab, model, output, profile, stderr, stdout, succeed};

use super::assert_fails;

/// Publishes alexnet on the asymmetric phone, whose times are exact, in `folder`.
fn publish(folder: &Path) -> PathBuf {
    let out = folder.join("alexnet");
    let (model, device) = (model("alexnet"), device("asymmetric-fusion"));
    let mut command = layerlab();
    succeed(profile(&mut command, FEW, model, device, &out).args(["--gap-us", "0"]));
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
    let model = model("variants/residual");
    insta::assert_snapshot!(succeed(layerlab().args(["model", "inspect"]).arg(model)));
}

#[test]
fn a_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = publish(folder.path());
    // Every run has a digest of its own, for it has a time of its own.
    insta::with_settings!({filters => vec![("[0-9a-f]{64}", "DIGEST")]}, {
        insta::assert_snapshot!(succeed(layerlab().arg("show").arg(&out)));
    });
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
    let folder = folder.path().to_str().expect("UTF-8");
    insta::with_settings!({filters => vec![(folder, "FOLDER"), ("[0-9a-f]{64}", "DIGEST")]}, {
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
    // What is not published has no digest.
    let tables = shown.split("\ndigest: ").next().map(str::trim_end);
    assert_eq!(
        Some(succeed(&mut derive("differencing")).trim_end()),
        tables
    );

    // On a device without noise both methods give the same numbers.
    let compared = succeed(layerlab().arg("compare").arg(&out).arg(&graph));
    assert!(compared.contains("0 of 32 numbers differ"), "{compared}");
    let other = folder.path().join("pixel6");
    let mut command = layerlab();
    succeed(profile(
        &mut command,
        100,
        model("alexnet"),
        "pixel6",
        &other,
    ));
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
    succeed(profile(
        &mut command,
        FEW,
        model("yolo-small"),
        "pixel6",
        &yolo,
    ));
    let refused = output(layerlab().arg("compare").arg(&out).arg(&yolo));
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        stderr(&refused).contains("different models"),
        "{}",
        stderr(&refused)
    );
}

/// In the order in which they are listed.
pub(crate) const COMMANDS: [&str; 41] = [
    "setup",
    "demo",
    "profile",
    "evaluate",
    "daemon",
    "submit",
    "jobs",
    "job",
    "reserve",
    "release",
    "devices",
    "hosts",
    "doctor",
    "report",
    "watch",
    "profiles",
    "login",
    "logout",
    "lab",
    "config",
    "runtime",
    "token",
    "quarantine",
    "model",
    "edge-server",
    "link",
    "tensors",
    "video",
    "check",
    "key",
    "show",
    "plan",
    "export",
    "compare",
    "baseline",
    "derive",
    "interpolate",
    "set",
    "quantise",
    "completions",
    "man",
];

#[test]
fn help_names_every_command_and_every_exit_code() {
    let help = succeed(layerlab().arg("--help"));
    let (_, rest) = help.split_once("Commands:\n").expect("commands");
    let (list, _) = rest.split_once("\n\n").expect("their end");
    // A name is indented by two; what follows on further lines, by more.
    let name = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    let listed: Vec<String> = list.lines().filter_map(name).collect();
    assert_eq!(listed, [COMMANDS.as_slice(), &["help"]].concat());
    for command in COMMANDS {
        let help = succeed(layerlab().args([command, "--help"]));
        assert!(
            help.contains(&format!("Usage: layerlab {command}")),
            "{help}"
        );
    }

    let (_, codes) = help.split_once("Exit codes: ").expect("exit codes");
    let codes = codes.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |code: &str| code.split(' ').next().expect("a number").parse::<u8>();
    let codes: Vec<u8> = codes
        .split("; ")
        .map(|it| number(it).expect("a number"))
        .collect();
    let every = [
        Code::Internal,
        Code::Usage,
        Code::Input,
        Code::Device,
        Code::Output,
        Code::Check,
        Code::Worse,
        Code::NoPlan,
        Code::Interrupted,
    ];
    let done = std::iter::once(0);
    assert_eq!(
        codes,
        done.chain(every.map(|code| code as u8)).collect::<Vec<_>>()
    );
}

#[test]
fn without_arguments_it_explains_itself() {
    let output = output(&mut layerlab());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage:"));
}

#[test]
fn the_demo_ends_in_a_plan_that_was_run_and_a_page_of_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("demo");
    let page = out.join("index.html");
    let demo = || {
        let mut command = layerlab();
        command.args(["demo", "--design", "prefix-suffix", "--samples"]);
        command.arg(FEW.to_string());
        command.args(["--images", "60", "--placements", "40"]);
        command.arg("--out").arg(&out);
        command
    };
    // What is there is not overwritten unasked, be it the last profile or the page, and nothing is made beside it.
    let last = out.join("oneplus7/vocnet-mini");
    for taken in [&last.join("profile.json"), &page] {
        std::fs::create_dir_all(taken.parent().expect("a folder")).expect("room");
        std::fs::write(taken, "somebody's").expect("room");
        let refused = output(&mut demo());
        assert_fails(&refused, 5, &["exists already", "--replace"]);
        assert_eq!(stdout(&refused), "");
        let kept = std::fs::read_to_string(taken).expect("it is there");
        assert_eq!(kept, "somebody's");
        let phones = ["mate10pro", "pixel6", "trio"];
        assert!(phones.iter().all(|phone| !out.join(phone).exists()));
    }

    // A desktop that opens pages with a program that notes which.
    let desktop = tempfile::tempdir().expect("a folder");
    let (program, opened) = (
        desktop.path().join("xdg-open"),
        desktop.path().join("opened"),
    );
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
    std::fs::write(&program, script).expect("room");
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("ours");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", desktop.path().display());
    let run = output(demo().args(["--replace", "--open"]).env("PATH", path));
    assert!(run.status.success(), "{}", stderr(&run));
    assert_eq!(
        stderr(&run),
        "",
        "no progress bars where there is no terminal"
    );
    let said = stdout(&run);
    for phone in ["mate10pro", "oneplus7", "pixel6", "trio"] {
        for model in ["yolo-small", "alexnet"] {
            let profile = out.join(phone).join(model);
            assert!(said.contains(profile.to_str().expect("UTF-8")), "{said}");
            succeed(layerlab().arg("check").arg(&profile));
        }
    }
    succeed(
        layerlab()
            .arg("check")
            .arg(out.join("oneplus7/vocnet-mini")),
    );
    for words in [
        "accuracy lost, % points",
        "Running the plan on the phone",
        "predicted",
        "measured",
    ] {
        assert!(said.contains(words), "`{words}` in {said}");
    }
    assert!(
        said.trim_end().ends_with(page.to_str().expect("UTF-8")),
        "{said}"
    );
    let html = std::fs::read_to_string(&page).expect("the page");
    // The trade-off, the trained network, and two others on four phones.
    assert_eq!(
        html.matches("<img src=\"data:image/svg+xml;base64,")
            .count(),
        10
    );
    let opened = std::fs::read_to_string(opened).expect("it was opened");
    assert_eq!(Path::new(opened.trim()), page);
}

/// The same seed gives the same profile, byte for byte, apart from its provenance.
#[test]
fn two_runs_with_the_same_seed_give_the_same_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, seed: &str| {
        let out = folder.path().join(name);
        let mut command = layerlab();
        profile(&mut command, FEW, model("alexnet"), "pixel6", &out);
        succeed(command.args(["--seed", seed]));
        Published::read(&out)
    };
    let first = run("first", "3");
    assert_eq!(first, run("again", "3"));
    assert_ne!(first, run("other", "4"));
}
