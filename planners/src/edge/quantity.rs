//! What a plan costs is three quantities.

use std::fmt;

/// One of the three costs of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// T, from the input on the phone to the last layer and the results on the phone (jointdnn Eq. 4), in ns.
    Latency,
    /// E, what the phone spends (jointdnn Eq. 10), in nJ.
    Energy,
    /// C, how long the server computes (jointdnn Eq. 19), in ns.
    ServerTime,
}

impl Quantity {
    /// All of them, in the order in which ties are decided.
    pub const ALL: [Quantity; 3] = [Quantity::Latency, Quantity::Energy, Quantity::ServerTime];
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Quantity::Latency => "latency",
            Quantity::Energy => "energy",
            Quantity::ServerTime => "server time",
        })
    }
}
