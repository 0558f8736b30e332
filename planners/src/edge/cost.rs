//! What a plan, or a part of one, costs.

use std::ops::Add;

use layerlab_profiles::Nanos;

use super::energy::Energy;
use super::quantity::Quantity;

/// The costs (T, E, C) of a plan or of a part of one. Costs of parts add up; they are ordered by T, then E, then C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SplitCost {
    /// T.
    pub latency: Nanos,
    /// E, of the phone alone: a server's energy is nobody's concern here (jointdnn §2.4.2).
    pub energy: Energy,
    /// C.
    pub server_time: Nanos,
}

impl SplitCost {
    /// Nothing.
    pub const ZERO: SplitCost = SplitCost {
        latency: Nanos::ZERO,
        energy: Energy::ZERO,
        server_time: Nanos::ZERO,
    };

    /// The costs in the order of [`Quantity::ALL`], in ns or nJ.
    pub const fn from_each([latency, energy, server_time]: [u64; 3]) -> SplitCost {
        SplitCost {
            latency: Nanos::from_nanos(latency),
            energy: Energy::from_nanojoules(energy),
            server_time: Nanos::from_nanos(server_time),
        }
    }

    /// One of the costs, in ns or nJ.
    pub const fn of(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Latency => self.latency.as_nanos(),
            Quantity::Energy => self.energy.as_nanojoules(),
            Quantity::ServerTime => self.server_time.as_nanos(),
        }
    }

    /// The same but for one of the costs, in ns or nJ.
    pub(super) fn with(self, quantity: Quantity, cost: u64) -> SplitCost {
        SplitCost::from_each(Quantity::ALL.map(|one| match one == quantity {
            true => cost,
            false => self.of(one),
        }))
    }

    /// The least of each quantity, which need not be of one and the same part.
    pub(super) fn least_of_each(self, other: SplitCost) -> SplitCost {
        SplitCost::from_each(Quantity::ALL.map(|one| self.of(one).min(other.of(one))))
    }
}

impl Add for SplitCost {
    type Output = SplitCost;
    fn add(self, other: SplitCost) -> SplitCost {
        SplitCost {
            latency: self.latency + other.latency,
            energy: self.energy + other.energy,
            server_time: self.server_time + other.server_time,
        }
    }
}
