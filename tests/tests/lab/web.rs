//! The lab on the web: the real daemon, asked over HTTP.

mod changes;
mod elsewhere;
mod encrypted;
mod events;
mod forms;
mod guarded;
mod hostile;
mod lost;
mod pages;
mod plans;
mod profile_pages;
mod reading;
mod uploads;

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
