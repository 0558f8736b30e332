//! How long the placement explorer's answers take, over HTTP from a daemon on this machine: of a model with as many layers as those
//! of the tests have, and of one of which the accuracy was learnt.
//!
//! Usage: explorer-latency

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::time::{Duration, Instant};

use layerlab_profiles::document::Profile;
use layerlab_tests::lab::Lab;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{
    models, on_the_web, profile_of_run, put_one_with_accuracy, wait_until_learnt,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Placements that are asked for, each once.
const QUESTIONS: usize = 500;

fn main() {
    let lab = on_the_web(&models());
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let client = WebClient::of(&lab);
    let client = client.with_role(&lab, "viewer");
    for (run, model) in [(1, "resnet50"), (2, "alexnet")] {
        let file = models().join(format!("{model}.onnx"));
        lab.submit(&format!(
            "models = [{file:?}]\n[[devices]]\nserial = \"oneplus7\"\n[measure]\ndesign = \"local\"\nsamples = 6\n"
        ));
        lab.succeed(&["job", "wait", &run.to_string(), "--timeout", "10m"]);
    }
    ask(&lab, &client, 1);
    put_one_with_accuracy(&profile_of_run(&lab, 2), "oneplus7/yolo-mini");
    ask(&lab, &client, 2);
}

/// Asks for placements of a run's profile, and says how long that took.
fn ask(lab: &Lab, client: &WebClient, run: i64) {
    let profile = Profile::read(&profile_of_run(lab, run)).expect("a profile");
    let layers = profile.layers.len();
    wait_until_learnt(client, run, || lab.log());
    let first = format!("/api/v1/profiles/{run}/placements/{}", "0".repeat(layers));
    let accuracy = match client.get(&first).json()["accuracy"].is_null() {
        true => "without accuracy",
        false => "with its accuracy",
    };
    let name = &profile.header.model.name;
    let curve = format!("/api/v1/profiles/{run}/curve");
    let points = client.get(&curve).json()["points"]
        .as_array()
        .map_or(0, Vec::len);
    println!("{name}, {layers} layers, {accuracy}: {points} plans on the curve");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut placement = || -> String {
        let digits = (0..layers).map(|_| if random.random_bool(0.5) { '1' } else { '0' });
        digits.collect()
    };
    let placements = format!("/api/v1/profiles/{run}/placements/");
    let page = format!("/profiles/{run}/explore?placement=");
    for (what, before, has_placement) in [
        ("in JSON", &placements, true),
        ("as a page with the curve", &page, true),
        ("the curve in JSON", &curve, false),
    ] {
        let mut taken: Vec<Duration> = (0..QUESTIONS)
            .map(|_| {
                let digits = if has_placement {
                    placement()
                } else {
                    String::new()
                };
                let begin = Instant::now();
                let answered = client.get(&format!("{before}{digits}"));
                let taken = begin.elapsed();
                assert_eq!(answered.status, 200, "{answered:?}");
                // Pages name the placement where they say how to measure it, if it can be.
                assert!(answered.body.contains(&digits), "{answered:?}");
                taken
            })
            .collect();
        taken.sort();
        println!(
            "{name}, {layers} layers, {accuracy}, {what}: median {:.1} ms, p99 {:.1} ms, slowest of {QUESTIONS} {:.1} ms",
            milliseconds(taken[QUESTIONS / 2]),
            milliseconds(taken[QUESTIONS * 99 / 100]),
            milliseconds(taken[QUESTIONS - 1]),
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
