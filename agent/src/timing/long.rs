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
                rounds: (*rounds).max(1),
            }),
            _ => None,
        }
    }

    /// Which of its turns the segment at this place has in this round, counted from 0; of all but the long one each round is one.
    pub(super) fn turn(long: Option<Long>, place: usize, round: u64) -> Option<u64> {
        match long {
            Some(long) if long.place == place => {
                let has_turn = round.is_multiple_of(long.rounds);
                has_turn.then(|| round / long.rounds)
            }
            _ => Some(round),
        }
    }
}
