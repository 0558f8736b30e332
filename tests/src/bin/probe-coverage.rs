//! Do probes tell moving in from moving out? 10,000 simulated runs: 5 devices, 2 models, 1,000 seeds; and the same on machines
//! whose visits and loadings differ. Prints a table and fails unless every share of intervals that hold the truth lies
//! between 92 and 98 % where times scatter, no compute time is negative without reason, and T(L) is what it was; and, where
//! visits are alike, unless moving in and moving out are within 5 % of what was planted and no line is refused.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use layerlab_agent::runtime::simulated::LayerWork;
use layerlab_model::Network;
use layerlab_tests::file;
use layerlab_tests::proof::probed::{DEVICES, ProbedRuns, VisitNoise};
use layerlab_tests::proof::table::markdown;

const MODELS: [&str; 2] = ["alexnet", "yolo-small"];
/// The numbers of one run err together: of fewer runs a share says little.
const SEEDS: u64 = 1_000;
/// A device without noise: what its intervals hold is rounding.
const EXACT: &str = "asymmetric-fusion";
/// All devices together, where visits differ.
const ALL: &str = "all, visits differ";
const ACCEPTED: std::ops::RangeInclusive<f64> = 0.92..=0.98;
const LARGEST_ERROR: f64 = 0.05;
const ALIKE: VisitNoise = VisitNoise {
    visit_sigma: 0.0,
    loading_sigma: 0.0,
};
const DIFFERENT: VisitNoise = VisitNoise {
    visit_sigma: 0.04,
    loading_sigma: 0.03,
};

fn main() -> ExitCode {
    let works: Vec<Vec<LayerWork>> = MODELS
        .iter()
        .map(|model| {
            let path = file(&format!("models/{model}.onnx"));
            let network =
                Network::open(&path, &BTreeMap::new()).expect("a model of this repository");
            LayerWork::of(&network)
        })
        .collect();
    println!(
        "Moving in and out, told apart by probes: {} devices x {} models x {SEEDS} seeds, and all of these again where \
         visits differ by 4 % and loadings by 3 %\n",
        DEVICES.len(),
        MODELS.len()
    );
    let (mut rows, mut counts) = (Vec::new(), Vec::new());
    let mut accepted = true;
    let alone = DEVICES
        .iter()
        .map(|device| (*device, std::slice::from_ref(device), ALIKE));
    let groups = alone.chain([(ALL, &DEVICES[..], DIFFERENT)]);
    for (name, devices, noise) in groups {
        let mut runs = ProbedRuns {
            noise,
            ..ProbedRuns::default()
        };
        for device in devices {
            let place = DEVICES.iter().position(|one| one == device).unwrap_or(0);
            for (model, work) in works.iter().enumerate() {
                for seed in 0..SEEDS {
                    let seed = 1_000 * (place * MODELS.len() + model) as u64 + seed;
                    runs.run(device, work, seed);
                }
            }
        }
        let visits_differ = name == ALL;
        for (quantity, found) in &runs.quantities {
            let covers = name == EXACT || ACCEPTED.contains(&found.coverage());
            let near = visits_differ
                || !quantity.starts_with("moving")
                || found.error_quantile(1.0) <= LARGEST_ERROR;
            accepted &= covers && near;
            rows.push(vec![
                name.to_owned(),
                (*quantity).to_owned(),
                found.count().to_string(),
                per_cent(found.error_quantile(0.5)),
                per_cent(found.error_quantile(1.0)),
                per_cent(found.coverage()),
            ]);
        }
        accepted &= runs.negative + runs.placements_changed == 0;
        accepted &= visits_differ || runs.refused == 0;
        counts.push(vec![
            name.to_owned(),
            runs.runs.to_string(),
            runs.refused.to_string(),
            runs.negative.to_string(),
            runs.negative_if_symmetric.to_string(),
            runs.placements_changed.to_string(),
        ]);
    }
    let heads = [
        "device",
        "quantity",
        "estimates",
        "median error",
        "largest error",
        "intervals that hold it",
    ];
    print!("{}", markdown(&heads, &rows));
    println!();
    let heads = [
        "device",
        "runs",
        "probes refused",
        "negative compute times",
        "the same if symmetric",
        "placements changed",
    ];
    print!("{}", markdown(&heads, &counts));
    match accepted {
        true => {
            println!("\nAll of it is as promised.");
            ExitCode::SUCCESS
        }
        false => {
            println!("\nSome of it is not as promised.");
            ExitCode::FAILURE
        }
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}
