//! The lab on the web: the real daemon, asked over HTTP.

mod calendar;
mod changes;
mod elsewhere;
mod encrypted;
mod events;
mod forms;
mod guarded;
mod hostile;
mod links;
mod lost;
mod metrics;
mod pages;
mod plans;
mod profile_pages;
mod reading;
mod samples;
mod uploads;
mod video;

use std::path::Path;

use layerlab_tests::lab::{Daemon, Lab};
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{models, on_the_web};

/// The daemon of a lab with two devices, which it knows.
fn started(lab: &Lab) -> (Daemon, WebClient) {
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    (daemon, WebClient::of(lab))
}

/// A lab on the web whose one device is that of a file.
fn lab_with(device: &Path) -> Lab {
    Lab::new(&format!(
        "[phones]\nlocal = [{device:?}]\n[gates]\nload-percent = 100\n[web]\nlisten = \"127.0.0.1:0\"\n"
    ))
}

/// Its daemon, and somebody who looks.
fn opened(lab: &Lab) -> (Daemon, WebClient) {
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    let viewer = WebClient::of(lab).with_role(lab, "viewer");
    (daemon, viewer)
}
