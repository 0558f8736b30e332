//! T(L) predicted from a profile, then measured end to end, on devices that do everything to spoil it.

#![expect(
    clippy::print_stdout,
    reason = "the figures are what the slow test is run for"
)]

use std::collections::BTreeMap;
use std::path::Path;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{Truth, truth};
use layerlab_campaign::{
    InOut, KnownJournal, ModelFile, Passes, PlacementTime, TimesSettings, measure_times,
    time_placements,
};
use layerlab_farm::discovery::Choice;
use layerlab_farm::local::LocalLink;
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::design::Design;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::document::Profile;
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::{Nanos, Placement};
use layerlab_protocol::{Entry, Hygiene};
use layerlab_tests::{agent_program, device, model};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Profiles, each with noise of its own. All placements of one profile share its errors, so that only many
/// profiles tell whether intervals are honest.
const PROFILES: u64 = 20;
/// Of these, how many have their placements run.
const MEASURED: u64 = 2;
const COMBINATIONS: usize = 200;
/// The median of so many passes is known to 3 % / sqrt(40) x 1.25 = 0.6 %.
const PASSES: u64 = 40;

fn link(device: &Path) -> LocalLink {
    let device = Choice::File(device.to_owned());
    LocalLink::new(agent_program(), device).expect("a state folder")
}

async fn profile(device: &Path, model: &ModelFile, seed: u64, budget: Nanos) -> Profile {
    let settings = TimesSettings {
        processors: Vec::new(),
        design: Design::Adaptive,
        samples_per_segment: 100,
        visits: TimesSettings::VISITS,
        gap: Nanos::ZERO,
        seed,
        hygiene: Hygiene::default(),
        target: 0.02,
        budget,
        // T(L) is the same however cuts divide.
        in_out: InOut::Symmetric,
        steady: None,
        energy: None,
        over_budget: OverBudget::Extend,
    };
    let journal = KnownJournal::fresh();
    measure_times(
        &link(device),
        model,
        settings,
        &journal,
        &mut |_: &Entry| {},
    )
    .await
    .expect("a profile")
}

/// As docs/method.md §6 draws combinations.
fn combinations(layers: u32, seed: u64) -> Vec<Placement> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..COMBINATIONS)
        .map(|_| {
            let share = f64::from(random.random_range(1..=layers)) / f64::from(layers);
            Placement::new((0..layers).map(|_| random.random_bool(share)).collect())
        })
        .collect()
}

/// A profile of the device that does everything to spoil it, and what it says of some combinations.
struct Predictions {
    combinations: Vec<Placement>,
    predicted: Vec<Estimate>,
}

impl Predictions {
    async fn of(device: &Path, model: &ModelFile, seed: u64) -> Predictions {
        let profile = profile(device, model, seed, Nanos::from_millis(600_000)).await;
        let fit = profile
            .fit("npu")
            .expect("least squares")
            .expect("complete");
        let on_cpu = profile.times.iter().filter(|row| row.processor == "cpu");
        let cpu: Vec<LayerTime> = on_cpu.map(|row| row.time).collect();
        let combinations = combinations(model.network.layer_count(), seed);
        let predict = |combination| fit.combination(&cpu, combination).expect("one model");
        Predictions {
            predicted: combinations.iter().map(predict).collect(),
            combinations,
        }
    }

    /// How many intervals hold what the combination takes without noise or heat.
    fn holding(&self, truth: &Truth) -> usize {
        let holds = |(predicted, combination): &(&Estimate, &Placement)| {
            let (low, high) = predicted.ci95.expect("an interval");
            let planted = truth.placement(&["cpu", "npu"], combination);
            (low..=high).contains(&planted.expect("both processors").signed())
        };
        let cases = self.predicted.iter().zip(&self.combinations);
        cases.filter(holds).count()
    }

    /// The relative errors against running the combinations, ascending.
    async fn errors(&self, device: &Path, model: &ModelFile, seed: u64) -> Vec<f64> {
        let passes = Passes {
            processors: vec!["cpu".to_owned(), "npu".to_owned()],
            samples: PASSES,
            gap: Nanos::ZERO,
            seed,
            hygiene: Hygiene::default(),
            reload: false,
        };
        let timed = time_placements(&link(device), model, &self.combinations, &passes)
            .await
            .expect("times");
        assert_eq!(timed.len(), COMBINATIONS);
        let error = |(predicted, placement): (&Estimate, &PlacementTime)| {
            assert_eq!(placement.passes.len() as u64, PASSES);
            let measured = Summary::of(&placement.passes).expect("passes").median;
            (predicted.value.as_nanos() as f64 / measured.as_nanos() as f64 - 1.0).abs()
        };
        let mut errors: Vec<f64> = self.predicted.iter().zip(&timed).map(error).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }
}

#[tokio::test]
#[ignore = "takes minutes: make slow-test"]
async fn combinations_take_as_long_as_predicted_despite_fusion_asymmetry_noise_and_heat() {
    let device = device("worst-case");
    let path = model("yolo-small");
    let model = ModelFile::open(&path, &BTreeMap::new()).expect("a model");
    let truth = truth(
        &DeviceFile::open(&device).expect("a device"),
        &model.network,
    );
    let mut holding = 0;
    for seed in 1..=PROFILES {
        let predictions = Predictions::of(&device, &model, seed).await;
        holding += predictions.holding(&truth);
        if seed > MEASURED {
            continue;
        }
        let errors = predictions.errors(&device, &model, 1_000 + seed).await;
        let (median, p95) = (errors[COMBINATIONS / 2], errors[COMBINATIONS * 95 / 100]);
        println!("profile {seed}: median error {median:.4}, 95th percentile {p95:.4}");
        assert!(median <= 0.01, "median {median}");
        assert!(p95 <= 0.03, "95th percentile {p95}");
    }
    let share = holding as f64 / (PROFILES as usize * COMBINATIONS) as f64;
    println!("{:.1} % of the intervals hold the truth", 100.0 * share);
    assert!((0.92..=0.98).contains(&share), "{share}");
}

#[tokio::test]
async fn a_device_whose_times_do_not_add_up_is_found_out() {
    let device = device("small-cache");
    let path = model("yolo-small");
    let model = ModelFile::open(&path, &BTreeMap::new()).expect("a model");
    let profile = profile(&device, &model, 1, Nanos::from_millis(5_000)).await;
    let additivity = &profile.additivity[0];
    assert!(additivity.misfit_percent > 1.0, "{additivity:?}");
    assert!(
        additivity.p_value.expect("enough samples") < 0.01,
        "{additivity:?}"
    );
    let findings = layerlab_profiles::check::check(&profile);
    assert!(
        findings
            .iter()
            .any(|finding| finding.rule.name() == "not-additive"),
        "{findings:?}"
    );
}
