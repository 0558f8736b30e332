//! Designs: which segments of a model are measured, so that layer times can be derived from them.

pub mod adaptive;
mod grouped;
mod local;
mod prefix_suffix;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::segment::Segment;

/// A choice of segments to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every prefix and every suffix of the model (mlmp §4.2.2): 2n - 1 segments.
    PrefixSuffix,
    /// Every layer alone, every pair of neighbours, and the whole model (docs/method.md §4): 2n segments.
    Local,
    /// What `local` measures and whatever else a planner finds worth its time while it measures.
    Adaptive,
    /// Every segment (JointDNN's grouped table): n(n + 1) / 2 of them.
    Grouped,
    /// Every layer by itself, in order, each fed by the layer before it: how a processor that computes
    /// in main memory is read layer by layer.
    LayerPass,
}

impl Design {
    /// All designs, in the order in which they are offered.
    pub const ALL: [Design; 5] = [
        Design::PrefixSuffix,
        Design::Local,
        Design::Adaptive,
        Design::Grouped,
        Design::LayerPass,
    ];

    /// The segments this design measures on a model of `layers` layers, ascending, each once.
    /// `adaptive` measures others too, which it chooses while it measures.
    pub fn segments(self, layers: u32) -> Vec<Segment> {
        self.iter(layers).collect()
    }

    /// The same segments one by one: a grouped table of a large model is large itself.
    pub fn iter(self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        match self {
            Design::PrefixSuffix => Box::new(prefix_suffix::segments(layers)),
            Design::Local | Design::Adaptive => Box::new(local::segments(layers)),
            Design::Grouped => Box::new(grouped::segments(layers)),
            Design::LayerPass => Box::new((1..=layers).map(Segment::single)),
        }
    }

    /// Whether this design may measure `segment` on a model of `layers` layers.
    pub fn contains(self, layers: u32, segment: Segment) -> bool {
        let (first, last) = segment.into();
        last <= layers
            && match self {
                Design::PrefixSuffix => first == 1 || last == layers,
                Design::Local => local::contains(layers, segment),
                Design::Adaptive | Design::Grouped => true,
                Design::LayerPass => first == last,
            }
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Design::PrefixSuffix => "prefix-suffix",
            Design::Local => "local",
            Design::Adaptive => "adaptive",
            Design::Grouped => "grouped",
            Design::LayerPass => "layer-pass",
        }
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no design has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no design: choose prefix-suffix, local, adaptive, grouped or layer-pass")]
pub struct UnknownDesign(String);

impl FromStr for Design {
    type Err = UnknownDesign;
    fn from_str(name: &str) -> Result<Self, UnknownDesign> {
        Design::ALL
            .into_iter()
            .find(|design| design.name() == name)
            .ok_or_else(|| UnknownDesign(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_have_the_sizes_that_the_papers_state() {
        for n in 1..=40 {
            assert_eq!(Design::PrefixSuffix.segments(n).len() as u32, 2 * n - 1);
            assert_eq!(Design::Grouped.segments(n).len() as u32, n * (n + 1) / 2);
            assert_eq!(Design::LayerPass.segments(n).len() as u32, n);
            // With one or two layers the whole model is a single or a pair.
            let whole = u32::from(n > 2);
            assert_eq!(Design::Local.segments(n).len() as u32, 2 * n - 1 + whole);
        }
    }

    #[test]
    fn segments_come_ascending_and_once() {
        for design in Design::ALL {
            let segments = design.segments(9);
            assert!(
                segments.windows(2).all(|pair| pair[0] < pair[1]),
                "{design}"
            );
        }
    }

    #[test]
    fn a_design_contains_the_segments_that_it_lists() {
        for layers in 1..=7 {
            for design in Design::ALL {
                let listed = design.segments(layers);
                for segment in Design::Grouped.segments(layers + 1) {
                    // Adaptive chooses the rest as it goes: anything that is a segment of the model.
                    let chosen = design == Design::Adaptive && segment.last() <= layers;
                    assert_eq!(
                        design.contains(layers, segment),
                        chosen || listed.contains(&segment),
                        "{design}: {segment} of {layers}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_design_reads_as_it_is_written() {
        for design in Design::ALL {
            assert_eq!(design.to_string().parse(), Ok(design));
        }
        assert!("prefixsuffix".parse::<Design>().is_err());
    }
}
