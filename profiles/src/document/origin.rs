//! Where a number comes from, said in every row of the tables that hold times.
//!
//! In memory the header and a row's method say it once; on disk each row repeats it, so that a table
//! taken out of its folder still says that its device was simulated.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Header, Method};

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Read from a real device's clock, or an order statistic of such readings.
    Measured,
    /// Calculated from different measured numbers.
    Derived,
    /// Modelled by the simulator, or an order statistic of modelled times.
    Simulated,
    /// Calculated from different simulated numbers.
    DerivedFromSimulated,
}

impl Origin {
    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Derived => "derived",
            Origin::Simulated => "simulated",
            Origin::DerivedFromSimulated => "derived-from-simulated",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Header {
    /// Where samples and their summaries come from.
    pub fn origin_of_samples(&self) -> Origin {
        if self.simulated {
            Origin::Simulated
        } else {
            Origin::Measured
        }
    }

    /// Where a layer time that came about by `method` comes from.
    pub fn origin_of_times(&self, method: Method) -> Origin {
        match (method, self.simulated) {
            // A median is a sample, or the middle of two: nothing different was combined.
            (Method::Median, _) => self.origin_of_samples(),
            (Method::Differencing | Method::Graph, false) => Origin::Derived,
            (Method::Differencing | Method::Graph, true) => Origin::DerivedFromSimulated,
        }
    }
}
