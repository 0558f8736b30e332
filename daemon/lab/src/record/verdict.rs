//! What the gate said of a published profile: whether it is worse than the last good one of the same thing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Run, RunState};

/// So many numbers are named in a sentence; the others are counted.
const NAMED: usize = 3;

/// What the gate said of a published profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The profile that it was compared with: of the same model and device, by the same runtimes.
    pub against: PathBuf,
    /// Whether that is the baseline that was set; else it is the last profile that was no worse than the one before it.
    pub is_baseline: bool,
    /// With how many good profiles it was compared; the last of them is `against`.
    #[serde(default = "one")]
    pub good: usize,
    /// By how much a number may be worse, as a share of itself.
    pub tolerance: f64,
    /// The chance of a false alarm, over all numbers together.
    pub alpha: f64,
    /// How many numbers were tested.
    pub numbers: usize,
    /// What is worse by more than is tolerated, or cannot run any more, each in a few words.
    pub worse: Vec<String>,
    /// How many other numbers may be worse by more than that, for all that is known.
    pub may_be_worse: usize,
    /// What is known to have changed between the two profiles, each in a few words.
    pub changed: Vec<String>,
    /// Of a profile that repeats the one before it, with nothing known to have changed: whether the gate between these two
    /// gave an alarm. What such alarms are of all repeats is the rate of false alarms, as far as nothing changed unseen.
    pub repeat_alarmed: Option<bool>,
}

impl Verdict {
    /// Whether anything is worse by more than is tolerated.
    pub fn is_worse(&self) -> bool {
        !self.worse.is_empty()
    }

    /// What is worse, the first few by their names.
    pub fn worse_in_words(&self) -> String {
        let more = self.worse.len().saturating_sub(NAMED);
        let named = self.worse.iter().take(NAMED).cloned();
        let more = (more > 0).then(|| format!("and {more} more"));
        named.chain(more).collect::<Vec<_>>().join("; ")
    }

    /// The profile that it was compared with: `the baseline profiles/a`.
    pub fn reference(&self) -> String {
        let what = match self.is_baseline {
            true => "the baseline".to_owned(),
            false if self.good > 1 => {
                format!("the last {} good profiles, the newest of them", self.good)
            }
            false => "the last good profile".to_owned(),
        };
        format!("{what} {}", self.against.display())
    }
}

/// Older records are of one good profile each.
pub(crate) fn one() -> usize {
    1
}

impl Run {
    /// The verdict on its profile, if that is worse than the last good one.
    pub fn worse(&self) -> Option<&Verdict> {
        let is_done = self.state == RunState::Done;
        self.verdict
            .as_ref()
            .filter(|verdict| is_done && verdict.is_worse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_numbers_are_named() {
        let worse = (1..=5).map(|layer| format!("layer {layer}"));
        let verdict = Verdict {
            worse: worse.collect(),
            ..Verdict::default()
        };
        let words = verdict.worse_in_words();
        assert_eq!(words, "layer 1; layer 2; layer 3; and 2 more");
    }
}
