//! Who published a profile, and that it is still what was published.

use std::path::{Path, PathBuf};

use layerlab_tests::{layerlab, output, root, succeed};

use super::assert_fails;

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const CHECK: i32 = 6;

fn published() -> PathBuf {
    root().join("profiles/published/oneplus7/vocnet-mini")
}

fn check(profile: &Path, option: &str, value: &str) -> std::process::Output {
    output(layerlab().arg("check").arg(profile).args([option, value]))
}

#[test]
fn a_profile_is_refused_unless_it_has_the_digest_that_is_asked_for() {
    let said = succeed(layerlab().arg("show").arg(published()));
    let digest = said.lines().find_map(|line| line.strip_prefix("digest: "));
    let digest = digest.expect("a digest");
    assert_eq!(digest.len(), 64, "{digest}");
    let said = succeed(layerlab().arg("check").arg(published()));
    assert!(said.contains(&format!("digest {digest}")), "{said}");
    for given in [digest, &digest[..12]] {
        assert!(
            check(&published(), "--digest", given).status.success(),
            "{given}"
        );
    }
    let other = "0".repeat(64);
    assert_fails(
        &check(&published(), "--digest", &other),
        CHECK,
        &[digest, &other, "where it was published"],
    );
    assert_eq!(
        check(&published(), "--digest", "093").status.code(),
        Some(USAGE)
    );
}

#[test]
fn a_key_is_made_once_and_an_unsigned_profile_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = folder.path().join("lab.key");
    let new = || output(layerlab().args(["key", "new"]).arg(&key));
    assert!(new().status.success());
    assert_fails(&new(), 5, &["lab.key", "choose a new file"]);
    let public = format!("{}.pub", key.display());
    assert_fails(
        &check(&published(), "--key", &public),
        CHECK,
        &["is not signed", "profile.json.sig"],
    );
    let private = key.display().to_string();
    assert_fails(
        &check(&published(), "--key", &private),
        INPUT,
        &["no public Ed25519 key", "layerlab key new"],
    );
}
