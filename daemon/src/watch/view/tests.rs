//! What is seen of a lab, whatever is in it.

use super::*;
use layerlab_lab::job::{JobSpec, ModelSpec};
use layerlab_lab::record::{Device, Job, JobState, Kept, Run, RunState, Verdict};
use layerlab_lab::talk::{DeviceState, DeviceStatus, Status, WaitingRuns};

const FIRST: JobsShown = JobsShown {
    skipped: 0,
    most: FEW_JOBS,
};

fn now() -> Timestamp {
    "2026-11-20T22:00:00Z".parse().expect("an instant")
}

fn text(lab: &Result<Status, String>, kept: &Kept) -> String {
    let lines = view(&WatchedLab::of(lab, kept), FIRST, now(), &TimeZone::UTC);
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
            host: None,
            device: device(),
            state: DeviceState::Busy,
            since: now(),
            reason: None,
            run: Some(7),
            progress: Some((12, Some(40))),
            free_at: Some(now()),
            journal_kept_at: None,
            read: None,
        }],
        waiting: vec![WaitingRuns {
            job: 3,
            first: 8,
            runs: 1,
            reason: "the window is closed".to_owned(),
        }],
        ..Status::default()
    };
    let lab = WatchedLab::of(&Ok(status.clone()), &Kept::default());
    let lines = view(&lab, FIRST, now(), &TimeZone::UTC);
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

/// A lab of so many jobs of one run each, the last of which is on the device.
fn busy_lab(jobs: i64) -> (Kept, Status) {
    let mut kept = Kept::default();
    for id in 1..=jobs {
        let model = ModelSpec {
            name: "alexnet".to_owned(),
            ..ModelSpec::default()
        };
        let spec = JobSpec {
            name: format!("a job with a name that is rather long, {id}"),
            models: vec![model],
            ..JobSpec::default()
        };
        let job = Job {
            id,
            spec,
            content_sha256: String::new(),
            submitted: now(),
            occurrence_of: None,
            state: JobState::Open,
        };
        let state = match id == jobs {
            true => RunState::Running,
            false => RunState::Queued,
        };
        let run = Run {
            number: id,
            job: id,
            state,
            ..Run::default()
        };
        kept.jobs.insert(id, job);
        kept.runs.insert(id, run);
    }
    let waiting = (1..jobs).map(|job| WaitingRuns {
        job,
        first: job,
        runs: 1,
        reason: "mate10pro is busy".to_owned(),
    });
    let status = Status {
        devices: vec![DeviceStatus {
            host: None,
            device: Device {
                name: "a phone on a server with a long name@lab2.example.org:5037".to_owned(),
                ..device()
            },
            state: DeviceState::Waiting,
            since: now(),
            reason: Some("the battery is at 20 %, and 30 % are needed ".repeat(4)),
            run: Some(jobs),
            progress: Some((123_456, Some(1_234_567))),
            free_at: None,
            journal_kept_at: None,
            read: None,
        }],
        waiting: waiting.collect(),
        ..Status::default()
    };
    (kept, status)
}

#[test]
fn two_thousand_jobs_fit_on_a_screen_with_what_runs_first() {
    let (kept, status) = busy_lab(2_000);
    let text = text(&Ok(status), &kept);
    assert!(text.lines().count() < 40, "{text}");
    for line in text.lines() {
        assert!(measure_text_width(line) <= COLUMNS, "{line}");
    }
    let job = |number| {
        text.find(&format!("  {number} a job with"))
            .expect("listed")
    };
    assert!(job(2_000) < job(1) && job(1) < job(19), "{text}");
    for part in [
        "and 1980 jobs after these",
        "1999 runs of 1999 jobs wait: mate10pro is busy",
        "123456 of 1234567",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_next_jobs_are_shown_on_the_next_page() {
    let (kept, status) = busy_lab(50);
    let lab = WatchedLab::of(&Ok(status), &kept);
    let third = JobsShown {
        skipped: 40,
        most: 20,
    };
    let lines = view(&lab, third, now(), &TimeZone::UTC);
    let text: Vec<String> = lines.into_iter().map(|line| line.text).collect();
    let text = text.join("\n");
    assert!(text.contains("and 40 jobs before these;"), "{text}");
    assert!(
        text.contains("  49 a job") && !text.contains("  39 a job"),
        "{text}"
    );
}

#[test]
fn a_job_with_a_profile_that_is_worse_says_so() {
    let (mut kept, status) = busy_lab(1);
    let run = kept.runs.get_mut(&1).expect("a run");
    run.state = RunState::Done;
    run.verdict = Some(Verdict {
        worse: vec!["layer 1 C1 on cpu: +9.0 % ± 1.0 %".to_owned()],
        ..Verdict::default()
    });
    let text = text(&Ok(status), &kept);
    let told = "1 profile is worse than before; `layerlab job show 1` says what";
    assert!(text.contains(told), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= COLUMNS),
        "{text}"
    );
}
