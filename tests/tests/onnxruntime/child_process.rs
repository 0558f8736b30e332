//! The process that holds a runtime may die: that costs the segment one more try, and an order goes on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use layerlab_profiles::Segment;
use layerlab_tests::{FEW, agent_program, layerlab, model, profile, succeed};

use super::{Lab, SOC, cpu_alone, folders, input, network};

/// The children of this test that live, whose working folder is `scratch`.
fn children(scratch: &Path) -> Vec<String> {
    let mut children = Vec::new();
    for process in std::fs::read_dir("/proc").expect("processes").flatten() {
        let folder = process.path().join("cwd");
        if std::fs::read_link(folder).is_ok_and(|folder| folder == scratch) {
            children.push(process.file_name().to_string_lossy().into_owned());
        }
    }
    children
}

fn signal(name: &str, process: &str) {
    succeed(Command::new("kill").arg(format!("-{name}")).arg(process));
}

#[test]
fn a_child_that_dies_between_two_runs_is_replaced() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    let scratch = lab.state.path().join("runtime");
    let model = network("vocnet-mini");
    let input = input(&model);
    let mut first = lab.load("cpu:ort-all", &model, (1, 3));
    let mut second = lab.load("cpu:ort-all", &model, (1, 5));
    let before = (
        first.outputs(&input).expect("outputs"),
        second.outputs(&input).expect("outputs"),
    );
    let [child] = &children(&scratch)[..] else {
        panic!("one processor has one child: {:?}", children(&scratch));
    };
    signal("KILL", child);
    let after = (
        first.outputs(&input).expect("outputs"),
        second.outputs(&input).expect("outputs"),
    );
    assert_eq!(after, before);
    let now = children(&scratch);
    assert!(now.len() == 1 && now[0] != *child, "{now:?} after {child}");
    drop((first, second, lab));
    assert_eq!(children(&scratch), [""; 0], "a child outlives its agent");
}

#[test]
fn a_child_that_dies_while_it_loads_costs_the_segment_one_more_try() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    let scratch = lab.state.path().join("runtime");
    let model = network("vocnet-mini");
    let child = children(&scratch).remove(0);
    // It takes the request and does not get to answer it.
    signal("STOP", &child);
    let killer = thread::spawn({
        let child = child.clone();
        move || {
            thread::sleep(Duration::from_millis(300));
            signal("KILL", &child);
        }
    });
    let begin = Instant::now();
    lab.load("cpu:ort-all", &model, (1, 3))
        .outputs(&input(&model))
        .expect("outputs");
    assert!(
        begin.elapsed() >= Duration::from_millis(200),
        "it answered while it was stopped"
    );
    killer.join().expect("the killer ends");
    assert!(!children(&scratch).contains(&child));
}

#[test]
fn a_child_that_dies_again_and_again_is_an_error_that_names_segment_and_runtime() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    // A program that crashes once the agent's is out of its sight.
    let folder = tempfile::tempdir().expect("a folder");
    let (program, agent) = (folder.path().join("program"), folder.path().join("agent"));
    let script = format!(
        "#!/bin/sh\n[ -e {0} ] && exec {0} \"$@\"\nkill -SEGV $$\n",
        agent.display()
    );
    fs::write(&program, script).expect("a script");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
    symlink(agent_program(), &agent).expect("a link");
    let mut lab = Lab::try_open_with(cpu_alone(&onnxruntime), program).expect("the runtimes");
    let model = network("vocnet-mini");
    lab.load("cpu:ort-all", &model, (3, 3));

    fs::remove_file(&agent).expect("it was there");
    for child in children(&lab.state.path().join("runtime")) {
        signal("KILL", &child);
    }
    let error = lab
        .runtimes
        .load("cpu:ort-all", &model, Segment::single(3))
        .err();
    assert_eq!(
        error.expect("each child dies").to_string(),
        "cannot load layers 3..=3 on cpu:ort-all: the process of ONNX Runtime died (signal 11), twice"
    );
    // The next segment is none the worse for it.
    symlink(agent_program(), &agent).expect("a link");
    lab.load("cpu:ort-all", &model, (4, 4));
}

/// The processes of runtimes in the agents that process `of` has started.
fn grandchildren(of: u32) -> Vec<String> {
    let parent = |process: &str| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        Some(line?.trim().to_owned())
    };
    let is_it = |process: &String| {
        let command = fs::read_to_string(format!("/proc/{process}/cmdline"));
        let runs_runtime = command.is_ok_and(|command| command.contains("runtime-child"));
        let grandparent = parent(process).and_then(|agent| parent(&agent));
        runs_runtime && grandparent == Some(of.to_string())
    };
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let named = processes.map(|process| process.file_name().to_string_lossy().into_owned());
    named.filter(is_it).collect()
}

#[test]
fn a_run_whose_child_dies_ends_well() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("profile");
    let mut command = layerlab();
    // However busy this machine is: no block of an emulated processor is rejected.
    profile(&mut command, FEW, model("vocnet-mini"), "host", &out);
    command.args(["--processors", "qnn-htp-f16", "--gap-us", "0"]);
    command.arg("--onnxruntime").arg(onnxruntime);
    command.arg("--qnn").arg(qnn).args(["--emulate", SOC]);
    let mut run = command.spawn().expect("it starts");
    let begin = Instant::now();
    let hexagon = loop {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "no child loads libQnnHtp.so"
        );
        assert_eq!(
            run.try_wait().expect("it is known"),
            None,
            "it ended at once"
        );
        thread::sleep(Duration::from_millis(20));
        let loaded = |child: &String| {
            let files = fs::read_to_string(format!("/proc/{child}/maps"));
            files.is_ok_and(|files| files.contains("libQnnHtp.so"))
        };
        if let Some(child) = grandchildren(run.id()).into_iter().find(loaded) {
            break child;
        }
    };
    // By then it was probed, and loads or times segments; whenever it dies, the run must end well.
    thread::sleep(Duration::from_millis(3_000));
    signal("KILL", &hexagon);
    assert!(run.wait().expect("it ends").success());
    succeed(layerlab().arg("check").arg(&out));
}
