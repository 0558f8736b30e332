//! A report as tables of text, the same for a terminal and for HTML.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_profiles::link::LinkDirection;

use super::cell::Cell;
use super::{Absent, Counted, DeviceReport, GateRecord, JobReport, Report, RunOutcome, RunReport};
use crate::device::label;
use crate::when;

/// A table under a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is about.
    pub title: &'static str,
    /// Whether somebody should do something about it.
    pub grave: bool,
    /// The heads of its columns.
    pub heads: &'static [&'static str],
    /// The columns with numbers.
    pub right: &'static [usize],
    /// What it says; names and reasons are as they came, and to be escaped.
    pub rows: Vec<Vec<Cell>>,
}

impl Report {
    /// What the report says beyond its headline, in the order in which people want to know it. Times are those of
    /// `zone`; nothing is empty.
    pub fn sections(&self, zone: &TimeZone) -> Vec<Section> {
        let words = Words { report: self, zone };
        let mut sections = vec![
            words.troubles(),
            words.without_profile(),
            words.worse(),
            words.to_come(),
            words.published(),
            words.videos(),
            words.links(),
            words.jobs(),
            words.retried(),
            words.rejected(),
            words.gate(),
            words.devices(),
            words.quarantined(),
            words.reservations(),
        ];
        sections.retain(|section| !section.rows.is_empty());
        sections
    }

    /// The time that the report is about, in `zone`.
    pub fn period(&self, zone: &TimeZone) -> String {
        let words = Words { report: self, zone };
        let (since, until) = (words.moment(self.since), words.moment(self.until));
        format!("{since} to {until}")
    }
}

struct Words<'a> {
    report: &'a Report,
    zone: &'a TimeZone,
}

impl Words<'_> {
    fn moment(&self, at: Timestamp) -> String {
        when::moment(at, self.report.until, self.zone)
    }

    fn moment_if_any(&self, at: Option<Timestamp>) -> String {
        at.map_or_else(String::new, |at| self.moment(at))
    }

    fn troubles(&self) -> Section {
        let troubles = self.report.troubles.iter();
        Section {
            title: "Trouble of the lab",
            grave: true,
            heads: &["when", "what"],
            right: &[],
            rows: troubles
                .map(|trouble| texts([self.moment(trouble.at), trouble.reason.clone()]))
                .collect(),
        }
    }

    /// What will not be published unless somebody does something.
    fn without_profile(&self) -> Section {
        let counts = &self.report.counts;
        Section {
            title: "Not measured",
            grave: counts.failed + counts.expired > 0,
            ..self.missing(|outcome| outcome.is_over())
        }
    }

    fn to_come(&self) -> Section {
        Section {
            title: "Running and waiting",
            ..self.missing(|outcome| !outcome.is_over())
        }
    }

    fn missing(&self, wanted: fn(RunOutcome) -> bool) -> Section {
        let row = |(job, run): (&JobReport, &RunReport)| {
            let absent = run.absent.as_ref().filter(|_| wanted(run.outcome))?;
            Some(vec![
                name(job).into(),
                model(run).into(),
                self.report.device(&run.device).into(),
                run.outcome.into(),
                self.absent(absent).into(),
            ])
        };
        Section {
            title: "",
            grave: false,
            heads: &["job", "model", "device", "state", "why"],
            right: &[],
            rows: self.report.runs().filter_map(row).collect(),
        }
    }

    fn absent(&self, absent: &Absent) -> String {
        match absent.until {
            Some(until) => format!("{}, until {}", absent.reason, self.moment(until)),
            None => absent.reason.clone(),
        }
    }

    fn published(&self) -> Section {
        let row = |(job, run): (&JobReport, &RunReport)| {
            let published = run.published.as_ref()?;
            let mut findings = published.findings.clone();
            if published.gone {
                findings.insert(0, "its folder is gone".to_owned());
            }
            Some(vec![
                name(job).into(),
                model(run).into(),
                self.report.device_of(run).into(),
                self.moment_if_any(run.ended).into(),
                Cell::Profile {
                    folder: published.profile.clone(),
                    digest: (published.digest.as_ref()).map(|digest| digest.short().to_string()),
                    gone: published.gone,
                },
                findings.join("; ").into(),
            ])
        };
        Section {
            title: "Published",
            grave: false,
            heads: &["job", "model", "device", "when", "profile", "findings"],
            right: &[],
            rows: self.report.runs().filter_map(row).collect(),
        }
    }

    fn videos(&self) -> Section {
        let row = |(job, run): (&JobReport, &RunReport)| {
            let video = run.video.as_ref()?;
            let gone = video.gone.then(|| "its folder is gone".to_owned());
            let findings: Vec<String> = gone.into_iter().chain(video.findings.clone()).collect();
            Some(texts([
                name(job),
                model(run),
                self.report.device_of(run),
                self.moment_if_any(run.ended),
                video.folder.display().to_string(),
                findings.join("; "),
            ]))
        };
        Section {
            title: "Video measurements",
            grave: false,
            heads: &["job", "model", "device", "when", "folder", "findings"],
            right: &[],
            rows: self.report.runs().filter_map(row).collect(),
        }
    }

    fn links(&self) -> Section {
        let row = |(job, run): (&JobReport, &RunReport)| {
            let link = run.link.as_ref()?;
            let kind = link.kind.map_or_else(String::new, |kind| {
                let simulated = link.simulated == Some(true);
                format!(" ({kind}{})", if simulated { ", simulated" } else { "" })
            });
            let gone = link.gone.then(|| "its folder is gone".to_owned());
            let findings: Vec<String> = gone.into_iter().chain(link.findings.clone()).collect();
            Some(texts([
                name(job),
                format!("{}{kind}", model(run)),
                self.report.device_of(run),
                self.moment_if_any(run.ended),
                link.carries(LinkDirection::Upload),
                link.carries(LinkDirection::Download),
                link.folder.display().to_string(),
                findings.join("; "),
            ]))
        };
        Section {
            title: "Link measurements",
            grave: false,
            heads: &[
                "job", "link", "device", "when", "upload", "download", "folder", "findings",
            ],
            right: &[],
            rows: self.report.runs().filter_map(row).collect(),
        }
    }

    /// What is worse than the last good profile of the same thing.
    fn worse(&self) -> Section {
        let row = |(job, run): (&JobReport, &RunReport)| {
            let verdict = run.worse()?;
            Some(texts([
                name(job),
                model(run),
                self.report.device_of(run),
                format!("{} of {}", verdict.worse.len(), verdict.numbers),
                verdict.worse_in_words(),
                verdict.reference(),
                verdict.changed.join("; "),
            ]))
        };
        Section {
            title: "Worse than before",
            grave: true,
            heads: &[
                "job",
                "model",
                "device",
                "numbers",
                "what is worse",
                "than",
                "known to have changed",
            ],
            right: &[],
            rows: self.report.runs().filter_map(row).collect(),
        }
    }

    /// How far the gate is to be believed.
    fn gate(&self) -> Section {
        let row = |record: &GateRecord| {
            let (low, high) = record.share_ci95;
            texts([
                record.model.clone(),
                self.report.device(&record.device),
                record.repeats.to_string(),
                record.alarms.to_string(),
                percent(record.alarms as f64 / record.repeats as f64),
                format!("{} to {}", percent(low), percent(high)),
                percent(record.alpha),
            ])
        };
        Section {
            title: "Alarms between repeats, with nothing known to have changed",
            grave: false,
            heads: &[
                "model",
                "device",
                "repeats",
                "alarms",
                "share",
                "95 % interval",
                "by chance at most",
            ],
            right: &[2, 3, 4],
            rows: self.report.gate.iter().map(row).collect(),
        }
    }

    fn jobs(&self) -> Section {
        let row = |job: &JobReport| {
            let counts = &job.counts;
            let runs = match job.runs.len() {
                0 => String::new(),
                runs => format!("{} of {runs}", counts.published),
            };
            vec![
                job.id.to_string().into(),
                job.name.clone().into(),
                job.state.into(),
                self.moment(job.submitted).into(),
                runs.into(),
                counts.missing().into(),
            ]
        };
        Section {
            title: "Jobs",
            grave: false,
            heads: &[
                "number",
                "name",
                "state",
                "submitted",
                "published",
                "others",
            ],
            right: &[0],
            rows: self.report.jobs.iter().map(row).collect(),
        }
    }

    fn retried(&self) -> Section {
        let rows = self.report.runs().flat_map(|(job, run)| {
            let of_attempt = move |attempt: &super::FailedAttempt| {
                let device = attempt.device.as_deref().unwrap_or_default();
                vec![
                    self.moment(attempt.at).into(),
                    name(job).into(),
                    model(run).into(),
                    self.report.device(device).into(),
                    attempt.reason.clone().into(),
                    run.outcome.into(),
                ]
            };
            run.retried.iter().map(of_attempt)
        });
        Section {
            title: "Tried again",
            grave: false,
            heads: &["when", "job", "model", "device", "why", "now"],
            right: &[],
            rows: rows.collect(),
        }
    }

    fn rejected(&self) -> Section {
        let rows = self.report.runs().flat_map(|(job, run)| {
            let of_reason = move |rejected: &Counted| {
                texts([
                    name(job),
                    model(run),
                    self.report.device_of(run),
                    rejected.count.to_string(),
                    rejected.reason.clone(),
                ])
            };
            run.rejected.iter().map(of_reason)
        });
        Section {
            title: "Blocks measured again",
            grave: false,
            heads: &["job", "model", "device", "blocks", "why"],
            right: &[3],
            rows: rows.collect(),
        }
    }

    fn devices(&self) -> Section {
        let row = |device: &DeviceReport| {
            let spent = &device.spent;
            let idle = device.longest_idle.map_or_else(String::new, |idle| {
                let length = when::length(idle.length());
                format!("{length} from {}", self.moment(idle.from))
            });
            texts([
                label(&device.name, device.simulated, device.emulated),
                device.description.clone(),
                format!("{} of {}", device.published, device.runs),
                device.failed_attempts.to_string(),
                millis(spent.wall_ms),
                (device.busy_percent).map_or_else(String::new, |busy| format!("{busy:.1} %")),
                millis(spent.cool_down_ms),
                // A blank would leave open whether it ever was.
                when::length(Duration::from_millis(spent.waiting_ms)),
                idle,
                self.remarks(device),
            ])
        };
        Section {
            title: "Devices",
            grave: false,
            heads: &[
                "device",
                "what it is",
                "published",
                "failed attempts",
                "time on runs",
                "busy",
                "cooling down",
                "not ready",
                "longest idle between runs",
                "remarks",
            ],
            right: &[3, 4, 5, 6, 7],
            rows: self.report.devices.iter().map(row).collect(),
        }
    }

    fn remarks(&self, device: &DeviceReport) -> String {
        let away = device
            .gone_since
            .map(|since| format!("away since {}", self.moment(since)));
        let not_ready = device.not_ready.iter().map(|why| match why.count {
            1 => format!("not ready: {}", why.reason),
            count => format!("{count} times not ready: {}", why.reason),
        });
        let remarks: Vec<String> = away.into_iter().chain(not_ready).collect();
        remarks.join("; ")
    }

    fn quarantined(&self) -> Section {
        let row = |entry: &super::Quarantined| {
            texts([
                self.report.device(&entry.device),
                self.moment(entry.at),
                self.moment(entry.until),
                entry.reason.clone(),
            ])
        };
        Section {
            title: "Left alone",
            grave: false,
            heads: &["device", "since", "until", "why"],
            right: &[],
            rows: self.report.quarantined.iter().map(row).collect(),
        }
    }

    fn reservations(&self) -> Section {
        let row = |taken: &super::Reserved| {
            texts([
                self.report.device(&taken.device),
                self.moment(taken.from),
                self.moment(taken.until),
                taken.note.clone(),
                self.moment_if_any(taken.lifted),
            ])
        };
        Section {
            title: "Reserved",
            grave: false,
            heads: &["device", "from", "until", "for", "given back"],
            right: &[],
            rows: self.report.reservations.iter().map(row).collect(),
        }
    }
}

fn texts<const N: usize>(texts: [String; N]) -> Vec<Cell> {
    texts.map(Cell::Text).into()
}

/// A job's name with its number, as names may come twice.
fn name(job: &JobReport) -> String {
    format!("{} ({})", job.name, job.id)
}

fn model(run: &RunReport) -> String {
    match run.repeat {
        0 | 1 => run.model.clone(),
        repeat => format!("{}, repeat {repeat}", run.model),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn millis(millis: u64) -> String {
    match millis {
        0 => String::new(),
        millis => when::length(Duration::from_millis(millis)),
    }
}

impl RunOutcome {
    /// Whether nothing more comes of the run.
    pub(super) fn is_over(self) -> bool {
        match self {
            RunOutcome::Published
            | RunOutcome::Failed
            | RunOutcome::Expired
            | RunOutcome::Cancelled => true,
            RunOutcome::Running | RunOutcome::Parked | RunOutcome::Waiting => false,
        }
    }
}

impl std::fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            RunOutcome::Published => "published",
            RunOutcome::Failed => "failed",
            RunOutcome::Expired => "expired",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Running => "running",
            RunOutcome::Parked => "parked",
            RunOutcome::Waiting => "waiting",
        })
    }
}
