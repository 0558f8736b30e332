//! What was looked at and what was found, with what mends it, as it is printed.

use serde::Serialize;

use crate::exit::Failure;
use crate::output;
use layerlab_farm::adb::Printable;

/// The columns of a verdict.
const VERDICT: usize = 9;

/// What was looked at, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    subject: String,
    pub(super) verdict: Verdict,
    message: String,
    /// What mends it, if it is not fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Whether time mends it, such as heat.
    #[serde(skip)]
    passes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Fine,
    /// It may be as it should be.
    Note,
    /// Something cannot be done until it is mended.
    Problem,
}

impl Finding {
    pub(super) fn fine(subject: &str, message: impl Into<String>) -> Finding {
        Finding {
            subject: subject.to_owned(),
            verdict: Verdict::Fine,
            message: message.into(),
            remedy: None,
            passes: false,
        }
    }

    /// The same for whoever has time: what passes is no problem.
    pub(crate) fn with_time(self) -> Finding {
        match (self.passes, self.verdict) {
            (true, Verdict::Problem) => Finding {
                verdict: Verdict::Note,
                ..self
            },
            _ => self,
        }
    }

    /// What is said of itself, with its remedy or without.
    pub(super) fn told(subject: &str, message: impl Into<String>) -> Finding {
        Finding {
            verdict: Verdict::Note,
            ..Finding::fine(subject, message)
        }
    }

    pub(super) fn note(
        subject: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            remedy: Some(remedy.into()),
            ..Finding::told(subject, message)
        }
    }

    /// A problem that time mends.
    pub(super) fn passing(
        subject: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            passes: true,
            ..Finding::problem(subject, message, remedy)
        }
    }

    pub(super) fn problem(
        subject: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            verdict: Verdict::Problem,
            ..Finding::note(subject, message, remedy)
        }
    }
}

/// Prints findings, each with what mends it.
pub(crate) fn print_all(findings: &[Finding]) -> Result<(), Failure> {
    let columns = output::columns();
    findings
        .iter()
        .try_for_each(|finding| output::print(lines(finding, columns)))
}

/// How many of them are problems.
pub(crate) fn problems(findings: &[Finding]) -> usize {
    let problems = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Problem);
    problems.count()
}

/// What was found, and in a line of its own what mends it.
fn lines(finding: &Finding, columns: Option<usize>) -> String {
    let verdict = match finding.verdict {
        Verdict::Fine => "fine",
        Verdict::Note => "note",
        Verdict::Problem => "PROBLEM",
    };
    let (subject, message) = (Printable(&finding.subject), Printable(&finding.message));
    let found = format!("{verdict:VERDICT$}{subject}: {message}");
    let mut lines = output::wrapped(&found, columns, VERDICT);
    if let Some(remedy) = &finding.remedy {
        let remedy = format!("{:VERDICT$}→ {}", "", Printable(remedy));
        lines.push('\n');
        lines.push_str(&output::wrapped(&remedy, columns, VERDICT + 2));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_fits_a_terminal_of_80_columns() {
        let remedy =
            "sudo apt install something with a long name, and another thing, then start again";
        let finding = Finding::note("udev rule", "no rule for phones", remedy);
        let lines = lines(&finding, Some(80));
        assert!(
            lines.lines().all(|line| line.chars().count() <= 80),
            "{lines}"
        );
        assert!(
            lines.starts_with("note     udev rule: no rule for phones"),
            "{lines}"
        );
        assert!(lines.contains("\n         → sudo apt install"), "{lines}");
    }

    #[test]
    fn who_has_time_has_no_problem_with_what_passes() {
        let hot = Finding::passing("P1", "battery at 51.0 °C", "let it cool");
        let full = Finding::problem("P1", "3 MB of storage free", "delete something");
        assert_eq!(problems(&[hot.clone(), full.clone()]), 2);
        let with_time = [hot.with_time(), full.with_time()];
        assert_eq!(problems(&with_time), 1);
        assert_eq!(with_time[1].verdict, Verdict::Problem);
    }
}
