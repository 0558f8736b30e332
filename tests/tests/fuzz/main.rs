//! Readers fed with 5,000 damaged files each: none panics, hangs or takes more than 1 GiB. `make fuzz` does the same for
//! more inputs.

use std::process::Command;

/// Inputs of each target.
const INPUTS: u64 = 5_000;

fn fuzz(target: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args([&INPUTS.to_string(), target])
        .output()
        .expect("the program runs");
    let (table, finds) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{finds}\n{table}");
    let row = table.lines().last().expect("a table");
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[1..3], [target, &INPUTS.to_string()], "{table}");
    // Where no input is accepted, readers are fed with nothing but garbage.
    let accepted: u64 = cells[3].parse().expect("a number");
    assert!(accepted > INPUTS / 200, "{table}");
}

#[test]
fn models() {
    fuzz("model");
}

#[test]
fn messages() {
    fuzz("frames");
}

#[test]
fn journals() {
    fuzz("journal");
}

#[test]
fn profiles() {
    fuzz("profile");
}

#[test]
fn devices() {
    fuzz("device");
}

#[test]
fn jobs() {
    fuzz("job");
}

#[test]
fn rows_measured_afterwards() {
    fuzz("rows");
}

#[test]
fn a_target_that_there_is_not_is_refused_with_those_that_there_are() {
    for (args, expected) in [
        (
            &["5", "films"][..],
            "there is no target `films`: choose one of model, frames, ",
        ),
        (
            &["many"],
            "many is no number of inputs: usage: fuzz INPUTS [TARGET]",
        ),
        (&[], "usage: fuzz INPUTS [TARGET]"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fuzz"))
            .args(args)
            .output()
            .expect("the program runs");
        let sentence = String::from_utf8_lossy(&output.stderr);
        assert!(sentence.starts_with(expected), "{sentence}");
        assert_eq!(output.status.code(), Some(2));
    }
}
