//! What a phone does with its time in a job: the daemon, four phones that play a device in real time, one job.

use std::time::Duration;

use jiff::Timestamp;
use layerlab_lab::record::Spent;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::proof::table::markdown;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{in_real_time, model};

const PHONES: usize = 4;

/// Runs of each phone.
const REPEATS: usize = 3;

/// Of each segment, unless asked otherwise. A run then takes half a minute.
pub(crate) const SAMPLES: usize = 120;

/// The idle time before each inference, in microseconds.
const GAP_US: usize = 10_000;

pub(crate) fn busy(farm: &Farm, samples: usize) {
    let phones: Vec<VirtualPhone> = (1..=PHONES)
        .map(|number| farm.phone(&format!("P{number}")))
        .collect();
    let device = farm.path("real.toml");
    std::fs::write(&device, in_real_time("noisy")).expect("room");
    let lab = Lab::new(&simulating(&phones, &device)).with_phones(farm);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(PHONES);
    let before = load();
    lab.submit(&format!(
        "models = [{:?}]\nrepeats = {REPEATS}\n[[devices]]\nabi = \"x86_64\"\neach = true\n\
         [measure]\ndesign = \"local\"\nsamples = {samples}\ngap-us = {GAP_US}\n",
        model("alexnet")
    ));
    lab.succeed(&["job", "wait", "1", "--timeout", "30m"]);
    let after = load();
    daemon.stop();

    println!(
        "{PHONES} virtual phones, alexnet {REPEATS} times on each, {samples} samples of each segment, {GAP_US} µs apart; \
         load {before} before and {after} after\n"
    );
    let rows: Vec<Vec<String>> = phones.iter().map(|phone| row(&lab, phone)).collect();
    let heads = [
        "phone",
        "busy s",
        "cooling down s",
        "at the gates s",
        "wall s",
        "busy % of wall without cooling down",
    ];
    println!("{}", markdown(&heads, &rows));
}

/// One phone: its wall time is from the beginning of its first run to the end of its last.
fn row(lab: &Lab, phone: &VirtualPhone) -> Vec<String> {
    let kept = lab.kept();
    let its = |name: &Option<String>| name.as_deref() == Some(phone.serial.as_str());
    let (mut spent, mut began, mut ended) = (Spent::default(), Timestamp::MAX, Timestamp::MIN);
    for run in kept.runs.values().filter(|run| its(&run.phone)) {
        spent += run.spent;
        began = began.min(run.started.expect("it began"));
        ended = ended.max(run.ended.expect("it is over"));
    }
    let wall = Duration::try_from(ended.duration_since(began)).expect("it ended after it began");
    let (busy, cool_down) = (seconds(spent.busy_ms), seconds(spent.cool_down_ms));
    let wall = wall.as_secs_f64();
    vec![
        phone.serial.clone(),
        format!("{busy:.1}"),
        format!("{cool_down:.1}"),
        format!("{:.1}", seconds(spent.waiting_ms)),
        format!("{wall:.1}"),
        format!("{:.1}", 100.0 * busy / (wall - cool_down)),
    ]
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

/// How many processes wanted a core, on average over the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    text.split(' ').next().unwrap_or_default().to_owned()
}
