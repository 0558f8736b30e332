//! The lab as lines of text.

use console::{Alignment, measure_text_width, pad_str, truncate_str};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use layerlab_farm::adb::Printable;
use layerlab_lab::query::{
    SeenDevice, WaitingGroup, WatchedDevice, WatchedDevices, WatchedJob, WatchedLab,
};
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

    pub(super) fn bold(text: String) -> ScreenLine {
        ScreenLine { text, bold: true }
    }
}

/// No line is longer: a terminal has so many columns if nobody has made it wider.
pub(super) const COLUMNS: usize = 80;

/// So many jobs are listed if nobody says how many fit on the screen.
pub(super) const FEW_JOBS: usize = 20;

/// So many reasons to wait are given; the others are counted.
const FEW_REASONS: usize = 6;

/// Which of the jobs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobsShown {
    pub(super) skipped: usize,
    pub(super) most: usize,
}

/// Trouble, devices, jobs and why work waits; of a lab that does not say how it is, what the store knows.
pub(super) fn view(
    lab: &WatchedLab,
    shown: JobsShown,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<ScreenLine> {
    let mut lines = vec![ScreenLine::plain(format!(
        "layerlab, {}",
        moment(now, now, zone)
    ))];
    if let Some(trouble) = &lab.trouble {
        let trouble = wrapped(&printable(trouble), "", "");
        lines.extend(trouble.into_iter().map(ScreenLine::bold));
    }
    lines.push(ScreenLine::plain(String::new()));
    match &lab.devices {
        WatchedDevices::Now(devices) => devices_now(&mut lines, devices, now, zone),
        WatchedDevices::SeenBefore(devices) => devices_seen(&mut lines, devices),
    }
    lines.push(ScreenLine::plain(String::new()));
    jobs(&mut lines, &lab.jobs, shown);
    waiting(&mut lines, &lab.waiting);
    lines
}

/// A time of the day, with the day if that is another.
fn clock(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let is_same_day = at.to_zoned(zone.clone()).date() == now.to_zoned(zone.clone()).date();
    let form = if is_same_day { "%H:%M" } else { "%-d %b %H:%M" };
    at.to_zoned(zone.clone()).strftime(form).to_string()
}

/// Columns of these widths, those that are negative flush right; what is too long is cut.
fn row<const N: usize>(cells: [&str; N], widths: [isize; N]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| {
        let alignment = match width < 0 {
            true => Alignment::Right,
            false => Alignment::Left,
        };
        let width = width.unsigned_abs();
        pad_str(cell, width, alignment, Some("…")).into_owned()
    });
    let line = cells.collect::<Vec<_>>().join(" ");
    line.trim_end().to_owned()
}

/// `text` in lines of at most [`COLUMNS`], the first of which begins with `first`, the others with `other`.
fn wrapped(text: &str, first: &str, other: &str) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut is_begun = false;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first");
        let gap = usize::from(is_begun);
        if is_begun && measure_text_width(line) + gap + measure_text_width(word) > COLUMNS {
            lines.push(format!("{other}{word}"));
            continue;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    let lines = lines.into_iter();
    lines
        .map(|line| truncate_str(&line, COLUMNS, "…").into_owned())
        .collect()
}

const DEVICE: [isize; 5] = [23, 11, -18, 12, 12];

fn devices_now(
    lines: &mut Vec<ScreenLine>,
    devices: &[WatchedDevice],
    now: Timestamp,
    zone: &TimeZone,
) {
    if devices.is_empty() {
        lines.push(ScreenLine::plain("no device is there".to_owned()));
        return;
    }
    let heads = ["device", "state", "progress", "since", "free at"];
    lines.push(ScreenLine::bold(row(heads, DEVICE)));
    let mut devices: Vec<&WatchedDevice> = devices.iter().collect();
    devices.sort_by_key(|device| &device.host);
    let first = devices[0].host.clone();
    let has_hosts = devices.iter().any(|device| device.host != first);
    let mut last = None;
    for device in devices {
        if has_hosts && last != Some(&device.host) {
            let host = device.host.as_deref().unwrap_or("nowhere now");
            lines.push(ScreenLine::plain(format!("host {}", printable(host))));
            last = Some(&device.host);
        }
        let progress = match device.progress {
            None => String::new(),
            Some((there, None)) => there.to_string(),
            Some((there, Some(all))) => format!("{there} of {all}"),
        };
        let told = |at| clock(at, now, zone);
        let (label, state) = (printable(&device.label), device.state.to_string());
        let free_at = device.free_at.map_or_else(String::new, told);
        let since = told(device.since);
        let cells = [label.as_str(), &state, &progress, &since, &free_at];
        lines.push(ScreenLine::plain(row(cells, DEVICE)));
        let more = match (&device.run, &device.reason) {
            (None, None) => continue,
            (Some(run), None) => run.clone(),
            (None, Some(reason)) => reason.clone(),
            (Some(run), Some(reason)) => format!("{run}: {reason}"),
        };
        let more = wrapped(&printable(&more), "    ", "    ");
        lines.extend(more.into_iter().map(ScreenLine::plain));
    }
}

fn devices_seen(lines: &mut Vec<ScreenLine>, devices: &[SeenDevice]) {
    if devices.is_empty() {
        lines.push(ScreenLine::plain("no device is there".to_owned()));
        return;
    }
    const SEEN: [isize; 2] = [26, 53];
    lines.push(ScreenLine::bold(row(
        ["device seen before", "what it is"],
        SEEN,
    )));
    for device in devices {
        let (label, what) = (printable(&device.label), printable(&device.description));
        lines.push(ScreenLine::plain(row([&label, &what], SEEN)));
    }
}

const JOB: [isize; 8] = [-6, 22, 9, -9, -7, -6, -7, -6];

fn jobs(lines: &mut Vec<ScreenLine>, jobs: &[WatchedJob], shown: JobsShown) {
    if jobs.is_empty() {
        lines.push(ScreenLine::plain("no job is open".to_owned()));
        return;
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
    lines.push(ScreenLine::bold(row(heads, JOB)));
    let listed = jobs.iter().skip(shown.skipped).take(shown.most);
    for job in listed {
        lines.push(ScreenLine::plain(job_row(job)));
        lines.extend(worse(job).map(ScreenLine::bold));
    }
    let before = shown.skipped.min(jobs.len());
    let after = jobs.len() - before - shown.most.min(jobs.len() - before);
    let others = match (before, after) {
        (0, 0) => return,
        (0, after) => format!("and {after} jobs after these"),
        (before, 0) => format!("and {before} jobs before these"),
        (before, after) => format!("and {before} jobs before these, {after} after them"),
    };
    lines.push(ScreenLine::plain(format!(
        "       {others}; `layerlab jobs` lists all"
    )));
}

fn job_row(job: &WatchedJob) -> String {
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
    let (id, name, state) = (job.id.to_string(), printable(&job.name), job.state);
    let state = state.to_string();
    let [published, running, parked, waiting, failed] = &counts;
    let cells = [
        &id, &name, &state, published, running, parked, waiting, failed,
    ];
    row(cells.map(String::as_str), JOB)
}

/// That profiles of a job are worse than those before them.
fn worse(job: &WatchedJob) -> Option<String> {
    let id = job.id;
    match job.runs.as_ref().map_or(0, |runs| runs.worse) {
        0 => None,
        1 => Some(format!(
            "       1 profile is worse than before; `layerlab job show {id}` says what"
        )),
        worse => Some(format!(
            "       {worse} profiles are worse than before; `layerlab job show {id}` says what"
        )),
    }
}

fn waiting(lines: &mut Vec<ScreenLine>, groups: &[WaitingGroup]) {
    if groups.is_empty() {
        return;
    }
    lines.push(ScreenLine::plain(String::new()));
    for group in groups.iter().take(FEW_REASONS) {
        let who = match (group.runs, group.jobs) {
            (0, 1) => format!("{} asks in vain", group.first),
            (0, jobs) => format!("{jobs} jobs ask in vain"),
            (1, _) => format!("{} waits", group.first),
            (runs, 1) => format!("{runs} runs of 1 job wait"),
            (runs, jobs) => format!("{runs} runs of {jobs} jobs wait"),
        };
        let text = printable(&format!("{who}: {}", group.reason));
        lines.extend(
            wrapped(&text, "", "    ")
                .into_iter()
                .map(ScreenLine::plain),
        );
    }
    let more = groups.len().saturating_sub(FEW_REASONS);
    if more > 0 {
        let more = format!("and for {more} more reasons; `layerlab jobs` gives each");
        lines.push(ScreenLine::plain(more));
    }
}

fn printable(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests;
