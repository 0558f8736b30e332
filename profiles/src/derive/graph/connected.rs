//! Do the measured segments determine all that can be known?

use std::collections::BTreeMap;

use super::contrast::Nodes;
use crate::segment::Segment;

/// Segments from which layer times do not follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// There is no layer to derive a time for.
    #[error("a model without layers has no layer times")]
    NoLayers,
    /// A segment of another model.
    #[error("layers {segment} were measured, but the model has {layers} layers")]
    UnknownLayer {
        /// The segment that ends beyond the model's last layer.
        segment: Segment,
        /// How many layers the model has.
        layers: u32,
    },
    /// A node of the graph has no edge.
    #[error(
        "least squares needs a segment that begins with layer {layer}, and none was measured; \
         measure with the design local or adaptive"
    )]
    NoneBegins {
        /// The number of the layer with which no segment begins.
        layer: u32,
    },
    /// A node of the graph has no edge.
    #[error(
        "least squares needs a segment that ends with layer {layer}, and none was measured; \
         measure with the design local or adaptive"
    )]
    NoneEnds {
        /// The number of the layer with which no segment ends.
        layer: u32,
    },
    /// The graph has several parts.
    #[error(
        "the measured segments do not connect: nothing relates the times of layers {one} and {other}; \
         measure with the design local or adaptive"
    )]
    Disconnected {
        /// A segment of one part.
        one: Segment,
        /// A segment of another.
        other: Segment,
    },
    /// The measured times are so unequally certain that the arithmetic cannot combine them.
    #[error(
        "the measured times cannot be combined: their uncertainties differ by too many orders of magnitude"
    )]
    Singular,
}

impl GraphError {
    /// The same of the whole model, where it was found in `stretch` as in a model of its own.
    pub(crate) fn moved_into(self, stretch: Segment) -> GraphError {
        let before = stretch.first() - 1;
        match self {
            GraphError::UnknownLayer { segment, layers } => GraphError::UnknownLayer {
                segment: segment.moved_into(stretch),
                layers: layers + before,
            },
            GraphError::NoneBegins { layer } => GraphError::NoneBegins {
                layer: layer + before,
            },
            GraphError::NoneEnds { layer } => GraphError::NoneEnds {
                layer: layer + before,
            },
            GraphError::Disconnected { one, other } => GraphError::Disconnected {
                one: one.moved_into(stretch),
                other: other.moved_into(stretch),
            },
            GraphError::NoLayers | GraphError::Singular => self,
        }
    }
}

/// Refuses segments that leave something undetermined that could be known.
pub(super) fn refuse_unless_connected(
    layers: u32,
    segments: impl Iterator<Item = Segment> + Clone,
) -> Result<(), GraphError> {
    if layers == 0 {
        return Err(GraphError::NoLayers);
    }
    if let Some(segment) = segments.clone().find(|segment| segment.last() > layers) {
        return Err(GraphError::UnknownLayer { segment, layers });
    }
    let nodes = Nodes::of(layers);
    let mut parts = Parts((0..nodes.count()).collect());
    let mut used = vec![false; nodes.count()];
    let mut first = None;
    for segment in segments.clone() {
        let (begin, end) = nodes.ends(segment);
        (used[begin], used[end]) = (true, true);
        parts.join(begin, end);
        first.get_or_insert((segment, begin));
    }
    for layer in 1..=layers {
        if !used[nodes.begin(layer)] {
            return Err(GraphError::NoneBegins { layer });
        }
        if !used[nodes.end(layer)] {
            return Err(GraphError::NoneEnds { layer });
        }
    }
    let Some((one, begin)) = first else {
        return Err(GraphError::NoneBegins { layer: 1 });
    };
    let root = parts.root(begin);
    let by_part: BTreeMap<bool, Segment> = segments
        .map(|segment| (parts.root(nodes.ends(segment).0) == root, segment))
        .collect();
    match by_part.get(&false) {
        None => Ok(()),
        Some(&other) => Err(GraphError::Disconnected { one, other }),
    }
}

/// Disjoint sets of nodes.
struct Parts(Vec<usize>);

impl Parts {
    fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one] = other;
    }
}
