//! A night in which everything happens that can, as people, scripts and browsers see it.

mod link;
mod video;

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Absent, Report, RunOutcome};
use crate::job::{JobSpec, ModelSpec, Selector};
use crate::record::{
    Device, Event, Job, JobId, JobState, Kept, Reservation, Run, RunNumber, RunState, Spent,
    Verdict, What,
};

fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').expect("a day and a time");
    format!("2026-11-{day}T{time}:00Z")
        .parse()
        .expect("an instant")
}

fn spec(name: &str, selector: Selector) -> JobSpec {
    let model = |name: &str| ModelSpec {
        name: name.to_owned(),
        path: name.into(),
        ..ModelSpec::default()
    };
    JobSpec {
        name: name.to_owned(),
        models: vec![model("alexnet"), model("resnet<script>alert(1)</script>")],
        devices: vec![selector],
        ..JobSpec::default()
    }
}

#[derive(Default)]
struct Lab {
    kept: Kept,
    events: Vec<Event>,
}

impl Lab {
    fn job(&mut self, name: &str, state: JobState, selector: Selector) -> JobId {
        let id = self.kept.jobs.len() as JobId + 1;
        let job = Job {
            id,
            spec: spec(name, selector),
            content_sha256: String::new(),
            submitted: at("20 18:00"),
            occurrence_of: None,
            state,
        };
        self.kept.jobs.insert(id, job);
        id
    }

    fn run(&mut self, job: JobId, model: usize, state: RunState) -> &mut Run {
        let number = self.kept.runs.len() as RunNumber + 1;
        let run = Run {
            number,
            job,
            model,
            repeat: 1,
            state,
            ..Run::default()
        };
        self.kept.runs.entry(number).or_insert(run)
    }

    fn device(&mut self, name: &str, soc: &str, description: &str) -> &mut Device {
        let device = Device {
            name: name.to_owned(),
            serial: name.to_owned(),
            description: description.to_owned(),
            soc: Some(soc.to_owned()),
            ..Device::default()
        };
        self.kept.devices.entry(name.to_owned()).or_insert(device)
    }

    fn event(&mut self, time: &str, run: Option<RunNumber>, device: Option<&str>, what: What) {
        self.events.push(Event {
            number: self.events.len() as i64 + 1,
            at: at(time),
            job: run.and_then(|run| Some(self.kept.runs.get(&run)?.job)),
            run,
            device: device.map(str::to_owned),
            what,
        });
    }

    fn report(&self) -> Report {
        Report::of(&self.kept, &self.events, at("20 17:00"), at("21 07:00"))
    }
}

fn soc(name: &str) -> Selector {
    Selector {
        soc: Some(name.to_owned()),
        ..Selector::default()
    }
}

fn because(reason: &str) -> String {
    reason.to_owned()
}

/// A night in which everything happens that can.
fn night() -> Lab {
    let mut lab = Lab::default();
    lab.device("R58", "kirin970", "HUAWEI Mate 10 Pro, Android 10");
    let played = lab.device("mate10pro", "kirin980", "HUAWEI Mate 20, Android 10");
    played.simulated = true;
    let nightly = lab.job("nightly", JobState::Failed, soc("kirin970"));
    let pixels = lab.job("pixels", JobState::Open, soc("tensor"));
    let waiting = lab.job("later", JobState::Open, soc("kirin980"));

    let run = lab.run(nightly, 0, RunState::Done);
    run.phone = Some("R58".to_owned());
    run.attempt = 2;
    run.started = Some(at("20 22:00"));
    run.ended = Some(at("20 23:00"));
    run.profile = Some("profiles/alexnet-R58".into());
    run.spent = Spent {
        wall_ms: 3_000_000,
        busy_ms: 2_400_000,
        cool_down_ms: 300_000,
        waiting_ms: 600_000,
    };
    let run = lab.run(nightly, 1, RunState::Failed);
    run.phone = Some("R58".to_owned());
    run.attempt = 3;
    run.started = Some(at("20 23:20"));
    run.ended = Some(at("21 00:10"));
    run.reason = Some("the agent died three times".to_owned());
    run.spent.wall_ms = 1_000_000;
    run.spent.busy_ms = 100_000;
    lab.run(pixels, 0, RunState::Queued);
    lab.run(waiting, 0, RunState::Queued);

    let (first, second) = (Some(1), Some(2));
    let phone = Some("R58");
    let host = None;
    lab.event(
        "20 16:00",
        None,
        None,
        What::DaemonStarted { host: host.clone() },
    );
    lab.event("20 17:30", None, None, What::DaemonStarted { host });
    lab.event("20 22:00", first, phone, What::Started { attempt: 1 });
    for _ in 0..2 {
        let reason = because("the phone became too warm");
        lab.event("20 22:10", first, phone, What::BlockRejected { reason });
    }
    let reason = because("the cable was pulled");
    lab.event("20 22:20", first, phone, What::AttemptFailed { reason });
    lab.event("20 22:30", first, phone, What::Started { attempt: 2 });
    let reason = because("battery at 20 %, 30 % are needed");
    lab.event("20 22:31", first, phone, What::NotReady { reason });
    let published = What::Published {
        profile: "profiles/alexnet-R58".into(),
        findings: vec!["layer 3 is noisy".to_owned()],
    };
    lab.event("20 23:00", first, phone, published);
    lab.event("20 23:20", second, phone, What::Started { attempt: 1 });
    let reason = because("the agent died three times");
    lab.event("21 00:10", second, phone, What::Failed { reason });
    let quarantined = What::Quarantined {
        reason: because("nothing helped"),
        until: at("21 01:10"),
    };
    lab.event("21 00:10", None, phone, quarantined);
    let reason = because("the disk is full; nothing new begins");
    lab.event("21 02:00", None, None, What::Trouble { reason });
    let reserved = What::Reserved {
        from: at("21 06:00"),
        until: at("21 12:00"),
        note: "Ada debugs the driver".to_owned(),
    };
    lab.event("21 05:00", None, Some("mate10pro"), reserved);
    let reservation = Reservation {
        id: 1,
        device: "mate10pro".to_owned(),
        from: at("21 06:00"),
        until: at("21 12:00"),
        note: "Ada debugs the driver".to_owned(),
    };
    lab.kept.reservations.insert(1, reservation);
    lab
}

#[test]
fn a_night_for_people() {
    let text = night().report().text(&TimeZone::UTC);
    insta::assert_snapshot!(text);
}

#[test]
fn a_night_for_scripts() {
    let json = serde_json::to_string_pretty(&night().report()).expect("JSON");
    insta::assert_snapshot!(json);
}

#[test]
fn a_night_for_browsers() {
    insta::assert_snapshot!(night().report().html(&TimeZone::UTC));
}

#[test]
fn names_are_no_markup_and_nothing_is_fetched() {
    let html = night().report().html(&TimeZone::UTC);
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("resnet&lt;script&gt;"), "{html}");
    for outside in [
        "http:", "https:", "//", "url(", "@import", "<link", "<iframe",
    ] {
        assert!(!html.contains(outside), "{outside} in {html}");
    }
}

#[test]
fn a_profile_s_picture_cannot_run_and_its_simulation_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = |json: &str| {
        std::fs::write(folder.path().join("profile.json"), json).expect("room");
        std::fs::write(folder.path().join("plot.svg"), "<svg><script/></svg>").expect("room");
    };
    profile(r#"{"simulated": true}"#);
    let mut lab = night();
    let run = lab.kept.runs.get_mut(&1).expect("the first");
    run.profile = Some(folder.path().to_owned());
    let mut report = lab.report();
    report.read_profiles(true);
    let html = report.html(&TimeZone::UTC);
    assert!(html.contains("src=\"data:image/svg+xml;base64,"), "{html}");
    assert!(!html.contains("<svg"), "{html}");
    assert!(html.contains("R58 (simulated)"), "{html}");
}

#[test]
fn a_phone_that_plays_a_simulated_device_is_marked_wherever_it_is_named() {
    let mut lab = night();
    let phone = lab.kept.devices.get_mut("R58").expect("the phone");
    phone.simulated = true;
    let text = lab.report().text(&TimeZone::UTC);
    let named = text.matches("R58").count() - text.matches("alexnet-R58").count();
    assert!(named > 3, "{text}");
    assert_eq!(text.matches("R58 (simulated)").count(), named, "{text}");
}

#[test]
fn a_profile_that_was_deleted_is_missed() {
    let mut report = night().report();
    report.read_profiles(true);
    let text = report.text(&TimeZone::UTC);
    assert!(text.contains("its folder is gone"), "{text}");
}

#[test]
fn a_picture_that_never_ends_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("profile.json"), "{}").expect("room");
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("plot.svg")).expect("room");
    let mut lab = night();
    let run = lab.kept.runs.get_mut(&1).expect("the first");
    run.profile = Some(folder.path().to_owned());
    let mut report = lab.report();
    report.read_profiles(true);
    assert!(!report.html(&TimeZone::UTC).contains("<figure"));
}

#[test]
fn a_report_is_written_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let reports = folder.path().join("reports");
    let written = night().report().write_html(&reports, &TimeZone::UTC);
    let written = written.expect("room");
    assert_eq!(written, reports.join("2026-11-21-070000.html"));
    assert!(Path::new(&written).is_file());
}

#[test]
fn nothing_is_said_in_words() {
    let report = Lab::default().report();
    assert_eq!(report.headline, "Nothing was asked for.");
    let text = report.text(&TimeZone::UTC);
    assert!(text.contains("Nothing was asked for."), "{text}");
}

#[test]
fn a_daemon_that_was_not_told_to_end_is_told_from_those_of_other_hosts() {
    let mut lab = Lab::default();
    let started = |host: &str| What::DaemonStarted {
        host: Some(host.to_owned()),
    };
    let stopped = What::DaemonStopped {
        host: Some("rack-1".to_owned()),
    };
    lab.event("20 18:00", None, None, started("rack-1"));
    lab.event("20 18:01", None, None, started("rack-2"));
    lab.event("20 19:00", None, None, stopped);
    lab.event("20 20:00", None, None, started("rack-1"));
    lab.event("20 21:00", None, None, started("rack-2"));
    let troubles = lab.report().troubles;
    let troubles: Vec<&str> = troubles.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(
        troubles,
        [
            "the daemon of host `rack-2` began anew without having been told to end; it went on where it was"
        ]
    );
}

/// The only run of a job for `kirin980` after `change`, which waits.
fn why(change: impl FnOnce(&mut Lab)) -> Absent {
    let mut lab = Lab::default();
    let played = lab.device("mate10pro", "kirin980", "HUAWEI Mate 20, Android 10");
    played.simulated = true;
    let job = lab.job("later", JobState::Open, soc("kirin980"));
    lab.run(job, 0, RunState::Queued);
    change(&mut lab);
    let report = lab.report();
    let (_, run) = report.runs().next().expect("a run");
    run.absent.clone().expect("a reason")
}

#[test]
fn whatever_waits_says_why() {
    assert_eq!(
        why(|_| {}).reason,
        "it waits for its turn on mate10pro (simulated)"
    );
    let own = why(|lab| {
        let run = lab.kept.runs.get_mut(&1).expect("a run");
        run.reason = Some("the window is closed".to_owned());
    });
    assert_eq!(own.reason, "the window is closed");
    let starved = why(|lab| {
        let run = lab.kept.runs.get_mut(&1).expect("a run");
        run.reason = Some("the phone was too hot".to_owned());
        run.stays_without_block = 3;
    });
    assert_eq!(
        starved.reason,
        "starved: left its device 3 times before a block had ended, the last time because the phone was too hot"
    );
    let gone = why(|lab| lab.event("20 20:00", None, Some("mate10pro"), What::DeviceGone));
    assert_eq!(gone.reason, "mate10pro (simulated) is away");
    let unknown = why(|lab| lab.kept.devices.clear());
    assert_eq!(
        unknown.reason,
        "no device that the lab has seen is soc kirin980"
    );
    let paused = why(|lab| {
        let job = lab.kept.jobs.get_mut(&1).expect("a job");
        job.state = JobState::Paused;
    });
    assert_eq!(paused.reason, "its job is paused");
    let closed = why(|lab| {
        let job = lab.kept.jobs.get_mut(&1).expect("a job");
        job.spec.window = "22:00-23:00 UTC".parse().ok();
    });
    assert_eq!(closed.until, Some(at("21 22:00")));
    // Left alone since before the report begins.
    let quarantined = why(|lab| {
        let until = at("21 08:00");
        let reason = because("nothing helped");
        let what = What::Quarantined { reason, until };
        lab.event("19 20:00", None, Some("mate10pro"), what);
    });
    assert_eq!(quarantined.until, Some(at("21 08:00")));
}

#[test]
fn a_quarantine_that_was_lifted_is_over_then() {
    let mut lab = night();
    let lifted = |time| {
        let mut lab = night();
        lab.event(time, None, Some("R58"), What::QuarantineLifted);
        lab.report().quarantined
    };
    lab.event("21 00:30", None, Some("mate10pro"), What::QuarantineLifted);
    let of_another = lab.report().quarantined;
    assert_eq!(of_another[0].until, at("21 01:10"));
    assert_eq!(lifted("21 00:30")[0].until, at("21 00:30"));
    assert_eq!(lifted("21 02:00")[0].until, at("21 01:10"), "it was over");
}

#[test]
fn what_ended_after_the_report_was_not_over() {
    let lab = night();
    let report = Report::of(&lab.kept, &lab.events, at("20 17:00"), at("20 22:40"));
    let outcomes: Vec<RunOutcome> = report.runs().map(|(_, run)| run.outcome).collect();
    let expected = [
        RunOutcome::Running,
        RunOutcome::Waiting,
        RunOutcome::Waiting,
        RunOutcome::Waiting,
    ];
    assert_eq!(outcomes, expected);
    assert!(report.quarantined.is_empty());
}

#[test]
fn what_ended_before_the_report_is_not_in_it() {
    let lab = night();
    let report = Report::of(&lab.kept, &lab.events, at("21 00:00"), at("21 07:00"));
    assert_eq!(
        report.headline,
        "0 of 3 profiles published; 1 failed, 2 wait."
    );
    assert_eq!(report.devices[0].runs, 1);
}

/// A night with a profile of the same model on the same phone from the week before, and both on disk.
fn two_nights(folder: &Path) -> Lab {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
    let copy = |from: &str, to: &str| {
        let to = folder.join(to);
        std::fs::create_dir(&to).expect("room");
        for file in published.join(from).read_dir().expect("a profile") {
            let file = file.expect("a file").path();
            let name = file.file_name().expect("a name");
            std::fs::copy(&file, to.join(name)).expect("room");
        }
        to
    };
    let mut lab = night();
    let run = lab.kept.runs.get_mut(&1).expect("the first");
    run.profile = Some(copy("oneplus7/vocnet-mini", "tonight"));
    let earlier = lab.run(1, 0, RunState::Done);
    earlier.phone = Some("R58".to_owned());
    earlier.started = Some(at("13 22:00"));
    earlier.ended = Some(at("13 23:00"));
    earlier.profile = Some(copy("mate10pro/vocnet-mini", "a week ago"));
    lab
}

#[test]
fn times_stand_beside_those_of_the_last_good_night() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut report = two_nights(folder.path()).report();
    report.read_profiles(true);
    let (_, run) = report.runs().next().expect("a run");
    let published = run.published.as_ref().expect("a profile");
    let before = published.before.as_ref().expect("an earlier one");
    assert_eq!(before.ended, at("13 23:00"));
    let times = |whole: &[super::WholeModel]| -> Vec<i64> {
        let times = whole.iter().filter_map(|one| one.time_ns);
        times.map(|time| time.as_nanos()).collect()
    };
    let (now, earlier) = (times(&published.whole_model), times(&before.whole_model));
    assert_eq!((now.len(), earlier.len()), (2, 2));
    let change = 100.0 * (now[0] - earlier[0]) as f64 / earlier[0] as f64;
    let html = report.html(&TimeZone::UTC);
    let shown = format!("{change:+.1} %</span>");
    assert!(html.contains(&shown), "{shown} in {html}");
    assert!(!html.contains("first of its kind"), "{html}");
}

#[test]
fn profiles_are_links_and_plots_have_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut report = two_nights(folder.path()).report();
    report.read_profiles(true);
    let html = report.html(&TimeZone::UTC);
    let href = format!("<a href=\"{}/tonight\">", folder.path().display());
    assert!(html.contains(&href), "{href} in {html}");
    assert!(html.contains("<li><a href=\"#plot-1\">"), "{html}");
    assert!(html.contains("<figure id=\"plot-1\">"), "{html}");
    // A name with a space, and one from somewhere else.
    assert_eq!(
        super::html::link(Path::new("/a week/ago")).as_deref(),
        Some("/a%20week/ago")
    );
    assert_eq!(super::html::link(Path::new("profiles/alexnet")), None);
}

#[test]
fn what_runs_or_waits_is_apart_from_what_failed() {
    let sections = night().report().sections(&TimeZone::UTC);
    let states = |title: &str| -> Vec<String> {
        let section = sections.iter().find(|section| section.title == title);
        let rows = section.expect(title).rows.iter();
        rows.map(|row| row[3].to_string()).collect()
    };
    assert_eq!(states("Not measured"), ["failed"]);
    assert_eq!(states("Running and waiting"), ["waiting", "waiting"]);
    let html = night().report().html(&TimeZone::UTC);
    assert!(
        html.contains("<span class=\"badge failed\">failed</span>"),
        "{html}"
    );
}

/// A night whose profile is worse than the last good one, and two that repeated the one before them without an alarm.
fn worse_night() -> Lab {
    let mut lab = night();
    let verdict = |worse: &[&str]| Verdict {
        against: "profiles/good".into(),
        tolerance: 0.05,
        alpha: 0.01,
        numbers: 34,
        worse: worse.iter().map(ToString::to_string).collect(),
        changed: vec!["tract on cpu: 0.21, now 0.22".to_owned()],
        repeat_alarmed: Some(!worse.is_empty()),
        ..Verdict::default()
    };
    let run = lab.kept.runs.get_mut(&1).expect("the first");
    run.verdict = Some(verdict(&["layer 1 C1 on cpu: +9.0 % ± 1.0 %"]));
    for time in ["12 23:00", "13 23:00"] {
        let earlier = lab.run(1, 0, RunState::Done);
        earlier.phone = Some("R58".to_owned());
        earlier.ended = Some(at(time));
        earlier.profile = Some("profiles/good".into());
        earlier.verdict = Some(verdict(&[]));
    }
    lab
}

#[test]
fn what_is_worse_comes_before_the_tables_with_how_often_repeats_alarm() {
    let report = worse_night().report();
    assert_eq!(
        report.headline,
        "1 of 4 profiles published, with findings, 1 worse than before; 1 failed, 2 wait."
    );
    let [record] = report.gate.as_slice() else {
        panic!("{:?}", report.gate);
    };
    assert_eq!((record.repeats, record.alarms), (3, 1));
    let sections = report.sections(&TimeZone::UTC);
    let section = |title: &str| {
        let found = sections
            .iter()
            .position(|section| section.title.starts_with(title));
        found.unwrap_or_else(|| panic!("no {title}"))
    };
    let worse = &sections[section("Worse than before")];
    assert!(worse.grave && section("Worse than before") < section("Published"));
    let words: Vec<String> = worse.rows[0].iter().map(ToString::to_string).collect();
    assert_eq!(words[3], "1 of 34");
    assert_eq!(words[4], "layer 1 C1 on cpu: +9.0 % ± 1.0 %");
    assert_eq!(words[5], "the last good profile profiles/good");
    assert_eq!(words[6], "tract on cpu: 0.21, now 0.22");
    let repeats = &sections[section("Alarms between repeats")].rows[0];
    let words: Vec<String> = repeats.iter().map(ToString::to_string).collect();
    // Of three one: 0.8 to 90.6 % by the exact interval.
    assert_eq!(words[2..], ["3", "1", "33.3 %", "0.8 % to 90.6 %", "1.0 %"]);
    let html = report.html(&TimeZone::UTC);
    assert!(
        html.contains("<h2 class=\"grave\">Worse than before</h2>"),
        "{html}"
    );
}
