//! The two ends of a link, and the two ways along it.

use std::fmt;

/// Where a group of layers runs: the paper's mobile device, or its cloud (jointdnn §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The phone, which has the input and wants the results.
    Phone,
    /// The server.
    Server,
}

impl Side {
    /// Both, the phone first.
    pub const ALL: [Side; 2] = [Side::Phone, Side::Server];

    /// The way to this side from the other one.
    pub const fn arrival(self) -> Direction {
        match self {
            Side::Phone => Direction::Download,
            Side::Server => Direction::Upload,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Phone => "phone",
            Side::Server => "server",
        })
    }
}

/// Which way a tensor crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the phone to the server.
    Upload,
    /// From the server to the phone.
    Download,
}

impl Direction {
    /// The side that it leads to.
    pub const fn to(self) -> Side {
        match self {
            Direction::Upload => Side::Server,
            Direction::Download => Side::Phone,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Direction::Upload => "upload",
            Direction::Download => "download",
        })
    }
}
