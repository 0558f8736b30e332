//! Segments (layers i..=j run as one unit) and combinations (which layer runs on which processor).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Layers `first..=last` of a model, numbered from 1, run on one processor as one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct Segment {
    first: u32,
    last: u32,
}

/// Layer numbers that are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "layers {first}..={last} are no segment: layers are numbered from 1 and the first cannot come after the last"
)]
pub struct SegmentError {
    first: u32,
    last: u32,
}

impl Segment {
    /// Layers `first..=last`, or an error unless `1 <= first <= last`.
    pub const fn new(first: u32, last: u32) -> Result<Self, SegmentError> {
        if first >= 1 && first <= last {
            Ok(Segment { first, last })
        } else {
            Err(SegmentError { first, last })
        }
    }

    /// The segment of one layer.
    ///
    /// # Panics
    /// When `layer` is 0: layers are numbered from 1.
    pub const fn single(layer: u32) -> Self {
        assert!(layer >= 1, "layers are numbered from 1");
        Segment {
            first: layer,
            last: layer,
        }
    }

    /// All layers of a model of `layers` layers.
    ///
    /// # Panics
    /// When `layers` is 0: a model has at least one layer.
    pub const fn whole(layers: u32) -> Self {
        assert!(layers >= 1, "a model has at least one layer");
        Segment {
            first: 1,
            last: layers,
        }
    }

    /// The number of the first layer, counted from 1.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The number of the last layer, counted from 1.
    pub const fn last(self) -> u32 {
        self.last
    }

    /// How many layers the segment has.
    pub const fn layers(self) -> u32 {
        self.last - self.first + 1
    }
}

impl TryFrom<(u32, u32)> for Segment {
    type Error = SegmentError;
    fn try_from((first, last): (u32, u32)) -> Result<Self, SegmentError> {
        Segment::new(first, last)
    }
}

impl From<Segment> for (u32, u32) {
    fn from(segment: Segment) -> Self {
        (segment.first, segment.last)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}..={}", self.first, self.last))
    }
}

/// Which layers run on the accelerator: the `L` of the papers, `x_l = 1` meaning the NPU.
///
/// Written as a string of zeros and ones, layer 1 first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Combination(Vec<bool>);

/// A text that names no combination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no layer combination: write one 0 (CPU) or 1 (NPU) per layer, layer 1 first, such as 0110"
)]
pub struct CombinationError(String);

impl Combination {
    /// The combination in which layer `l` runs on the NPU if `on_npu[l - 1]`.
    pub fn new(on_npu: Vec<bool>) -> Self {
        Combination(on_npu)
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.0.len()
    }

    /// Whether each layer runs on the NPU, layer 1 first.
    pub fn on_npu(&self) -> &[bool] {
        &self.0
    }

    /// The maximal runs of neighbouring layers on one processor, in order, and whether it is the NPU.
    pub fn runs(&self) -> impl Iterator<Item = (Segment, bool)> + '_ {
        let mut next = 0;
        self.0
            .chunk_by(|left, right| left == right)
            .map(move |run| {
                let first = next + 1;
                next += run.len() as u32;
                (Segment { first, last: next }, run[0])
            })
    }

    /// The maximal runs of neighbouring NPU layers, in order: what the accelerator executes as units.
    pub fn npu_runs(&self) -> impl Iterator<Item = Segment> + '_ {
        self.runs()
            .filter_map(|(run, on_npu)| on_npu.then_some(run))
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|&npu| f.write_str(if npu { "1" } else { "0" }))
    }
}

impl From<Combination> for String {
    fn from(combination: Combination) -> String {
        combination.to_string()
    }
}

impl TryFrom<String> for Combination {
    type Error = CombinationError;
    fn try_from(text: String) -> Result<Self, CombinationError> {
        text.parse()
    }
}

impl FromStr for Combination {
    type Err = CombinationError;
    fn from_str(text: &str) -> Result<Self, CombinationError> {
        let digit = |c| match c {
            '0' => Some(false),
            '1' => Some(true),
            _ => None,
        };
        match text.chars().map(digit).collect::<Option<Vec<_>>>() {
            Some(on_npu) if !on_npu.is_empty() => Ok(Combination(on_npu)),
            _ => Err(CombinationError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_starts_at_one_and_does_not_run_backwards() {
        assert!(Segment::new(0, 3).is_err());
        assert!(Segment::new(3, 2).is_err());
        assert_eq!(Segment::new(2, 4).map(Segment::layers), Ok(3));
    }

    #[test]
    fn npu_runs_are_the_maximal_runs_of_ones() {
        let runs = |text: &str| -> Vec<(u32, u32)> {
            let combination: Combination = text.parse().expect("zeros and ones");
            combination.npu_runs().map(Into::into).collect()
        };
        assert_eq!(runs("0000"), []);
        assert_eq!(runs("1111"), [(1, 4)]);
        assert_eq!(runs("1011"), [(1, 1), (3, 4)]);
        assert_eq!(runs("0110"), [(2, 3)]);
    }

    #[test]
    fn a_combination_reads_as_it_is_written() {
        for text in ["0", "1", "0110"] {
            assert_eq!(
                text.parse::<Combination>().map(|c| c.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "012", "true"] {
            assert!(text.parse::<Combination>().is_err(), "{text}");
        }
    }
}
