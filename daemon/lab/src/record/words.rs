//! What happened, and what became of jobs and runs, in people's words.

use std::fmt;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{JobState, RunState, What};
use crate::when::moment;

impl What {
    /// What happened, for a person who reads it at `now` and whose clock shows `zone`.
    pub fn words(&self, now: Timestamp, zone: &TimeZone) -> String {
        let moment = |at: &Timestamp| moment(*at, now, zone);
        match self {
            What::DaemonStarted { host: None } => "the lab opened".to_owned(),
            What::DaemonStarted { host: Some(host) } => format!("host `{host}` opened the lab"),
            What::DaemonStopped { host: None } => "the lab closed".to_owned(),
            What::DaemonStopped { host: Some(host) } => format!("host `{host}` left the lab"),
            What::Submitted => "submitted".to_owned(),
            What::JobEnded { state } => format!("the job is {state}"),
            What::Paused => "paused".to_owned(),
            What::Resumed => "resumed".to_owned(),
            What::RetryAsked => "what failed is tried again".to_owned(),
            What::DeviceCame => "came".to_owned(),
            What::DeviceGone => "went away".to_owned(),
            What::Quarantined { reason, until } => {
                format!("left alone until {}: {reason}", moment(until))
            }
            What::QuarantineLifted => "used again".to_owned(),
            What::Reserved { from, until, note } => {
                let period = format!("reserved from {} to {}", moment(from), moment(until));
                and(&period, note)
            }
            What::ReservationLifted => "given back to the lab".to_owned(),
            What::Started { attempt: 1 } => "began".to_owned(),
            What::Started { attempt } => format!("began anew, attempt {attempt}"),
            What::Continued => "goes on where it was parked".to_owned(),
            What::NotReady { reason } => format!("not ready: {reason}"),
            What::Parked { reason } => and("parked", reason),
            What::AttemptFailed { reason } => format!("failed, to be tried again: {reason}"),
            What::BlockRejected { reason } => format!("a block is measured again: {reason}"),
            What::Published { profile, findings } => published("", profile, findings),
            What::VideoPublished { folder, findings } => {
                published("its video measurement is ", folder, findings)
            }
            What::LinkPublished { folder, findings } => {
                published("its link measurement is ", folder, findings)
            }
            What::Worse { than, numbers } => {
                format!("worse than {}: {}", than.display(), numbers.join("; "))
            }
            What::Failed { reason } => format!("given up: {reason}"),
            What::Asked { by, command } => format!("{by} asked over the web to {command}"),
            What::Trouble { reason } => format!("trouble: {reason}"),
        }
    }
}

fn published(what: &str, folder: &Path, findings: &[String]) -> String {
    let published = format!("{what}published in {}", folder.display());
    match findings.len() {
        0 => published,
        _ => format!("{published}, with doubts: {}", findings.join("; ")),
    }
}

fn and(text: &str, note: &str) -> String {
    match note.trim() {
        "" => text.to_owned(),
        note => format!("{text}: {note}"),
    }
}

/// For who reads it here and now.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Timestamp::now(), &TimeZone::system()))
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobState::Open => "open",
            JobState::Recurring => "recurring",
            JobState::Paused => "paused",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Expired => "expired",
        })
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Parked => "parked",
            RunState::Done => "done",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
            RunState::Expired => "expired",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    #[test]
    fn events_are_told_in_the_reader_s_time() {
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let now = at("2026-11-20T20:00:00Z");
        let cases = [
            (What::Started { attempt: 1 }, "began"),
            (What::Started { attempt: 2 }, "began anew, attempt 2"),
            (
                What::JobEnded {
                    state: JobState::Expired,
                },
                "the job is expired",
            ),
            (
                What::Quarantined {
                    reason: "it does not boot".to_owned(),
                    until: at("2026-11-20T21:00:00Z"),
                },
                "left alone until Fri 20 Nov 22:00: it does not boot",
            ),
            (
                What::Reserved {
                    from: at("2026-11-20T21:00:00Z"),
                    until: at("2027-01-01T06:00:00Z"),
                    note: String::new(),
                },
                "reserved from Fri 20 Nov 22:00 to Fri 1 Jan 2027 07:00",
            ),
            (
                What::Published {
                    profile: "profiles/a".into(),
                    findings: vec!["layer 3 is noisy".to_owned()],
                },
                "published in profiles/a, with doubts: layer 3 is noisy",
            ),
            (
                What::VideoPublished {
                    folder: "profiles/b".into(),
                    findings: Vec::new(),
                },
                "its video measurement is published in profiles/b",
            ),
            (
                What::LinkPublished {
                    folder: "profiles/c".into(),
                    findings: vec!["upload is unsteady".to_owned()],
                },
                "its link measurement is published in profiles/c, with doubts: upload is unsteady",
            ),
            (
                What::Worse {
                    than: "profiles/a".into(),
                    numbers: vec!["layer 3 on cpu: +9.0 % ± 1.0 %".to_owned()],
                },
                "worse than profiles/a: layer 3 on cpu: +9.0 % ± 1.0 %",
            ),
        ];
        for (what, words) in cases {
            assert_eq!(what.words(now, &berlin), words);
        }
    }

    #[test]
    fn states_are_called_what_the_store_calls_them() {
        let job = [JobState::Open, JobState::Recurring, JobState::Expired];
        for state in job {
            assert_eq!(serde_json::json!(state), state.to_string());
        }
        for state in [RunState::Queued, RunState::Parked, RunState::Cancelled] {
            assert_eq!(serde_json::json!(state), state.to_string());
        }
    }
}
