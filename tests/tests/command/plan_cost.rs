//! What a plan costs: the first one of a profile learns and searches, and the second one knows it all.

use std::process::Command;
use std::time::Duration;

use layerlab_tests::{layerlab, root, succeed};

/// Of 30 layers, with 250 placements to learn from.
const PROFILE: &str = "profiles/published/oneplus7/yolo-mini";
const FIRST: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_millis(100);

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
fn the_first_plan_of_30_layers_takes_three_cpu_seconds_at_most_and_the_second_a_tenth_of_one() {
    let cache = tempfile::tempdir().expect("a folder");
    let (first, plan) = cost(cache.path());
    let (second, again) = cost(cache.path());
    assert!(plan.contains("all layers on cpu"), "{plan}");
    assert_eq!(plan, again);
    assert!(first <= FIRST, "{first:?}");
    assert!(second <= SECOND, "{second:?}");
    assert!(second < first / 2, "nothing was kept: {second:?}");
}
