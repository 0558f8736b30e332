//! What shells and terminals are told: completions, man pages, the options of each command, tables that fit, and the exit
//! codes of plans.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::{layerlab, output, stderr, stdout, succeed};

use super::assert_fails;
use super::terminal::COMMANDS;

/// A profile that comes with the repository, with the accuracy of placements.
fn published() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join("profiles/published/oneplus7/vocnet-mini")
}

#[test]
fn bash_completes_commands_and_options() {
    let script = succeed(layerlab().args(["completions", "bash"]));
    let complete = |line: &[&str]| {
        let words = line.join(" ");
        let last = line.len() - 1;
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}\n_layerlab layerlab {} {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            line[last],
            line[last - 1]
        );
        // In a file: it is too long for a command line.
        let file = tempfile::NamedTempFile::new().expect("room");
        std::fs::write(file.path(), ask).expect("room");
        succeed(Command::new("bash").arg("--norc").arg(file.path()))
    };
    assert_eq!(complete(&["layerlab", "prof"]), "profile\nprofiles\n");
    assert_eq!(complete(&["layerlab", "show", "--pl"]), "--plot\n");
}

#[test]
fn every_shell_gets_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(layerlab().args(["completions", shell]));
        for command in COMMANDS {
            assert!(script.contains(command), "{command} for {shell}");
        }
    }
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    succeed(layerlab().arg("man").arg(&pages));
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).expect("a page");
    assert!(page("layerlab.1").contains(".TH layerlab 1"));
    for command in COMMANDS {
        assert!(page(&format!("layerlab-{command}.1")).contains(command));
    }
    assert!(page("layerlab-show.1").contains("plot"));
}

/// A command that reaches no phone has no options for reaching one.
#[test]
fn options_for_phones_are_those_of_commands_that_use_phones() {
    let reaching = [
        "setup", "profile", "evaluate", "daemon", "devices", "doctor",
    ];
    for command in COMMANDS {
        let help = succeed(layerlab().args([command, "--help"]));
        let has = help.contains("--adb-server");
        assert_eq!(has, reaching.contains(&command), "{command}: {help}");
    }
    for line in [
        &["model", "support"][..],
        &["plan", "max-accuracy"],
        &["plan", "sweep"],
        &["tensors", "measure"],
        &["video", "measure"],
    ] {
        let help = succeed(layerlab().args(line).arg("--help"));
        assert!(help.contains("--adb-server"), "{line:?}: {help}");
    }
    let inspect = succeed(layerlab().args(["model", "inspect", "--help"]));
    assert!(!inspect.contains("--adb-server"), "{inspect}");
}

/// What `layerlab` prints on a terminal of so many columns.
fn on_terminal(columns: u32, arguments: &str) -> String {
    let layerlab = layerlab();
    let program = layerlab.get_program().to_str().expect("UTF-8");
    let command = format!("stty cols {columns} rows 50; {program} {arguments}");
    // util-linux's, which gives the command a terminal of its own.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.env("LAYERLAB_ADB", "");
    let said = stdout(&output(&mut script));
    let said = said.replace('\r', "");
    console::strip_ansi_codes(&said).into_owned()
}

#[test]
fn a_profile_and_the_doctor_fit_80_columns() {
    let profile = published();
    let profile = profile.to_str().expect("UTF-8");
    let shown = on_terminal(80, &format!("show {profile}"));
    let doctor = on_terminal(80, "doctor");
    for said in [&shown, &doctor] {
        for line in said.lines() {
            assert!(line.chars().count() <= 80, "{line}\nin\n{said}");
        }
    }
    assert!(shown.contains("from npu"), "{shown}");
    assert!(
        shown.contains("All columns side by side: layerlab show --wide FOLDER | less -S"),
        "{shown}"
    );
    assert!(doctor.contains("agents for phones"), "{doctor}");
    // Where there is room, and where it is asked for, everything stands in one table.
    for wide in [
        on_terminal(200, &format!("show {profile}")),
        on_terminal(80, &format!("show --wide {profile}")),
    ] {
        let head = wide.lines().find(|line| line.contains("cpu compute"));
        assert!(head.is_some_and(|line| line.contains("from npu")), "{wide}");
    }
}

#[test]
fn what_stands_in_the_table_is_explained_under_it() {
    let shown = succeed(layerlab().arg("show").arg(published()));
    assert!(
        shown.contains("in compute: this moving cannot be told from computing"),
        "{shown}"
    );
}

/// A limit that makes no sense is refused before anything is learnt, and one that nothing keeps has a code of its own.
#[test]
fn a_plan_that_there_is_not_has_its_own_exit_code() {
    let cache = tempfile::tempdir().expect("a folder");
    let plan = |arguments: &[&str]| {
        let mut command = layerlab();
        command.env("LAYERLAB_CACHE", cache.path());
        output(command.arg("plan").args(arguments).arg(published()))
    };
    let kept = || std::fs::read_dir(cache.path()).expect("a folder").count();
    for (arguments, word) in [
        (&["max-accuracy", "--time", "0s"][..], "time limit is 0"),
        (&["min-time", "--accuracy", "1.5"], "between 0 and 1"),
        (&["min-time", "--accuracy", "0.99"], "above the model's own"),
    ] {
        assert_fails(&plan(arguments), 3, &[word]);
    }
    assert_eq!(
        kept(),
        0,
        "something was learnt for a limit that is refused"
    );
    let hasty = ["max-accuracy", "--time", "1us"];
    assert_fails(&plan(&hasty), 8, &["no placement is fast enough"]);
    assert!(kept() > 0);
    let json = plan(&[&hasty[..], &["--json"]].concat());
    assert_eq!(json.status.code(), Some(8), "{}", stderr(&json));
    let document: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    assert!(document.to_string().contains("fastest"), "{document}");
    let possible = plan(&["max-accuracy", "--time", "1s"]);
    assert_eq!(possible.status.code(), Some(0), "{}", stderr(&possible));
}

/// The picture of a sweep names what its lines are, and has all layers on each processor in both charts.
#[test]
fn a_sweep_is_drawn_in_steps_and_plain_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sweep.svg");
    let mut command = layerlab();
    command.args(["plan", "sweep", "--steps", "6", "--plot"]);
    succeed(command.arg(&file).arg(published()));
    let svg = std::fs::read_to_string(&file).expect("a picture");
    for words in [
        "mlmp: layerlab's search",
        "heuristic: the papers' rule of thumb",
        "all layers on cpu: ",
        "all layers on npu: ",
    ] {
        let escaped = words.replace('\'', "&apos;");
        assert!(svg.contains(words) || svg.contains(&escaped), "{words}");
    }
    assert_eq!(svg.matches("<polygon").count(), 4);
}
