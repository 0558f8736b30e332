//! The lab as a whole: the real daemon and its commands, killed, stopped and out of room. With phones where it says so:
//! the real adb server and the real adbd; where they cannot be had, these tests are skipped, and fail in CI.

mod analysis;
mod artifacts;
mod full_disk;
mod hosts;
mod impossible;
mod jobs;
mod killed;
mod links;
mod log;
mod moved;
mod notices;
mod objects;
mod private;
mod prune;
mod publication;
mod quarantine;
mod regression;
mod servers;
mod stopping;
mod video;
mod web;

use layerlab_tests::lab::Lab;
use layerlab_tests::model;

/// A job that profiles one of the models.
fn job(name: &str, rest: &str) -> String {
    format!("models = [{:?}]\n{rest}", model(name))
}

/// The configuration of a lab with two local devices.
const SIMULATED: &str =
    "[phones]\nlocal = [\"mate10pro\", \"oneplus7\"]\n[gates]\nload-percent = 100\n";

/// On each of them, as soon as it can be done.
const EACH: &str = "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\n";

/// Many samples, so that runs take a while.
const LONG: &str =
    "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 400\n";

/// Waits until the lab's first job is over.
fn wait_for_job(lab: &Lab) {
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
}
