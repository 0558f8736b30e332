//! What the two-way analysis of times by segment and visit is told.

/// The robust time of one segment in one visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The place of the segment.
    pub(super) segment: usize,
    /// The place of the visit.
    pub(super) visit: usize,
    /// The logarithm of the time.
    pub(super) value: f64,
    /// The variance of it that the spread of inferences explains.
    pub(super) inference: f64,
}
