//! The lab on the web: the real daemon, asked over HTTP.

mod changes;
mod events;
mod forms;
mod guarded;
mod pages;
mod plans;
mod reading;

use std::path::Path;

use layerlab_tests::lab::{Daemon, Lab};
use layerlab_tests::web::WebClient;

use super::SIMULATED;

/// A lab with two simulated devices on the web, where jobs may name files of the folder `models`.
fn on_the_web(models: &Path) -> Lab {
    let web = format!("[web]\nlisten = \"127.0.0.1:0\"\nmodels = {models:?}\n");
    Lab::new(&format!("{SIMULATED}{web}"))
}

/// Its daemon, which knows both devices.
fn started(lab: &Lab) -> (Daemon, WebClient) {
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    (daemon, WebClient::of(lab))
}

/// The folder with the models of the tests.
fn models() -> std::path::PathBuf {
    layerlab_tests::root().join("tests/models")
}
