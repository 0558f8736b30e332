//! A sceptic changes one number of a profile: `check` refuses it, unless nothing in the profile determines that number.

use crate::common;
use crate::sceptic;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::probe_samples::{PLANTED, probe_samples};
use common::visits::profile_of_visits;
use layerlab_profiles::check::{Severity, check_directory};
use layerlab_profiles::document::{
    Disturbance, Method, PROFILE_JSON, ProbeSample, Profile, Rejected,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sceptic::Files;

/// Numbers that nothing in the profile determines, by file and field: FORMAT.md says of each why, and what is checked of it.
const UNDETERMINED: &[(&str, &str)] = &[
    ("blocks.csv", "rested_ns"),
    ("blocks.csv", "sentinel_before_ns"),
    ("blocks.csv", "sentinel_after_ns"),
    ("blocks.csv", "temperature_before_millicelsius"),
    ("blocks.csv", "temperature_after_millicelsius"),
    ("blocks.csv", "skin_temperature_before_millicelsius"),
    ("blocks.csv", "skin_temperature_after_millicelsius"),
    ("blocks.csv", "soc_temperature_before_millicelsius"),
    ("blocks.csv", "soc_temperature_after_millicelsius"),
    ("blocks.csv", "battery_temperature_before_millicelsius"),
    ("blocks.csv", "battery_temperature_after_millicelsius"),
    ("blocks.csv", "battery_before_percent"),
    ("blocks.csv", "battery_after_percent"),
    ("blocks.csv", "crowded_samples"),
    ("blocks.csv", "stolen_percent"),
    ("combinations.csv", "loss_ci95_low"),
    ("combinations.csv", "loss_ci95_high"),
    ("energy.csv", "order"),
    ("energy.csv", "started_ns"),
    ("energy.csv", "readings"),
    ("energy.csv", "scatter_uw"),
    ("energy.csv", "step_uw"),
    ("layers.csv", "input_bytes"),
    ("layers.csv", "output_bytes"),
    ("layers.csv", "parameter_bytes"),
    ("layers.csv", "additions"),
    ("layers.csv", "multiplications"),
    ("loads.csv", "load_ns"),
    ("loads.csv", "memory_bytes"),
    ("placements.csv", "nodes"),
    ("probes.csv", "order"),
    ("probes.csv", "block"),
    ("probes.csv", "index"),
    ("probes.csv", "started_ns"),
    ("probes.csv", "duration_ns"),
    ("rejected.csv", "started_ns"),
    ("rejected.csv", "duration_ns"),
    ("samples.csv", "started_ns"),
    ("samples.csv", "duration_ns"),
    ("soak.csv", "order"),
    ("soak.csv", "started_ns"),
    ("soak.csv", "runs"),
    ("soak.csv", "median_ns"),
    ("unsupported.csv", "needed_bytes"),
    ("profile.json", "model.opset"),
    ("profile.json", "processors.memory_bytes"),
    ("profile.json", "processors.threads"),
    ("profile.json", "processors.pinned_to_cores"),
    ("profile.json", "measurements.samples_per_segment"),
    ("profile.json", "measurements.visits"),
    ("profile.json", "measurements.gap_ns"),
    ("profile.json", "measurements.seed"),
    ("profile.json", "measurements.target"),
    ("profile.json", "measurements.budget_ns"),
    ("profile.json", "moving.line.fixed_ns.value"),
    ("profile.json", "moving.line.fixed_ns.ci95_low"),
    ("profile.json", "moving.line.fixed_ns.ci95_high"),
    ("profile.json", "moving.line.in_ns_per_byte.value"),
    ("profile.json", "moving.line.in_ns_per_byte.ci95_low"),
    ("profile.json", "moving.line.in_ns_per_byte.ci95_high"),
    ("profile.json", "moving.line.out_ns_per_byte.value"),
    ("profile.json", "moving.line.out_ns_per_byte.ci95_low"),
    ("profile.json", "moving.line.out_ns_per_byte.ci95_high"),
    ("profile.json", "moving.line.ns_per_operation.value"),
    ("profile.json", "moving.line.ns_per_operation.ci95_low"),
    ("profile.json", "moving.line.ns_per_operation.ci95_high"),
    ("profile.json", "moving.line.misfit_percent"),
    ("profile.json", "moving.line.p_value"),
    ("profile.json", "moving.cuts.in_ns"),
    ("profile.json", "moving.cuts.in_ci95_low_ns"),
    ("profile.json", "moving.cuts.in_ci95_high_ns"),
    ("profile.json", "moving.cuts.out_ns"),
    ("profile.json", "moving.cuts.out_ci95_low_ns"),
    ("profile.json", "moving.cuts.out_ci95_high_ns"),
    ("profile.json", "evaluations.samples"),
    ("profile.json", "evaluations.seed"),
    ("profile.json", "evaluations.executed_flop"),
    ("profile.json", "evaluations.stop_at_half_width"),
    ("profile.json", "evaluations.metric.threshold"),
    ("profile.json", "evaluations.metric.k"),
    ("profile.json", "evaluations.preprocessing.mean"),
    ("profile.json", "evaluations.preprocessing.scale"),
    ("profile.json", "evaluations.provenance.started_at"),
    ("profile.json", "evaluations.provenance.finished_at"),
    ("profile.json", "evaluations.provenance.host.logical_cores"),
    ("profile.json", "evaluations.provenance.host.memory_bytes"),
    ("profile.json", "provenance.started_at"),
    ("profile.json", "provenance.finished_at"),
    ("profile.json", "provenance.host.logical_cores"),
    ("profile.json", "provenance.host.memory_bytes"),
];

/// How many changes are tried of each profile, half of them with hashes that fit.
const CHANGES: usize = 500;

/// Whether `check` refuses the profile in `folder`.
fn is_refused(folder: &Path) -> bool {
    match check_directory(folder) {
        Err(_) => true,
        Ok((_, findings)) => findings
            .iter()
            .any(|finding| finding.severity == Severity::Error),
    }
}

fn assert_changes_are_refused(profile: &Profile, seed: u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    profile.write(folder.path()).expect("written");
    assert!(!is_refused(folder.path()), "a sound profile");
    let files = Files::read(folder.path(), PROFILE_JSON);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut slipped: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for place in 0..CHANGES {
        let hashed = place % 2 == 0;
        let change = files.write_changed(folder.path(), hashed, &mut random);
        if !is_refused(folder.path()) {
            assert!(hashed, "{change:?} leaves a hash that does not fit");
            let field = (change.file.clone(), change.field.clone());
            slipped
                .entry(field)
                .or_default()
                .push(format!("{change:?}"));
        }
    }
    let listed: BTreeSet<_> = UNDETERMINED.iter().copied().collect();
    let unlisted: Vec<_> = slipped
        .iter()
        .filter(|((file, field), _)| !listed.contains(&(file.as_str(), field.as_str())))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:#?}");
}

/// FORMAT.md tells readers the same list.
#[test]
fn the_format_says_what_check_cannot_see() {
    let format = include_str!("../FORMAT.md");
    let section = format
        .split("## What `check` cannot see")
        .nth(1)
        .expect("a section");
    let section = section.split("\n## ").next().expect("a section");
    for (file, field) in UNDETERMINED {
        let last = field.rsplit('.').next().expect("a name");
        let mut rows = section
            .lines()
            .filter(|line| line.starts_with(&format!("| `{file}`")));
        let says = |row: &str| row.contains(&format!("`{last}`"));
        assert!(rows.any(says), "{file}: {field}");
    }
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let file = line.split('`').nth(1).expect("a file");
        assert!(
            UNDETERMINED.iter().any(|(listed, _)| *listed == file),
            "{line}"
        );
    }
}

/// A published profile of a simulated phone: passes over the layers on the CPU, an adaptive design on the accelerator, and
/// the accuracy of 302 placements.
#[test]
fn one_number_of_a_simulated_profile_with_accuracy_is_not_changed_unseen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published/mate10pro/vocnet-mini");
    let published = Profile::read(&folder).expect("a profile");
    let mut newest = published.rederive(Method::Graph).expect("complete");
    newest.header.written_by = Some(newest.header.provenance.host_program.clone());
    assert_changes_are_refused(&newest, 1);
}

/// A real clock, loads, proofs of where nodes ran, and all designs that are no adaptive one's.
#[test]
fn one_number_of_a_measured_profile_is_not_changed_unseen() {
    assert_changes_are_refused(&common::by_least_squares(), 2);
    assert_changes_are_refused(&common::evaluated(common::good_profile()), 3);
}

/// Several visits, of which one was in another state and all were a little disturbed, and probes, of which one block was rejected.
#[test]
fn one_number_of_a_profile_of_visits_with_probes_is_not_changed_unseen() {
    let mut probes = probe_samples(PLANTED);
    let (order, rejected) = (probes[0].order, probes.clone());
    let of_order = probes.iter_mut().filter(|one| one.order == order);
    of_order.for_each(|one| one.block = 1);
    probes.extend(
        rejected
            .into_iter()
            .filter(|one| one.order == order)
            .map(|one| ProbeSample {
                rejection: Some(Rejected::Throttling),
                ..one
            }),
    );
    let speeds = [1.0, 1.01, 0.99, 1.0, 1.5];
    let mut profile = profile_of_visits(&speeds, 1.0, Method::Probed, probes).expect("a profile");
    for block in &mut profile.blocks {
        block.disturbance = Some(Disturbance {
            crowded_samples: 0,
            stolen_percent: 2,
        });
    }
    assert_eq!(profile.moving[0].refusal, None);
    assert_changes_are_refused(&profile, 4);
}
