//! The profiles that ship with the repository are sound, and README's way to read them works.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::path::PathBuf;
use std::process::Command;

use layerlab_profiles::accuracy::Part;
use layerlab_profiles::check::{Severity, check_directory};
use layerlab_tests::{output, root, stderr, stdout};

/// Every profile in `profiles/published`.
fn published() -> Vec<PathBuf> {
    let folders = |path: PathBuf| {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let devices = folders(root().join("profiles/published"));
    devices.flat_map(folders).collect()
}

#[test]
fn published_profiles_are_sound_and_hold_300_placements() {
    let profiles = published();
    assert!(!profiles.is_empty());
    for folder in profiles {
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

/// METHOD §6: single layers lose very differently, so that it pays to choose.
#[test]
fn losses_of_single_layers_spread_over_more_than_a_factor_of_ten() {
    for folder in published() {
        let (profile, _) = check_directory(&folder).expect("a profile");
        let single = profile
            .combinations
            .iter()
            .filter(|row| row.features.npu_layers == 1);
        let mut losses: Vec<f64> = single.map(|row| row.loss.abs()).collect();
        losses.sort_by(f64::total_cmp);
        let (least, most) = (losses[0], losses[losses.len() - 1]);
        assert!(most > 10.0 * least, "{}: {losses:?}", folder.display());
    }
}

#[test]
fn python_reads_a_profile_in_the_three_lines_of_readme() {
    let has_pandas = Command::new("python3")
        .args(["-c", "import pandas"])
        .output();
    if !has_pandas.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: python3 has no pandas; install it to run README's example");
        return;
    }
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README");
    let (_, rest) = readme.split_once("```python\n").expect("an example");
    let (code, _) = rest.split_once("```").expect("its end");
    assert_eq!(code.lines().count(), 3, "{code}");
    let run = output(
        Command::new("python3")
            .args(["-c", code])
            .current_dir(root()),
    );
    assert!(run.status.success(), "{}", stderr(&run));
    assert!(stdout(&run).contains("loss_ci95_low"), "{}", stdout(&run));
}
