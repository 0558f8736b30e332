//! The process that holds a runtime may die: that costs the segment one more try, and an order goes on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::Event;
use layerlab_tests::{agent_program, layerlab, succeed};

use super::{Lab, campaigns, cpu_alone, folders, input, network};

/// The children of this test that live, whose working folder is `scratch`.
pub(super) fn children(scratch: &Path) -> Vec<String> {
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
    // What it kept for timed runs dies with it.
    let inputs = input.clone().into();
    second.time(&inputs).expect("a time");
    signal("KILL", child);
    let after = (
        first.outputs(&input).expect("outputs"),
        second.outputs(&input).expect("outputs"),
    );
    assert_eq!(after, before);
    for _ in 0..2 {
        let time = second.time(&inputs).expect("a time");
        assert!(time > Nanos::ZERO);
    }
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
    let begin = Instant::now();
    let killer = thread::spawn({
        let child = child.clone();
        move || {
            thread::sleep(Duration::from_millis(300));
            signal("KILL", &child);
        }
    });
    lab.load("cpu:ort-all", &model, (1, 3))
        .outputs(&input(&model))
        .expect("outputs");
    assert!(
        begin.elapsed() >= Duration::from_millis(300),
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
        "cannot load layers 3..=3 on cpu:ort-all: the process of onnxruntime died (signal 11), twice"
    );
    // The next segment is none the worse for it.
    symlink(agent_program(), &agent).expect("a link");
    lab.load("cpu:ort-all", &model, (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes: make npu-test"]
async fn a_run_whose_child_dies_ends_well() {
    let Some(folders) = folders() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let scratch = folder.path().join("state/runtime");
    let hexagons = || {
        let mut all = children(&scratch);
        all.retain(|child| {
            let files = fs::read_to_string(format!("/proc/{child}/maps"));
            files.is_ok_and(|files| files.contains("libQnnHtp.so"))
        });
        all
    };
    // Those that live when the first sample has come die, and others come in their place.
    let (mut killed, mut others) = (Vec::new(), Vec::new());
    let runtimes = campaigns::hexagon(&folders);
    campaigns::profile(folder.path(), runtimes, &["qnn-htp-f16"], None, |entry| {
        if !matches!(entry.event, Event::Sample { .. }) || !others.is_empty() {
            return;
        }
        if killed.is_empty() {
            killed = hexagons();
            killed.iter().for_each(|child| signal("KILL", child));
        } else {
            others = hexagons();
            others.retain(|child| !killed.contains(child));
        }
    })
    .await;
    assert!(!killed.is_empty(), "no child had loaded libQnnHtp.so");
    assert!(!others.is_empty(), "no child came after {killed:?}");
    succeed(layerlab().arg("check").arg(folder.path().join("profile")));
}
