//! The long segment of an order that has few turns beside others.

use layerlab_protocol::Work;

/// The long segment of an order that times others beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Long {
    /// Its place in the order.
    place: usize,
    /// It has a turn in one of so many rounds.
    rounds: u64,
}

impl Long {
    /// That of an order to do this, if it has one.
    pub(super) fn of(work: &Work) -> Option<Long> {
        match work {
            Work::TimeBesideLong {
                segments, rounds, ..
            } => Some(Long {
                place: segments.len(),
                rounds: *rounds,
            }),
            _ => None,
        }
    }

    /// Whether it leaves the segment at this place a turn in this round, as it does all but itself.
    pub(super) fn leaves(long: Option<Long>, place: usize, round: u64) -> bool {
        long.is_none_or(|long| place != long.place || round.is_multiple_of(long.rounds))
    }
}
