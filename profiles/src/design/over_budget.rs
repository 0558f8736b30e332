//! What is done where the budget is not enough for layer times.

use std::fmt;
use std::str::FromStr;

/// What is done where the budget is not enough for the segments that layer times follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverBudget {
    /// They are measured all the same, and nothing else.
    #[default]
    Extend,
    /// Nothing is published; it is said how much device time they need.
    Refuse,
}

/// A word that says neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{unknown}` says nothing about budgets: choose extend or refuse")]
pub struct UnknownOverBudget {
    unknown: String,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            OverBudget::Extend => "extend",
            OverBudget::Refuse => "refuse",
        })
    }
}

impl FromStr for OverBudget {
    type Err = UnknownOverBudget;
    fn from_str(word: &str) -> Result<Self, UnknownOverBudget> {
        [OverBudget::Extend, OverBudget::Refuse]
            .into_iter()
            .find(|one| one.to_string() == word)
            .ok_or_else(|| UnknownOverBudget {
                unknown: word.to_owned(),
            })
    }
}
