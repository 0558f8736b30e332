//! What became of runs, in numbers and in one sentence.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::RunOutcome;
use crate::job::RunKind;

/// How many runs there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// How many runs there are in all; the other counts add up to it.
    pub runs: usize,
    /// Those whose profile, or whatever else they give, is published.
    pub published: usize,
    /// Those that were given up.
    pub failed: usize,
    /// Those whose job's deadline came first.
    pub expired: usize,
    /// Those that a user ended.
    pub cancelled: usize,
    /// Those on a device.
    pub running: usize,
    /// Those left between two blocks.
    pub parked: usize,
    /// Those that wait for a device.
    pub waiting: usize,
}

impl Counts {
    pub(super) fn of(outcomes: impl Iterator<Item = RunOutcome>) -> Counts {
        let mut counts = Counts::default();
        for outcome in outcomes {
            counts.runs += 1;
            *match outcome {
                RunOutcome::Published => &mut counts.published,
                RunOutcome::Failed => &mut counts.failed,
                RunOutcome::Expired => &mut counts.expired,
                RunOutcome::Cancelled => &mut counts.cancelled,
                RunOutcome::Running => &mut counts.running,
                RunOutcome::Parked => &mut counts.parked,
                RunOutcome::Waiting => &mut counts.waiting,
            } += 1;
        }
        counts
    }

    /// What became of the runs of which nothing is published: `1 failed, 2 wait`. Empty if there are none.
    pub fn missing(&self) -> String {
        let parts = [
            (self.failed, "failed", "failed"),
            (self.expired, "expired", "expired"),
            (self.cancelled, "was cancelled", "were cancelled"),
            (self.running, "is running", "are running"),
            (self.parked, "is parked", "are parked"),
            (self.waiting, "waits", "wait"),
        ];
        let parts = parts.iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        parts.join(", ")
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(all: I) -> Counts {
        all.fold(Counts::default(), |sum, counts| Counts {
            runs: sum.runs + counts.runs,
            published: sum.published + counts.published,
            failed: sum.failed + counts.failed,
            expired: sum.expired + counts.expired,
            cancelled: sum.cancelled + counts.cancelled,
            running: sum.running + counts.running,
            parked: sum.parked + counts.parked,
            waiting: sum.waiting + counts.waiting,
        })
    }
}

/// Everything in one sentence. The runs are of these `kinds`; of what is published, `findings` are doubtful and `worse` worse than
/// what was before them.
pub(super) fn sentence(
    counts: &Counts,
    kinds: &BTreeSet<RunKind>,
    findings: usize,
    worse: usize,
) -> String {
    if counts.runs == 0 {
        return "Nothing was asked for.".to_owned();
    }
    let Counts {
        runs, published, ..
    } = counts;
    let given = match Vec::from_iter(kinds.iter().copied()).as_slice() {
        [] => RunKind::default().given(*runs).to_owned(),
        [kind] => kind.given(*runs).to_owned(),
        [others @ .., last] => {
            let many = |kind: &RunKind| kind.given(2);
            let others: Vec<&str> = others.iter().map(many).collect();
            format!("{} and {}", others.join(", "), many(last))
        }
    };
    let doubtful = match findings {
        0 => String::new(),
        _ if findings == *published => ", with findings".to_owned(),
        _ => format!(", {findings} of them with findings"),
    };
    let worse = match worse {
        0 => String::new(),
        worse => format!(", {worse} worse than before"),
    };
    let missing = match counts.missing() {
        missing if missing.is_empty() => missing,
        missing => format!("; {missing}"),
    };
    format!("{published} of {runs} {given} published{doubtful}{worse}{missing}.")
}
