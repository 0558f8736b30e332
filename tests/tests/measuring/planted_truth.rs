//! What layerlab derives from measurements is what the simulated device really costs: the real
//! binaries, from the model file to the published profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{LayerTruth, Truth, truth};
use layerlab_model::Network;
use layerlab_profiles::accuracy::sample;
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::document::Profile;
use layerlab_profiles::time_model::{ProcessorTimes, TimeModel};
use layerlab_profiles::{Nanos, SignedNanos};
use layerlab_tests::{FEW, device, layerlab, model, succeed};

/// Halves of nanoseconds are rounded away; a derived time is a sum of a few of them.
const TOLERANCE_NS: i64 = 2;

struct Measured {
    profile: Profile,
    truth: Truth,
}

/// Measures the model `name` on a device with the command line and reads both the profile and the truth.
fn measure(name: &str, on: &str) -> Measured {
    measure_on(name, &device(on))
}

/// The same on the device that the file describes.
fn measure_on(name: &str, device: &Path) -> Measured {
    measure_by(name, device, "prefix-suffix")
}

/// The same by a design.
fn measure_by(name: &str, device: &Path, design: &str) -> Measured {
    let model = model(name);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("profile");
    let mut command = layerlab();
    command.args(["profile", "--design", design, "--gap-us", "0", "--samples"]);
    command.arg(FEW.to_string()).arg("--model").arg(&model);
    command.arg("--device").arg(device).arg("--out").arg(&out);
    succeed(&mut command);
    let profile = Profile::read(&out).expect("a published profile");
    Measured {
        profile,
        truth: planted(&model, device),
    }
}

fn planted(model: &Path, device: &Path) -> Truth {
    let network = Network::open(model, &BTreeMap::new()).expect("a model");
    truth(&DeviceFile::open(device).expect("a device file"), &network)
}

impl Measured {
    /// What each layer was found to take on a processor, and what it takes there.
    fn layers(&self, processor: &str) -> impl Iterator<Item = (LayerTime, &LayerTruth)> {
        let mut processors = self.truth.processors.iter();
        let planted = processors.find(|planted| planted.processor == processor);
        let planted = &planted.expect("the processor").layers;
        let found = self.times(processor);
        assert_eq!(found.len(), planted.len());
        assert!(!found.is_empty());
        found.into_iter().zip(planted)
    }

    fn times(&self, processor: &str) -> Vec<LayerTime> {
        let rows = self
            .profile
            .times
            .iter()
            .filter(|row| row.processor == processor);
        rows.map(|row| row.time).collect()
    }

    /// T(L) predicted from the profile and planted differ by no more than what is rounded away in each run of
    /// layers off the CPU, over random placements.
    fn assert_placements_are_predicted(&self, processors: &[&str], count: usize) {
        let times: Vec<Vec<LayerTime>> = processors.iter().map(|name| self.times(name)).collect();
        let tables = processors.iter().zip(&times).map(|(name, times)| {
            let mut known = self.truth.processors.iter();
            let planted = known.find(|planted| planted.processor == *name);
            let kind = planted.expect("the processor").kind;
            ProcessorTimes::new(kind.into(), times)
        });
        let model = TimeModel::of(tables.collect()).expect("one model");
        let layers = times[0].len() as u32;
        for placement in sample(layers, processors.len() as u8, count, 20) {
            let predicted = model.predict(&placement).expect("the model's own layers");
            let truth = self.truth.placement(processors, &placement);
            let runs = placement.runs().filter(|(_, processor)| *processor != 0);
            let tolerance = TOLERANCE_NS * runs.count() as i64;
            assert_near(
                predicted.total(),
                truth.expect("processors"),
                tolerance,
                &placement,
            );
        }
    }
}

#[track_caller]
fn assert_near(
    found: SignedNanos,
    planted: Nanos,
    tolerance_ns: i64,
    what: &dyn std::fmt::Display,
) {
    let difference = (found - planted.signed()).as_nanos().abs();
    assert!(
        difference <= tolerance_ns,
        "{what}: {found:?} instead of {planted:?}"
    );
}

#[test]
fn on_a_symmetric_phone_differencing_gives_back_every_planted_time() {
    // The last one's caches are part of what their layers take to compute.
    for model in [
        "yolo-small",
        "alexnet",
        "resnet50",
        "inception",
        "gpt2-decode",
    ] {
        let measured = measure(model, "symmetric-exact");
        let n = measured.layers("npu").count();
        for (time, planted) in measured.layers("npu") {
            let (enter, leave) = (planted.to_processor_ns, planted.from_processor_ns);
            let (enter, leave) = (enter.expect("t_d"), leave.expect("t_r"));
            let what = format!("{model} {}", planted.name);
            let (first, last) = (planted.layer == 1, planted.layer as usize == n);
            assert_eq!(time.to_processor.is_none(), first, "{what}");
            assert_eq!(time.from_processor.is_none(), last, "{what}");
            // The first layer's t_d and the last layer's t_r are published within the compute time.
            let merged = [first.then_some(enter), last.then_some(leave)]
                .into_iter()
                .flatten();
            let compute = merged.fold(planted.compute_ns, |sum, transfer| sum + transfer);
            assert_near(time.compute.value, compute, TOLERANCE_NS, &what);
            let transfers = [(time.to_processor, enter), (time.from_processor, leave)];
            for (found, planted) in transfers {
                // Both are there, but for the two that were said not to be.
                if let Some(found) = found {
                    assert_near(found.value, planted, TOLERANCE_NS, &what);
                }
            }
        }
        measured.assert_placements_are_predicted(&["cpu", "npu"], 1000);
    }
}

#[test]
fn on_the_cpu_every_layer_takes_its_planted_time() {
    let measured = measure("alexnet", "symmetric-exact");
    for (time, planted) in measured.layers("cpu") {
        assert_near(time.compute.value, planted.compute_ns, 0, &planted.name);
    }
}

/// docs/method.md §3: T(L) needs only a_i + b_j and is right without the symmetry assumption; the transfers
/// one by one are not.
#[test]
fn on_an_asymmetric_phone_with_fusion_combinations_are_exact_and_transfers_are_not() {
    for model in ["yolo-small", "alexnet", "resnet50"] {
        let measured = measure(model, "asymmetric-fusion");
        measured.assert_placements_are_predicted(&["cpu", "npu"], 1000);
        // The first layer's t_d is published within its compute time.
        let wrong = measured.layers("npu").skip(1).any(|(time, planted)| {
            let found = time.to_processor.expect("t_d");
            let planted = planted.to_processor_ns.expect("t_d");
            (found.value - planted.signed()).as_nanos().abs() > 100 * TOLERANCE_NS
        });
        assert!(
            wrong,
            "{model}: t_d would be right although its assumption is not"
        );
    }
}

/// docs/method.md §10: probes, which are other networks, tell in from out where segments cannot, and T(L) stays exact.
#[test]
fn on_an_asymmetric_phone_with_fusion_probes_tell_moving_in_from_moving_out() {
    let measured = measure_by("alexnet", &device("asymmetric-fusion"), "local");
    measured.assert_placements_are_predicted(&["cpu", "npu"], 1000);
    let [moving] = measured.profile.moving.as_slice() else {
        panic!("one accelerator: {:?}", measured.profile.moving)
    };
    assert_eq!((&*moving.processor, moving.refusal), ("npu", None));
    let planted: Vec<_> = measured.layers("npu").map(|(_, planted)| planted).collect();
    assert_eq!(moving.cuts.len() + 1, planted.len());
    for (cut, pair) in moving.cuts.iter().zip(planted.windows(2)) {
        let (into, out) = (pair[1].to_processor_ns, pair[0].from_processor_ns);
        let near = |found: SignedNanos, planted: Option<Nanos>| {
            let planted = planted.expect("an accelerator").as_nanos() as f64;
            (found.as_nanos() as f64 / planted - 1.0).abs() < 1e-4
        };
        assert!(
            near(cut.in_ns, into) && near(cut.out_ns, out),
            "{cut:?} {pair:?}"
        );
    }
    for (time, planted) in measured.layers("npu") {
        assert!(
            time.compute.value > SignedNanos::ZERO,
            "{time:?} {planted:?}"
        );
    }
}

/// The phone with a CPU, a GPU and an NPU without what scatters: the lines of its noise, and its heat.
fn trio_without_noise(folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(device("trio")).expect("a device");
    let (head, rest) = text.split_once("[heat]").expect("it gets warm");
    let (_, processors) = rest.split_once("\n\n").expect("processors");
    let is_noise = |line: &str| line.starts_with("noise_") || line.starts_with("spike_");
    let quiet: Vec<&str> = processors.lines().filter(|line| !is_noise(line)).collect();
    let path = folder.join("trio.toml");
    std::fs::write(&path, format!("{head}{}\n", quiet.join("\n"))).expect("room");
    path
}

#[test]
fn on_three_processors_every_placement_takes_its_planted_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let trio = trio_without_noise(folder.path());
    for model in ["vocnet-mini", "inception"] {
        let measured = measure_on(model, &trio);
        measured.assert_placements_are_predicted(&["cpu", "gpu", "npu"], 1000);
        measured.assert_placements_are_predicted(&["cpu", "npu", "gpu"], 100);
    }
}
