//! What can be asked of a and b: sparse linear combinations, each of which leaves the one thing that
//! cannot be known (how a constant is divided between all a and all b) out.

use crate::placement::Placement;
use crate::segment::Segment;

/// Where the nodes a_1..a_n and b_1..b_n stand in the vector of unknowns: in the order of the layers, b_1 a_1 b_2 a_2 …
/// b_(n-1) a_(n-1) a_n b_n, in which single layers and neighbours form a path, and short segments join nodes that are
/// close.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes {
    layers: usize,
}

impl Nodes {
    pub(crate) fn of(layers: u32) -> Nodes {
        Nodes {
            layers: layers as usize,
        }
    }

    pub(crate) fn layers(self) -> u32 {
        self.layers as u32
    }

    /// All nodes. The last, b_n, is fixed at 0: that divides the constant.
    pub(crate) fn count(self) -> usize {
        2 * self.layers
    }

    /// The node a of a segment that begins with `layer`.
    pub(crate) fn begin(self, layer: u32) -> usize {
        (2 * layer as usize - 1).min(2 * self.layers - 2)
    }

    /// The node b of a segment that ends with `layer`.
    pub(crate) fn end(self, layer: u32) -> usize {
        if layer as usize == self.layers {
            return self.count() - 1;
        }
        2 * (layer as usize - 1)
    }

    /// The two nodes that a segment joins.
    pub(crate) fn ends(self, segment: Segment) -> (usize, usize) {
        (self.begin(segment.first()), self.end(segment.last()))
    }

    /// S(i,j) = a_i + b_j.
    pub(crate) fn segment(self, segment: Segment) -> Contrast {
        let (begin, end) = self.ends(segment);
        Contrast(vec![(begin, 1.0), (end, 1.0)])
    }

    /// The cost of cutting after `layer`: c = t_r(layer) + t_d(layer + 1) less what the two layers would
    /// have saved by running together, a_(l+1) + b_l.
    pub(crate) fn cut_after(self, layer: u32) -> Contrast {
        Contrast(vec![(self.begin(layer + 1), 1.0), (self.end(layer), 1.0)])
    }

    /// t_d(layer + 1) = t_r(layer) under the assumption that both are half of the cut.
    pub(crate) fn transfer_after(self, layer: u32) -> Contrast {
        self.cut_after(layer).times(0.5)
    }

    /// t_p(layer) under the same assumption.
    pub(crate) fn compute(self, layer: u32) -> Contrast {
        self.compute_less(layer, 0.5, 0.5)
    }

    /// t_p(layer): the layer alone, less these shares of the cuts before and after it; the first layer keeps its
    /// transfer in, the last its transfer out, from which nothing separates them (docs/method.md §2).
    pub(crate) fn compute_less(self, layer: u32, before: f64, after: f64) -> Contrast {
        let mut terms = self.segment(Segment::single(layer)).0;
        if layer > 1 {
            terms.extend(self.cut_after(layer - 1).times(-before).0);
        }
        if layer < self.layers() {
            terms.extend(self.cut_after(layer).times(-after).0);
        }
        Contrast(terms)
    }

    /// The accelerator's part of T(L): the sum of S over the maximal runs of layers on processor 1.
    pub(crate) fn npu_part(self, placement: &Placement) -> Contrast {
        Contrast(
            placement
                .npu_runs()
                .flat_map(|run| self.segment(run).0)
                .collect(),
        )
    }
}

/// A linear combination of nodes: (node, factor), a node possibly several times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contrast(pub(crate) Vec<(usize, f64)>);

impl Contrast {
    /// The same, so many times.
    pub(crate) fn times(mut self, factor: f64) -> Contrast {
        self.0.iter_mut().for_each(|(_, times)| *times *= factor);
        self
    }

    /// Its value for given values of all nodes.
    pub(crate) fn of(&self, nodes: &[f64]) -> f64 {
        self.0
            .iter()
            .map(|&(node, factor)| factor * nodes[node])
            .sum()
    }
}
