//! The noise of a machine reaches samples, and nothing else.

use std::path::Path;

use layerlab_profiles::document::{Profile, Sample};
use layerlab_tests::proof::machine_noise::{BASE, KINDS};
use layerlab_tests::{FEW, agent_program, layerlab, model, profile, succeed};

/// What the device file has of this kind of noise.
fn noisy(name: &str) -> String {
    let kind = KINDS.iter().find(|kind| kind.name == name);
    kind.expect("a kind").device()
}

fn samples(device: &Path, seed: &str) -> Vec<Sample> {
    let out = device.with_extension("profile");
    let mut command = layerlab();
    profile(&mut command, FEW, model("vocnet-mini"), device, &out);
    succeed(command.args(["--replace", "--seed", seed]));
    Profile::read(&out).expect("a profile").samples
}

#[test]
fn offsets_of_visits_are_in_the_samples_of_a_run_and_others_in_those_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = folder.path().join("noise.toml");
    let without = BASE.replace("noise_proportional_sigma = 0.02", "");
    let with = noisy("visit offsets").replace("noise_proportional_sigma = 0.02", "");
    let mean = |samples: &[Sample]| {
        let npu = samples.iter().filter(|sample| sample.processor == "npu");
        let times: Vec<u64> = npu.map(|sample| sample.duration.as_nanos()).collect();
        times.iter().sum::<u64>() as f64 / times.len() as f64
    };
    std::fs::write(&device, without).expect("room");
    let planted = mean(&samples(&device, "1"));
    std::fs::write(&device, with).expect("room");
    let (one, again, other) = (
        samples(&device, "1"),
        samples(&device, "1"),
        samples(&device, "2"),
    );
    assert_eq!(one, again, "the same seed, the same night");
    let factors = [mean(&one) / planted, mean(&other) / planted];
    assert!(
        factors.iter().all(|factor| (factor - 1.0).abs() > 1e-4),
        "{factors:?}"
    );
    assert!((factors[0] - factors[1]).abs() > 1e-4, "{factors:?}");
}

/// Of 24 nights each, 24, 6 and 3 once ended as throttled, on a device without heat.
fn assert_no_night_is_called_throttled(nights_of: [(&str, u32); 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, nights) in nights_of {
        let device = folder.path().join("noise.toml");
        std::fs::write(&device, noisy(name)).expect("room");
        for night in 1..=nights {
            let mut command = layerlab();
            command.args(["profile", "--budget", "10s", "--replace"]);
            command.arg("--model").arg(model("vocnet-mini"));
            command.arg("--device").arg(&device);
            command.arg("--out").arg(device.with_extension("profile"));
            succeed(command.args(["--seed", &format!("{night}")]));
        }
    }
}

#[test]
fn a_machine_that_no_rest_makes_faster_is_not_called_throttled() {
    assert_no_night_is_called_throttled([
        ("cold after loading", 1),
        ("visit offsets", 2),
        ("loading offsets", 1),
    ]);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn a_machine_that_no_rest_makes_faster_is_not_called_throttled_in_36_nights() {
    assert_no_night_is_called_throttled([
        ("cold after loading", 4),
        ("visit offsets", 16),
        ("loading offsets", 16),
    ]);
}

#[test]
fn a_device_tells_nothing_of_the_noise_that_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let described = |text: &str| {
        let device = folder.path().join("noise.toml");
        std::fs::write(&device, text).expect("room");
        let mut command = std::process::Command::new(agent_program());
        succeed(command.arg("describe").arg("--device").arg(&device))
    };
    let silent = described(BASE);
    assert!(silent.contains("machine noise (simulated)"), "{silent}");
    for kind in &KINDS {
        assert_eq!(described(&kind.device()), silent, "{}", kind.name);
    }
}
