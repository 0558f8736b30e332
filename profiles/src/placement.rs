//! Placements: which layer runs on which processor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::segment::Segment;

/// The most processors that a placement tells apart: a processor is one digit.
pub const MOST_PROCESSORS: usize = 10;

/// The processor of each layer: the `L` of the papers, for any number of processors.
///
/// A processor is an index into a list that goes with the placement. Processor 0 is the CPU that losses are
/// measured against; in the papers processor 1 is the NPU (x_l = 1). Written as one digit per layer, layer 1
/// first: `0110`, or with three processors `0212`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Placement(Vec<u8>);

/// A text that is no placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// There is no digit, or something that is none.
    #[error(
        "`{0}` is no placement: write one digit per layer, layer 1 first, 0 being the CPU and 1 the accelerator, \
         such as 0110"
    )]
    Text(String),
    /// A digit stands for a processor that there is not.
    #[error(
        "the placement {placement} names processor {processor}, and there are {processors}, counted from 0"
    )]
    Processor {
        /// The placement.
        placement: Placement,
        /// The highest processor that it names.
        processor: u8,
        /// How many processors there are.
        processors: usize,
    },
}

impl Placement {
    /// The placement that runs layer `l` on processor `processors[l - 1]`. Of two processors `true` is
    /// processor 1.
    ///
    /// # Panics
    /// When a processor has no digit: when it is [`MOST_PROCESSORS`] or more.
    pub fn new<P: Into<u8>>(processors: Vec<P>) -> Placement {
        let processors: Vec<u8> = processors.into_iter().map(Into::into).collect();
        assert!(
            processors.iter().all(|&p| usize::from(p) < MOST_PROCESSORS),
            "a processor is one digit"
        );
        Placement(processors)
    }

    /// All of `layers` layers on one processor.
    ///
    /// # Panics
    /// When the processor has no digit.
    pub fn all_on(processor: u8, layers: usize) -> Placement {
        Placement::new(vec![processor; layers])
    }

    /// The layer at `index`, counted from 0, on `processor`, and the others of `layers` layers on processor 0.
    ///
    /// # Panics
    /// When the processor has no digit.
    pub fn alone_on(processor: u8, index: usize, layers: usize) -> Placement {
        let on = |other| if other == index { processor } else { 0 };
        Placement::new((0..layers).map(on).collect())
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        self.0.len()
    }

    /// The processor of each layer, layer 1 first.
    pub fn processors(&self) -> &[u8] {
        &self.0
    }

    /// Whether all layers run on `processor`.
    pub fn is_all_on(&self, processor: u8) -> bool {
        self.0.iter().all(|&p| p == processor)
    }

    /// Refuses a placement that names another processor than the first `processors`.
    pub fn refuse_beyond(&self, processors: usize) -> Result<(), PlacementError> {
        match self.0.iter().copied().max() {
            Some(processor) if usize::from(processor) >= processors => {
                Err(PlacementError::Processor {
                    placement: self.clone(),
                    processor,
                    processors,
                })
            }
            _ => Ok(()),
        }
    }

    /// The maximal runs of neighbouring layers on one processor, in order, and that processor.
    pub fn runs(&self) -> impl Iterator<Item = (Segment, u8)> + '_ {
        let mut before = 0;
        self.0.chunk_by(|a, b| a == b).filter_map(move |run| {
            let first = before + 1;
            before += run.len() as u32;
            // A run has a layer, so that its first comes before its last.
            Some((Segment::new(first, before).ok()?, run[0]))
        })
    }

    /// The maximal runs of neighbouring layers on `processor`, in order: what an accelerator executes as units.
    pub fn runs_on(&self, processor: u8) -> impl Iterator<Item = Segment> + '_ {
        self.runs()
            .filter_map(move |(run, on)| (on == processor).then_some(run))
    }

    /// The runs on processor 1: of two processors, the accelerator.
    pub fn npu_runs(&self) -> impl Iterator<Item = Segment> + '_ {
        self.runs_on(1)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|processor| write!(f, "{processor}"))
    }
}

impl From<Placement> for String {
    fn from(placement: Placement) -> String {
        placement.to_string()
    }
}

impl TryFrom<String> for Placement {
    type Error = PlacementError;
    fn try_from(text: String) -> Result<Self, PlacementError> {
        text.parse()
    }
}

impl FromStr for Placement {
    type Err = PlacementError;
    fn from_str(text: &str) -> Result<Self, PlacementError> {
        let digit = |c: char| c.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
        match text.chars().map(digit).collect::<Option<Vec<u8>>>() {
            Some(processors) if !processors.is_empty() => Ok(Placement(processors)),
            _ => Err(PlacementError::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(text: &str) -> Placement {
        text.parse().expect("digits")
    }

    #[test]
    fn a_placement_reads_as_it_is_written() {
        for text in ["0", "1", "0110", "0212", "9081726354"] {
            assert_eq!(placement(text).to_string(), text);
            let json = serde_json::to_string(&placement(text)).expect("text");
            assert_eq!(json, format!("\"{text}\""));
        }
        for text in ["", "01a", "true", "0 1", "٣"] {
            let error = text.parse::<Placement>().expect_err(text);
            assert!(error.to_string().contains("is no placement"), "{error}");
        }
    }

    #[test]
    fn a_processor_that_there_is_not_is_refused() {
        assert!(placement("0110").refuse_beyond(2).is_ok());
        let error = placement("0210")
            .refuse_beyond(2)
            .expect_err("three processors");
        assert_eq!(
            error.to_string(),
            "the placement 0210 names processor 2, and there are 2, counted from 0"
        );
        assert!(placement("0210").refuse_beyond(3).is_ok());
    }

    #[test]
    fn runs_are_maximal_and_in_order() {
        let runs = |text: &str| -> Vec<((u32, u32), u8)> {
            let placement = placement(text);
            let runs = placement.runs();
            runs.map(|(run, processor)| (run.into(), processor))
                .collect()
        };
        assert_eq!(runs("0000"), [((1, 4), 0)]);
        assert_eq!(
            runs("01122"),
            [((1, 1), 0), ((2, 3), 1), ((4, 5), 2)],
            "neighbours on two accelerators are two runs"
        );
        let on_npu = |text: &str| -> Vec<(u32, u32)> {
            placement(text).npu_runs().map(Into::into).collect()
        };
        assert_eq!(on_npu("0000"), []);
        assert_eq!(on_npu("1111"), [(1, 4)]);
        assert_eq!(on_npu("1011"), [(1, 1), (3, 4)]);
        assert_eq!(on_npu("0110"), [(2, 3)]);
    }

    #[test]
    fn booleans_are_the_two_processors_of_the_papers() {
        let bits = vec![false, true, true, false];
        assert_eq!(Placement::new(bits), placement("0110"));
        assert_eq!(Placement::alone_on(2, 1, 3), placement("020"));
        assert!(Placement::all_on(2, 3).is_all_on(2));
    }
}
