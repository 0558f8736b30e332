//! The command line: what it says, what it refuses, and what it makes of good and bad input.

mod analysis;
mod bad_input;
mod evaluation_sets;
mod gate;
mod grouped_layers;
mod links;
mod metered;
mod plan_by_time;
mod plan_cost;
mod plan_edge;
mod plan_edge_accurate;
mod plan_edge_packed;
mod plan_edge_packed_verified;
mod plan_edge_verified;
mod plan_energy;
mod plan_thermal;
mod published;
mod quantise;
mod runtimes;
mod sealed;
mod sizes;
mod tensors;
mod terminal;
mod versions;
mod video;
mod words;

use std::process::Output;

use layerlab_tests::stderr;

/// The command failed with `code`, and said one sentence with all of `words` in it.
#[track_caller]
fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    // Where a test measures on a busy machine, what was measured is doubtful, and that is said before.
    let sentences = said.lines().filter(|line| !line.starts_with("warning: "));
    let said: String = sentences.map(|line| format!("{line}\n")).collect();
    assert!(said.starts_with("layerlab: "), "{said}");
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}
