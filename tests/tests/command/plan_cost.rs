//! What a plan costs: the first one of a profile learns and searches, and the second one knows it all.

use std::process::Command;
use std::time::Duration;

use layerlab_tests::{layerlab, root, succeed};

/// Of 30 layers, with 250 placements to learn from.
const PROFILE: &str = "profiles/published/oneplus7/yolo-mini";

/// The time that processors spend on `layerlab plan`, as the shell has it: of a busy machine, too.
fn cost(cache: &std::path::Path) -> (Duration, String) {
    let plan = layerlab();
    let mut shell = Command::new("sh");
    // The shell's own times, then those of its children: user and system.
    shell.args(["-c", "\"$@\" && times", "sh"]);
    shell.arg(plan.get_program());
    for (name, value) in plan.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(["plan", "max-accuracy", "--time", "40ms"]);
    shell.arg(root().join(PROFILE)).env("LAYERLAB_CACHE", cache);
    let said = succeed(&mut shell);
    let (plan, times) = said
        .trim_end()
        .rsplit_once('\n')
        .expect("times of children");
    let (plan, _) = plan.rsplit_once('\n').expect("times of the shell");
    let seconds = |text: &str| -> f64 {
        let (minutes, seconds) = text.split_once('m').expect("minutes");
        let number = |text: &str| text.parse::<f64>().expect("a number");
        60.0 * number(minutes) + number(seconds.trim_end_matches('s'))
    };
    let total = times.split(' ').map(seconds).sum();
    (Duration::from_secs_f64(total), plan.to_owned())
}

#[test]
fn the_second_plan_costs_a_small_part_of_the_first() {
    let cache = tempfile::tempdir().expect("a folder");
    let (first, plan) = cost(cache.path());
    let (second, again) = cost(cache.path());
    assert!(plan.contains("all layers on cpu"), "{plan}");
    assert_eq!(plan, again);
    assert!(
        second < first / 4,
        "nothing was kept: {first:?}, {second:?}"
    );
}
