//! What runs give: all those of a job the same.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a run gives.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// The profile of a model.
    #[default]
    Profile,
    /// What answering the frames of a video costs, and how often the answers are right.
    Video,
    /// What a link to an edge server carries.
    Link,
}

/// As it is written in JSON.
impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunKind::Profile => "profile",
            RunKind::Video => "video",
            RunKind::Link => "link",
        })
    }
}

impl RunKind {
    /// What so many runs of the kind give, in words.
    pub fn given(self, runs: usize) -> &'static str {
        match (self, runs) {
            (RunKind::Profile, 1) => "profile",
            (RunKind::Profile, _) => "profiles",
            (RunKind::Video, 1) => "video measurement",
            (RunKind::Video, _) => "video measurements",
            (RunKind::Link, 1) => "link measurement",
            (RunKind::Link, _) => "link measurements",
        }
    }
}
