//! The profiles that ship with the repository are sound, and README's way to read them works.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use layerlab_planners::features::features;
use layerlab_planners::profile::{Pair, accuracy_table};
use layerlab_profiles::accuracy::Part;
use layerlab_profiles::check::{Severity, check_directory};
use layerlab_profiles::document::{CombinationRow, Profile};
use layerlab_tests::skip::skip;
use layerlab_tests::{root, succeed};

/// Every profile in `profiles/published`.
fn published() -> Vec<PathBuf> {
    let folders = |path: PathBuf| {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let devices = folders(root().join("profiles/published"));
    let profiles: Vec<PathBuf> = devices.flat_map(folders).collect();
    assert!(!profiles.is_empty());
    profiles
}

#[test]
fn published_profiles_are_sound_and_hold_300_placements() {
    for folder in published() {
        let (profile, findings) = check_directory(&folder).expect("a profile");
        let errors = findings.iter().filter(|f| f.severity == Severity::Error);
        assert_eq!(errors.count(), 0, "{}: {findings:?}", folder.display());
        assert!(profile.header.simulated, "no phone was at hand");
        let of = |part| {
            let rows = profile.combinations.iter();
            rows.filter(|row| row.part == part).count()
        };
        assert_eq!((of(Part::Train), of(Part::Test)), (250, 50));
    }
}

/// What each row of a profile loses, by the layers that it has on the accelerator, from 0.
fn losses(profile: &Profile) -> BTreeMap<Vec<usize>, &CombinationRow> {
    let on_npu = |row: &CombinationRow| {
        let layers = row.combination.processors().iter().enumerate();
        layers
            .filter(|(_, on)| **on != 0)
            .map(|(layer, _)| layer)
            .collect()
    };
    let rows = profile.combinations.iter();
    rows.map(|row| (on_npu(row), row)).collect()
}

/// mlmp §2: single layers lose very differently, so that it pays to choose; all together they lose a lot.
#[test]
fn single_layers_lose_very_differently_and_all_together_much() {
    for folder in published() {
        let (profile, _) = check_directory(&folder).expect("a profile");
        let losses = losses(&profile);
        let layers = profile.layers.len();
        let mut single: Vec<f64> = (0..layers).map(|l| losses[&vec![l]].loss.abs()).collect();
        single.sort_by(f64::total_cmp);
        let (middle, most) = (single[layers / 2], single[layers - 1]);
        assert!(most > 10.0 * middle, "{}: {single:?}", folder.display());
        let all = losses[&(0..layers).collect::<Vec<_>>()];
        assert!(
            all.loss_ci95.0 > most.min(0.2),
            "{}: {all:?}",
            folder.display()
        );
    }
}

/// mlmp §2: losses do not add up. The interval of what layers lose together lies above the sum of what they
/// lose alone.
#[test]
fn some_pairs_lose_more_together_than_alone() {
    let more_together = |profile: &Profile| -> usize {
        let losses = losses(profile);
        let pairs = losses.iter().filter(|(layers, _)| layers.len() == 2);
        let is_more = |(layers, row): &(&Vec<usize>, &&CombinationRow)| {
            let alone: f64 = layers.iter().map(|&layer| losses[&vec![layer]].loss).sum();
            row.loss_ci95.0 > alone
        };
        pairs.filter(is_more).count()
    };
    let profile = root().join("profiles/published/oneplus7/vocnet-mini");
    let (profile, _) = check_directory(&profile).expect("a profile");
    assert!(more_together(&profile) > 0);
}

/// The features that planners learn from are those that the profile publishes.
#[test]
fn planners_and_profiles_agree_on_the_features_of_a_placement() {
    for folder in published() {
        let (profile, _) = check_directory(&folder).expect("a profile");
        let (table, _) = accuracy_table(&profile, Pair::default()).expect("accuracy");
        let layers = profile.layers.len();
        for row in &profile.combinations {
            let found = features(&profile.layers, table.single_losses(), &row.combination)
                .expect("of one model");
            let published = &row.features;
            let expected = [
                f64::from(published.npu_layers),
                published.mean_single_loss,
                published.parameters.as_bytes() as f64,
                published.inputs.as_bytes() as f64,
                published.outputs.as_bytes() as f64,
                published.additions as f64,
                published.multiplications as f64,
            ];
            assert_eq!(found.len(), layers + expected.len());
            for (found, expected) in found[layers..].iter().zip(expected) {
                // Published shares have six decimals.
                let difference = (found - expected).abs();
                assert!(
                    difference <= 1e-6,
                    "{}: {found} {expected}",
                    row.combination
                );
            }
        }
    }
}

#[test]
fn python_reads_a_profile_in_the_three_lines_of_readme() {
    // The system's own may have it where another one comes first in PATH.
    let has_pandas = |python: &&str| {
        let import = Command::new(python).args(["-c", "import pandas"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_pandas) else {
        skip(
            "Python with pandas",
            "install it: apt install python3-pandas",
        );
        return;
    };
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README");
    let (_, rest) = readme.split_once("```python\n").expect("an example");
    let (code, _) = rest.split_once("```").expect("its end");
    assert_eq!(code.lines().count(), 3, "{code}");
    let said = succeed(Command::new(python).args(["-c", code]).current_dir(root()));
    assert!(said.contains("loss_ci95_low"), "{said}");
}
