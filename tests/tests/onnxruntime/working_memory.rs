//! What the segments of one processor compute in, beside their weights, inputs and outputs.

use std::fs;

use super::child_process::children;
use super::{Lab, cpu_alone, folders, input, network};

const SESSIONS: u64 = 40;

/// What each session of vgg-mini has for itself: its input of 147 KiB, and what it needs to run at all.
const OF_ITS_OWN: u64 = 200 * 1024;

/// The bytes of memory that a process has.
fn resident(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.expect("its memory").trim_end_matches("kB").trim();
    kib.parse::<u64>().expect("a number") * 1024
}

#[test]
fn sessions_of_one_processor_share_their_working_memory() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    // Its largest tensor has 392 KiB, and two lie side by side.
    let model = network("vgg-mini");
    let layers = model.model().layer_count();
    let input = input(&model);
    let mut sessions: Vec<_> = (0..SESSIONS)
        .map(|_| lab.load("cpu:ort-all", &model, (1, layers)))
        .collect();
    let [child] = &children(&lab.state.path().join("runtime"))[..] else {
        panic!("one processor has one child");
    };
    sessions[0].outputs(&input).expect("outputs");
    let before = resident(child);
    for session in &mut sessions {
        session.outputs(&input).expect("outputs");
    }
    let more = resident(child).saturating_sub(before);
    assert!(
        more < SESSIONS * OF_ITS_OWN,
        "{SESSIONS} sessions took {more} bytes more once they had run"
    );
}
