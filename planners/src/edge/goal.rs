//! What a split of a network is to achieve, and what it may cost.

use layerlab_profiles::Nanos;

use super::cost::SplitCost;
use super::energy::Energy;
use super::error::SplitError;
use super::quantity::Quantity;

/// What a plan may cost at most: any subset of the paper's constraints (jointdnn §2.4.5), which Algorithm 1 as printed
/// would apply one at a time, the last one winning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitLimits {
    /// T_QoS (jointdnn Eq. 20).
    pub latency: Option<Nanos>,
    /// E_ubound, the battery's budget (jointdnn Eq. 18).
    pub energy: Option<Energy>,
    /// T_ubound, the server's budget (jointdnn Eq. 19); 0 keeps everything on the phone.
    pub server_time: Option<Nanos>,
}

impl SplitLimits {
    /// The limit of one cost, in ns or nJ.
    pub fn of(&self, quantity: Quantity) -> Option<u64> {
        match quantity {
            Quantity::Latency => self.latency.map(Nanos::as_nanos),
            Quantity::Energy => self.energy.map(Energy::as_nanojoules),
            Quantity::ServerTime => self.server_time.map(Nanos::as_nanos),
        }
    }

    /// The same but for one limit, in ns or nJ.
    pub(super) fn with(self, quantity: Quantity, limit: u64) -> SplitLimits {
        match quantity {
            Quantity::Latency => SplitLimits {
                latency: Some(Nanos::from_nanos(limit)),
                ..self
            },
            Quantity::Energy => SplitLimits {
                energy: Some(Energy::from_nanojoules(limit)),
                ..self
            },
            Quantity::ServerTime => SplitLimits {
                server_time: Some(Nanos::from_nanos(limit)),
                ..self
            },
        }
    }

    /// The costs that have a limit.
    pub fn limited(&self) -> impl Iterator<Item = (Quantity, u64)> {
        Quantity::ALL
            .into_iter()
            .filter_map(|quantity| Some((quantity, self.of(quantity)?)))
    }

    /// Whether no cost is above its limit.
    pub fn keeps(&self, cost: &SplitCost) -> bool {
        self.limited()
            .all(|(quantity, limit)| cost.of(quantity) <= limit)
    }
}

/// What a split of a network is to achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitGoal {
    /// The cost to make as small as possible: the paper's latency or energy; or server time.
    pub minimise: Quantity,
    /// What it may cost.
    pub limits: SplitLimits,
}

impl SplitGoal {
    /// The least latency, whatever else it costs.
    pub const FASTEST: SplitGoal = SplitGoal {
        minimise: Quantity::Latency,
        limits: SplitLimits {
            latency: None,
            energy: None,
            server_time: None,
        },
    };

    /// Refuses limits that nothing can keep.
    pub(super) fn refuse_unless_sensible(&self) -> Result<(), SplitError> {
        let mut zero = self.limits.limited().filter(|&(_, limit)| limit == 0);
        match zero.find(|(quantity, _)| *quantity != Quantity::ServerTime) {
            Some((quantity, _)) => Err(SplitError::ZeroLimit(quantity)),
            None => Ok(()),
        }
    }
}
