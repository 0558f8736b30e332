//! What can be wrong with an outcome.

use std::fmt;

use layerlab_profiles::time_model::TimeModelError;
use layerlab_profiles::{Nanos, Placement, Segment, SignedNanos};

use crate::memory::MemoryUse;

/// Something that an outcome says and the tables do not. Each reads as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The tables do not give the time of the combination.
    Tables {
        /// Why the tables give no time.
        reason: TimeModelError,
    },
    /// T(L), or how it is split, is another.
    Time {
        /// What the outcome says.
        said: SignedNanos,
        /// What the tables say.
        found: SignedNanos,
    },
    /// The 95 % interval of T(L) is another.
    Interval {
        /// What the outcome says.
        said: Option<(SignedNanos, SignedNanos)>,
        /// What the tables say.
        found: Option<(SignedNanos, SignedNanos)>,
    },
    /// A(L) is another.
    Accuracy {
        /// What the outcome says.
        said: f64,
        /// What the tables say.
        found: f64,
    },
    /// The interval of A(L) is another.
    AccuracyInterval {
        /// What the outcome says.
        said: Option<(f64, f64)>,
        /// What the tables say.
        found: Option<(f64, f64)>,
    },
    /// The limit is kept with the plan's confidence and is said not to be, or the other way round.
    KeepsLimit {
        /// Whether the outcome says that it is kept.
        said: bool,
    },
    /// The measured accuracy is not in the table.
    Measured {
        /// What the outcome says.
        said: f64,
    },
    /// The plan takes longer than the goal allows.
    TooSlow {
        /// T(L).
        time: SignedNanos,
        /// θ_t, the longest time that the goal allows.
        within: Nanos,
    },
    /// The plan is less accurate than the goal requires.
    TooInaccurate {
        /// A(L).
        accuracy: f64,
        /// θ_a, the least accuracy that the goal requires.
        at_least: f64,
    },
    /// What is said to break the limit keeps it.
    FeasibleAfterAll {
        /// The placement that keeps the limit.
        combination: Placement,
    },
    /// A processor cannot run the placement.
    Unsupported {
        /// The placement.
        combination: Placement,
        /// The processor, counted from 0.
        processor: usize,
        /// The layers that it cannot run as one unit.
        segment: Segment,
        /// Why it cannot.
        reason: String,
    },
    /// The memory of an accelerator does not hold the placement.
    TooLarge {
        /// The placement.
        combination: Placement,
        /// What it needs of the memory, and what there is.
        shortage: MemoryUse,
    },
    /// The placement needs other amounts of memory.
    Memory {
        /// What the outcome says.
        said: Vec<MemoryUse>,
        /// What the tables give.
        found: Vec<MemoryUse>,
    },
    /// The processors can run, and their memories hold, what is said to be impossible.
    SupportedAfterAll {
        /// The placement.
        combination: Placement,
    },
    /// What is said to be the fastest combination is not.
    NotFastest {
        /// A faster one.
        faster: Placement,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Tables { reason } => write!(f, "the tables give no time: {reason}"),
            Fault::Time { said, found } => {
                write!(
                    f,
                    "the time is said to be {said} and the tables give {found}, split as published"
                )
            }
            Fault::Interval { said, found } => write!(
                f,
                "the interval of the time is said to be {} and the tables give {}",
                interval(said),
                interval(found)
            ),
            Fault::Accuracy { said, found } => {
                write!(
                    f,
                    "the accuracy is said to be {said} and the tables give {found}"
                )
            }
            Fault::AccuracyInterval { said, found } => write!(
                f,
                "the interval of the accuracy is said to be {} and the tables give {}",
                interval(said),
                interval(found)
            ),
            Fault::KeepsLimit { said } => {
                let (said, found) = match said {
                    true => ("kept", "not kept"),
                    false => ("not kept", "kept"),
                };
                write!(
                    f,
                    "the limit is said to be {said} with the plan's confidence, and by the tables it is {found}"
                )
            }
            Fault::Measured { said } => {
                write!(
                    f,
                    "the accuracy {said} is said to be measured and is not in the table"
                )
            }
            Fault::TooSlow { time, within } => {
                write!(f, "the plan takes {time}, more than the limit {within}")
            }
            Fault::TooInaccurate { accuracy, at_least } => {
                write!(
                    f,
                    "the plan's accuracy {accuracy} is below the requirement {at_least}"
                )
            }
            Fault::FeasibleAfterAll { combination } => {
                write!(f, "{combination} is said to break the limit and keeps it")
            }
            Fault::Unsupported {
                combination,
                processor,
                segment,
                reason,
            } => write!(
                f,
                "{combination} has layers {segment} on processor {processor}, which cannot run them: {reason}"
            ),
            Fault::TooLarge {
                combination,
                shortage,
            } => write!(f, "{combination} does not fit: {shortage}"),
            Fault::Memory { said, found } => {
                let needed = |all: &[MemoryUse]| {
                    let all = all.iter().map(|used| used.needed.to_string());
                    all.collect::<Vec<_>>().join(", ")
                };
                write!(
                    f,
                    "of memory {} are said to be needed, and the tables give {}",
                    needed(said),
                    needed(found)
                )
            }
            Fault::SupportedAfterAll { combination } => {
                write!(f, "{combination} is said to be impossible and can run")
            }
            Fault::NotFastest { faster } => {
                write!(
                    f,
                    "{faster} is faster than what is said to be the fastest combination"
                )
            }
        }
    }
}

/// The ends of an interval in words.
fn interval<T: fmt::Display>(ends: &Option<(T, T)>) -> String {
    match ends {
        Some((low, high)) => format!("{low} to {high}"),
        None => "unknown".to_owned(),
    }
}
