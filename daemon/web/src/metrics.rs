//! What a Prometheus server collects: how the lab is now, how much happened since it began, which the store knows, and what the
//! daemon has counted since it began itself.

use std::fmt::{Display, Write};
use std::time::Instant;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use layerlab_farm::RungCounts;
use layerlab_lab::gates::Readings;
use layerlab_lab::store::StoreCounts;
use layerlab_lab::talk::{DeviceState, DeviceStatus, Status};
use layerlab_profiles::document::Rejected;

use crate::lab::WebState;
use crate::problem::Problem;

/// The text format of Prometheus, whose version it is.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const STATES: [DeviceState; 7] = [
    DeviceState::Free,
    DeviceState::Busy,
    DeviceState::Waiting,
    DeviceState::Parking,
    DeviceState::Reserved,
    DeviceState::Quarantined,
    DeviceState::Gone,
];

/// Why agents reject blocks.
const REJECTIONS: [Rejected; 4] = [
    Rejected::SentinelMoved,
    Rejected::Throttling,
    Rejected::ClockCapChanged,
    Rejected::Disturbed,
];

/// All metrics.
pub(crate) async fn metrics(State(state): State<WebState>) -> Result<Response, Problem> {
    let asked = Instant::now();
    let mut status = state.status().await?;
    // Each host of a lab tells its own.
    let host = status.host.clone();
    status.devices.retain(|device| device.host == host);
    let answered = Instant::now();
    let counts = state.lab.reader.counts().await?;
    let counted = Instant::now();
    let mut text = MetricsText::default();
    of_lab(&mut text, &status, &counts);
    since_it_began(&mut text, &status, &state.lab.link_failures);
    let seconds = |from: Instant, until: Instant| until.duration_since(from).as_secs_f64();
    text.family(
        "layerlab_answer_seconds",
        "gauge",
        "How long a part of the lab took to answer for this page.",
    );
    for (part, took) in [
        ("dispatcher", seconds(asked, answered)),
        ("store", seconds(answered, counted)),
    ] {
        text.sample("layerlab_answer_seconds", &[("part", part)], took);
    }
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text.0).into_response())
}

fn of_lab(text: &mut MetricsText, status: &Status, counts: &StoreCounts) {
    text.family(
        "layerlab_info",
        "gauge",
        "The version of the daemon; always 1.",
    );
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.sample("layerlab_info", &version, 1);
    text.family(
        "layerlab_ready",
        "gauge",
        "1 if nothing keeps the lab from working, else 0.",
    );
    text.sample("layerlab_ready", &[], u8::from(status.trouble.is_none()));
    text.family(
        "layerlab_devices",
        "gauge",
        "Devices of the lab in each state.",
    );
    for state in STATES {
        let count = status.devices.iter().filter(|it| it.state == state).count();
        let state = state.to_string();
        text.sample("layerlab_devices", &[("state", state.as_str())], count);
    }
    text.family(
        "layerlab_device_state",
        "gauge",
        "The state of a device; always 1. A simulated device says so.",
    );
    for device in &status.devices {
        let (state, simulated) = (device.state.to_string(), device.device.simulated);
        let labels = [
            ("device", device.device.name.as_str()),
            ("simulated", if simulated { "true" } else { "false" }),
            ("state", state.as_str()),
        ];
        text.sample("layerlab_device_state", &labels, 1);
    }
    text.family(
        "layerlab_device_samples",
        "gauge",
        "Samples and answers of the run that a device has.",
    );
    for device in &status.devices {
        if let Some((done, _)) = device.progress {
            let labels = [("device", device.device.name.as_str())];
            text.sample("layerlab_device_samples", &labels, done);
        }
    }
    text.family(
        "layerlab_journal_lag_seconds",
        "gauge",
        "How long ago the store took in the last entries of the journal of the run that a device works on: at most so far is it \
         behind.",
    );
    for device in &status.devices {
        // One that is not ready yet has nothing to say.
        let is_waiting = device.state == DeviceState::Waiting;
        if let Some(at) = device.journal_kept_at.filter(|_| !is_waiting) {
            let lag = Timestamp::now().duration_since(at).as_secs_f64().max(0.0);
            let labels = [("device", device.device.name.as_str())];
            text.sample("layerlab_journal_lag_seconds", &labels, lag);
        }
    }
    of_readings(text, &status.devices);
    text.family(
        "layerlab_waiting_runs",
        "gauge",
        "Runs that wait for a device, a window or anything else.",
    );
    let waiting: usize = status.waiting.iter().map(|waiting| waiting.runs).sum();
    text.sample("layerlab_waiting_runs", &[], waiting);
    for (name, kind, help, label, counts) in [
        (
            "layerlab_jobs",
            "gauge",
            "Jobs in each state.",
            "state",
            &counts.jobs,
        ),
        (
            "layerlab_runs",
            "gauge",
            "Runs in each state.",
            "state",
            &counts.runs,
        ),
        (
            "layerlab_events_total",
            "counter",
            "What happened since the lab began, such as blocks that were rejected.",
            "kind",
            &counts.events,
        ),
    ] {
        text.family(name, kind, help);
        for (value, count) in counts {
            text.sample(name, &[(label, value.as_str())], count);
        }
    }
}

/// What the daemon has counted itself: these begin at 0 with it, as counters may.
fn since_it_began(text: &mut MetricsText, status: &Status, link_failures: &RungCounts) {
    let counts = &status.counts;
    text.family(
        "layerlab_decision_seconds",
        "summary",
        "How long it took to decide what is to be done next, whenever something had changed.",
    );
    let deciding = counts.deciding.as_secs_f64();
    text.sample("layerlab_decision_seconds_sum", &[], deciding);
    text.sample("layerlab_decision_seconds_count", &[], counts.decisions);
    text.family(
        "layerlab_blocks_rejected_total",
        "counter",
        "Blocks of samples that do not count, by why.",
    );
    for reason in REJECTIONS {
        let rejected = counts.rejected_blocks.get(reason.name());
        let labels = [("reason", reason.name())];
        text.sample(
            "layerlab_blocks_rejected_total",
            &labels,
            rejected.copied().unwrap_or(0),
        );
    }
    text.family(
        "layerlab_link_failures_total",
        "counter",
        "Failures on the way to phones, by what was tried next; given-up where nothing was left to try.",
    );
    for (rung, failures) in link_failures.all() {
        text.sample("layerlab_link_failures_total", &[("rung", rung)], failures);
    }
    text.family(
        "layerlab_device_busy_seconds_total",
        "counter",
        "How long the agent of a device was at work, neither loading nor resting.",
    );
    for device in &status.devices {
        let name = device.device.name.as_str();
        let busy = counts.busy.get(name).copied().unwrap_or_default();
        let labels = [("device", name)];
        text.sample(
            "layerlab_device_busy_seconds_total",
            &labels,
            busy.as_secs_f64(),
        );
    }
}

/// How each device was when it was last looked at, which is before each run.
fn of_readings(text: &mut MetricsText, devices: &[DeviceStatus]) {
    type Told = fn(&Readings) -> Option<f64>;
    let all: [(&str, &str, Told); 3] = [
        (
            "layerlab_device_battery_percent",
            "How full a device's battery was when it was last looked at, before a run.",
            |it| it.battery_level_percent.map(f64::from),
        ),
        (
            "layerlab_device_battery_celsius",
            "How warm a device's battery was then.",
            Readings::battery_temperature_celsius,
        ),
        (
            "layerlab_device_thermal_status",
            "What a device said about its heat then, from 0 (none) to 6 (shutdown).",
            |it| it.thermal_status.map(f64::from),
        ),
    ];
    for (name, help, told) in all {
        text.family(name, "gauge", help);
        for device in devices {
            let readings = device.read.as_ref().map(|read| &read.readings);
            if let Some(value) = readings.and_then(told) {
                text.sample(name, &[("device", device.device.name.as_str())], value);
            }
        }
    }
}

/// Metrics in the text format of Prometheus.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
            .collect();
        let _ = match labels.as_slice() {
            [] => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }
}

/// The value of a label: a name may be anything.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_taken_for_another_sample() {
        let mut text = MetricsText::default();
        text.sample("up", &[("device", "a\"} 1\nup{b=\"\\")], 1);
        assert_eq!(text.0, "up{device=\"a\\\"} 1\\nup{b=\\\"\\\\\"} 1\n");
    }
}
