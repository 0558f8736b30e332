//! A daemon that is told to stop leaves nothing undone.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use layerlab_tests::{agent_program, layerlab};

#[test]
fn the_store_is_closed_before_the_daemon_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[phones]\nlocal = [\"mate10pro\"]\n").expect("room");
    let mut daemon = layerlab()
        .args(["daemon", "--config"])
        .arg(&config)
        .env("LAYERLAB_STATE", folder.path().join("state"))
        .env("LAYERLAB_DATA", folder.path().join("data"))
        .env("LAYERLAB_AGENT", agent_program())
        .env("LAYERLAB_ADB", "")
        .env("LAYERLAB_LOG", "warn,layerlab=debug")
        .stderr(Stdio::piped())
        .spawn()
        .expect("a daemon");
    let mut log = BufReader::new(daemon.stderr.take().expect("its log"));
    let mut said = String::new();
    while !said.contains("the lab is open") {
        let read = log.read_line(&mut said).expect("text");
        assert!(read > 0, "it ended: {said}");
    }
    let told = Command::new("kill").arg(daemon.id().to_string()).status();
    assert!(told.expect("kill runs").success());
    log.read_to_string(&mut said).expect("text");
    assert!(daemon.wait().expect("it ran").success(), "{said}");
    let place = |words| {
        said.find(words)
            .unwrap_or_else(|| panic!("no `{words}` in {said}"))
    };
    assert!(
        place("the store is closed") < place("the lab is closed"),
        "{said}"
    );
    assert!(!said.contains("ERROR"), "{said}");
}
