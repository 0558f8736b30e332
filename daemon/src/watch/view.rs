//! The lab as lines of text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use layerlab_farm::adb::Printable;
use layerlab_lab::query::{SeenDevice, WatchedDevice, WatchedDevices, WatchedJob, WatchedLab};
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;

/// A line and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenLine {
    pub(super) text: String,
    pub(super) bold: bool,
}

impl ScreenLine {
    pub(super) fn plain(text: String) -> ScreenLine {
        ScreenLine { text, bold: false }
    }

    fn bold(text: String) -> ScreenLine {
        ScreenLine { text, bold: true }
    }
}

/// Trouble, devices, jobs and why work waits; of a lab that does not say how it is, what the store knows.
pub(super) fn view(lab: &WatchedLab, now: Timestamp, zone: &TimeZone) -> Vec<ScreenLine> {
    let moment = |at| moment(at, now, zone);
    let mut lines = vec![ScreenLine::plain(format!("layerlab, {}", moment(now)))];
    let trouble = lab.trouble.as_ref();
    lines.extend(trouble.map(|trouble| ScreenLine::bold(printable(trouble))));
    let devices = match &lab.devices {
        WatchedDevices::Now(devices) => devices_now(devices, &moment),
        WatchedDevices::SeenBefore(devices) => devices_seen(devices),
    };
    let devices = devices.unwrap_or_else(|| "no device is there".to_owned());
    section(&mut lines, &devices);
    section(&mut lines, &jobs(&lab.jobs));
    let waiting: Vec<String> = (lab.waiting.iter())
        .map(|one| printable(&format!("{} waits: {}", one.run, one.reason)))
        .collect();
    if !waiting.is_empty() {
        section(&mut lines, &waiting.join("\n"));
    }
    lines
}

fn section(lines: &mut Vec<ScreenLine>, text: &str) {
    lines.push(ScreenLine::plain(String::new()));
    lines.extend(text.lines().map(|line| ScreenLine::plain(line.to_owned())));
}

fn devices_now(devices: &[WatchedDevice], moment: &impl Fn(Timestamp) -> String) -> Option<String> {
    let rows: Vec<_> = devices.iter().map(|one| device(one, moment)).collect();
    let heads = [
        "device", "state", "run", "progress", "since", "free at", "why",
    ];
    (!rows.is_empty()).then(|| table(&heads, &[3], rows))
}

fn device(device: &WatchedDevice, moment: &impl Fn(Timestamp) -> String) -> Vec<String> {
    let progress = match device.progress {
        None => String::new(),
        Some((there, None)) => there.to_string(),
        Some((there, Some(all))) => format!("{there} of {all}"),
    };
    let cells = [
        device.label.clone(),
        device.state.to_string(),
        device.run.clone().unwrap_or_default(),
        progress,
        moment(device.since),
        device.free_at.map_or_else(String::new, moment),
        device.reason.clone().unwrap_or_default(),
    ];
    cells.iter().map(|cell| printable(cell)).collect()
}

fn devices_seen(devices: &[SeenDevice]) -> Option<String> {
    let rows: Vec<_> = (devices.iter())
        .map(|device| vec![printable(&device.label), printable(&device.description)])
        .collect();
    (!rows.is_empty()).then(|| table(&["device seen before", "what it is"], &[], rows))
}

fn jobs(jobs: &[WatchedJob]) -> String {
    if jobs.is_empty() {
        return "no job is open".to_owned();
    }
    let heads = [
        "job",
        "name",
        "state",
        "published",
        "running",
        "parked",
        "waiting",
        "failed",
    ];
    table(&heads, &[0, 3, 4, 5, 6, 7], jobs.iter().map(job_row))
}

fn job_row(job: &WatchedJob) -> Vec<String> {
    let counts = match &job.runs {
        None => [const { String::new() }; 5],
        Some(runs) => [
            runs.published,
            runs.running,
            runs.parked,
            runs.waiting,
            runs.failed,
        ]
        .map(|count| count.to_string()),
    };
    let cells = [
        job.id.to_string(),
        printable(&job.name),
        job.state.to_string(),
    ];
    cells.into_iter().chain(counts).collect()
}

fn printable(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_lab::record::{Device, Kept};
    use layerlab_lab::talk::{DeviceState, DeviceStatus, Status};

    fn now() -> Timestamp {
        "2026-11-20T22:00:00Z".parse().expect("an instant")
    }

    fn text(lab: &Result<Status, String>, kept: &Kept) -> String {
        let lines = view(&WatchedLab::of(lab, kept), now(), &TimeZone::UTC);
        let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        lines.join("\n")
    }

    fn device() -> Device {
        Device {
            name: "mate10pro".to_owned(),
            description: "a phone \u{1b}[2J".to_owned(),
            simulated: true,
            ..Device::default()
        }
    }

    #[test]
    fn a_lab_that_never_was_says_so() {
        let silent = Err("no daemon runs; start `layerlab daemon`".to_owned());
        let expected = "layerlab, Fri 20 Nov 22:00\nno daemon runs; start `layerlab daemon`\n\n\
                        no device is there\n\nno job is open";
        assert_eq!(text(&silent, &Kept::default()), expected);
    }

    #[test]
    fn trouble_comes_first_and_names_steer_no_terminal() {
        let status = Status {
            trouble: Some("the disk is full\u{1b}[2J".to_owned()),
            devices: vec![DeviceStatus {
                device: device(),
                state: DeviceState::Busy,
                since: now(),
                reason: None,
                run: Some(7),
                progress: Some((12, Some(40))),
                free_at: Some(now()),
            }],
            waiting: vec![(8, "the window is closed".to_owned())],
        };
        let lab = WatchedLab::of(&Ok(status.clone()), &Kept::default());
        let lines = view(&lab, now(), &TimeZone::UTC);
        assert!(lines[1].bold && lines[1].text.starts_with("the disk is full"));
        let text = text(&Ok(status), &Kept::default());
        assert!(!text.contains("\u{1b}[2J"), "{text}");
        for part in [
            "mate10pro (simulated)",
            "run 7",
            "12 of 40",
            "run 8 waits: the window is closed",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn without_a_daemon_the_store_s_devices_are_shown() {
        let mut kept = Kept::default();
        kept.devices.insert("mate10pro".to_owned(), device());
        let text = text(&Err("no daemon runs".to_owned()), &kept);
        assert!(text.contains("device seen before"), "{text}");
        assert!(text.contains("mate10pro (simulated)"), "{text}");
    }
}
