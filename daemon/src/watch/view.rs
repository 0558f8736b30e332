//! The lab as lines of text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use layerlab_farm::adb::Printable;
use layerlab_lab::record::{Job, JobState, Kept, RunNumber, RunState};
use layerlab_lab::talk::{DeviceStatus, Status};
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;

/// A line and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) bold: bool,
}

impl Line {
    pub(super) fn plain(text: String) -> Line {
        Line { text, bold: false }
    }

    fn bold(text: String) -> Line {
        Line { text, bold: true }
    }
}

/// Trouble, devices, jobs and why work waits; of a lab that does not say how it is, what the store knows.
pub(super) fn view(
    lab: &Result<Status, String>,
    kept: &Kept,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<Line> {
    let moment = |at| moment(at, now, zone);
    let mut lines = vec![Line::plain(format!("layerlab, {}", moment(now)))];
    let (trouble, devices, waiting) = match lab {
        Ok(status) => {
            let rows = status
                .devices
                .iter()
                .map(|status| device(kept, status, &moment));
            let rows: Vec<_> = rows.collect();
            let heads: &[&str] = &[
                "device", "state", "run", "progress", "since", "free at", "why",
            ];
            let table = (!rows.is_empty()).then(|| table(heads, &[3], rows));
            (status.trouble.as_ref(), table, status.waiting.as_slice())
        }
        Err(silence) => (Some(silence), known(kept), [].as_slice()),
    };
    lines.extend(trouble.map(|trouble| Line::bold(printable(trouble))));
    let devices = devices.unwrap_or_else(|| "no device is there".to_owned());
    section(&mut lines, &devices);
    section(&mut lines, &jobs(kept));
    let waiting: Vec<String> = (waiting.iter())
        .map(|(number, reason)| printable(&format!("{} waits: {reason}", run(kept, *number))))
        .collect();
    if !waiting.is_empty() {
        section(&mut lines, &waiting.join("\n"));
    }
    lines
}

fn section(lines: &mut Vec<Line>, text: &str) {
    lines.push(Line::plain(String::new()));
    lines.extend(text.lines().map(|line| Line::plain(line.to_owned())));
}

fn device(
    kept: &Kept,
    status: &DeviceStatus,
    moment: &impl Fn(Timestamp) -> String,
) -> Vec<String> {
    let run = status
        .run
        .map_or_else(String::new, |number| run(kept, number));
    let progress = match status.progress {
        None => String::new(),
        Some((there, None)) => there.to_string(),
        Some((there, Some(all))) => format!("{there} of {all}"),
    };
    let cells = [
        status.device.label(),
        status.state.clone(),
        run,
        progress,
        moment(status.since),
        status.free_at.map_or_else(String::new, moment),
        status.reason.clone().unwrap_or_default(),
    ];
    cells.iter().map(|cell| printable(cell)).collect()
}

/// The devices of the store, when there is no daemon to say how they are.
fn known(kept: &Kept) -> Option<String> {
    let devices = kept.devices.values();
    let rows: Vec<_> = devices
        .map(|device| vec![printable(&device.label()), printable(&device.description)])
        .collect();
    (!rows.is_empty()).then(|| table(&["device seen before", "what it is"], &[], rows))
}

/// A run by what people know it as: its job's name and its model's.
fn run(kept: &Kept, number: RunNumber) -> String {
    let known = kept.runs.get(&number).and_then(|run| {
        let job = kept.jobs.get(&run.job)?;
        let model = job.spec.models.get(run.model)?;
        Some(format!("{}/{}", job.spec.name, model.name))
    });
    known.unwrap_or_else(|| format!("run {number}"))
}

fn jobs(kept: &Kept) -> String {
    let live = |state| {
        matches!(
            state,
            JobState::Open | JobState::Paused | JobState::Recurring
        )
    };
    let jobs = kept.jobs.values().filter(|job| live(job.state));
    let rows: Vec<_> = jobs.map(|job| job_row(kept, job)).collect();
    if rows.is_empty() {
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
    table(&heads, &[0, 3, 4, 5, 6, 7], rows)
}

fn job_row(kept: &Kept, job: &Job) -> Vec<String> {
    let count = |state| {
        let runs = kept.runs.values();
        runs.filter(|run| run.job == job.id && run.state == state)
            .count()
    };
    let states = [
        RunState::Done,
        RunState::Running,
        RunState::Parked,
        RunState::Queued,
        RunState::Failed,
    ];
    let counts = states.map(|state| match job.state {
        // It has no runs of its own.
        JobState::Recurring => String::new(),
        _ => count(state).to_string(),
    });
    let cells = [
        job.id.to_string(),
        printable(&job.spec.name),
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
    use layerlab_lab::record::Device;

    fn now() -> Timestamp {
        "2026-11-20T22:00:00Z".parse().expect("an instant")
    }

    fn text(lab: &Result<Status, String>, kept: &Kept) -> String {
        let lines = view(lab, kept, now(), &TimeZone::UTC);
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
                state: "busy".to_owned(),
                since: now(),
                reason: None,
                run: Some(7),
                progress: Some((12, Some(40))),
                free_at: Some(now()),
            }],
            waiting: vec![(8, "the window is closed".to_owned())],
        };
        let lines = view(&Ok(status.clone()), &Kept::default(), now(), &TimeZone::UTC);
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
