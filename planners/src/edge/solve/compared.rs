//! Which of two splits beats the other: one does where it costs no more in all that counts.

use std::collections::BTreeMap;

use crate::edge::cost::SplitCost;
use crate::edge::goal::SplitGoal;
use crate::edge::quantity::Quantity;

/// Which quantities count where splits are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    first: Quantity,
    others: [Option<Quantity>; 2],
}

impl Compared {
    /// All three.
    pub(super) const ALL: Compared = Compared {
        first: Quantity::Latency,
        others: [Some(Quantity::Energy), Some(Quantity::ServerTime)],
    };

    /// What is minimised, and what has a limit; the rest decides ties.
    pub(super) fn by(goal: &SplitGoal) -> Compared {
        let limited = goal.limits.limited().map(|(one, _)| one);
        let mut others = limited.filter(|&one| one != goal.minimise);
        Compared {
            first: goal.minimise,
            others: [others.next(), others.next()],
        }
    }

    /// What costs are ordered by: the least rank is the best.
    pub(super) fn rank(self, cost: &SplitCost) -> (u64, SplitCost) {
        (cost.of(self.first), *cost)
    }

    /// Those that no other one beats, ascending.
    pub(super) fn unbeaten<T>(
        self,
        mut all: Vec<T>,
        cost: impl Fn(&T) -> SplitCost,
    ) -> impl Iterator<Item = T> {
        // Of equal ones the first stays.
        all.sort_by_key(|one| self.rank(&cost(one)));
        // Of those so far, none of which ranks behind: the least of one quantity for each of the other, ascending in that.
        let mut stairs: BTreeMap<u64, u64> = BTreeMap::new();
        all.into_iter().filter(move |each| {
            let [one, other] = self.others(&cost(each));
            let below = stairs.range(..=one).next_back();
            if below.is_some_and(|(_, &least)| least <= other) {
                return false;
            }
            let beaten = stairs
                .range(one..)
                .take_while(|&(_, &least)| least >= other);
            let beaten: Vec<u64> = beaten.map(|(&step, _)| step).collect();
            for step in beaten {
                stairs.remove(&step);
            }
            stairs.insert(one, other);
            true
        })
    }

    fn others(self, cost: &SplitCost) -> [u64; 2] {
        self.others.map(|one| one.map_or(0, |one| cost.of(one)))
    }
}
