//! Other users of the host.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use layerlab_tests::lab::Lab;

use super::SIMULATED;

const SECRET: &str = "T0-B0-secret";

#[test]
fn nobody_else_looks_into_the_state_folder_or_takes_its_lock() {
    let lab = Lab::new(SIMULATED);
    // As an earlier version made it.
    std::fs::create_dir_all(lab.state().join("lab")).expect("room");
    for folder in [lab.state(), lab.state().join("lab")] {
        let open_to_all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder, open_to_all).expect("our own");
    }
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o077;
    for name in [
        "",
        "lab",
        "lab/lab.sqlite",
        "lab/lab.lock",
        "lab/daemon.socket",
    ] {
        assert_eq!(mode(&lab.state().join(name)), 0, "{name}");
    }
}

#[test]
fn the_secret_of_a_webhook_is_shown_nowhere() {
    let webhook = format!("[report]\nwebhook = \"http://127.0.0.1:9/{SECRET}\"\n");
    let lab = Lab::new(&format!("{SIMULATED}{webhook}"));
    let config = lab.path("config.toml");
    let config = config.to_str().expect("UTF-8");
    for json in [&[][..], &["--json"]] {
        let check = [&["config", "check", "--config", config], json].concat();
        let said = lab.succeed(&check);
        assert!(said.contains("http://127.0.0.1:9/…"), "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
    // One that cannot be used is not repeated either.
    std::fs::write(config, format!("report.webhook = \"ftp://{SECRET}\"\n")).expect("room");
    let refused = lab.run(&["config", "check", "--config", config]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}
