//! Where a number comes from, said in every row of the tables that hold times.
//!
//! In memory the header and a row's method say it once; on disk each row repeats it, so that a table
//! taken out of its folder still says that its device was simulated.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::combination::processors_of_digits;
use super::{CombinationRow, Header, Method};

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
    /// Read from a clock around a processor's emulator, or an order statistic of such readings: no device's time.
    /// Of accuracy: counted from answers that the emulator gave.
    Emulated,
    /// Calculated from different emulated numbers.
    DerivedFromEmulated,
}

impl Origin {
    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Derived => "derived",
            Origin::Simulated => "simulated",
            Origin::DerivedFromSimulated => "derived-from-simulated",
            Origin::Emulated => "emulated",
            Origin::DerivedFromEmulated => "derived-from-emulated",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Header {
    /// Where samples of a processor and their summaries come from.
    pub fn origin_of_samples(&self, processor: &str) -> Origin {
        self.origin(self.is_emulated(processor))
    }

    /// Where a layer time of a processor that came about by `method` comes from.
    pub fn origin_of_times(&self, processor: &str, method: Method) -> Origin {
        let samples = self.origin_of_samples(processor);
        match (method, samples) {
            // A median is a sample, or the middle of two: nothing different was combined.
            (Method::Median, samples) => samples,
            (_, Origin::Simulated) => Origin::DerivedFromSimulated,
            (_, Origin::Emulated) => Origin::DerivedFromEmulated,
            (_, _) => Origin::Derived,
        }
    }

    /// Where the accuracy of a placement comes from: from the emulator where one of its processors is emulated.
    pub(crate) fn origin_of_combination(&self, row: &CombinationRow) -> Origin {
        let mut processors = processors_of_digits(self, &row.cpu, &row.accelerator).into_iter();
        self.origin(processors.any(|name| self.is_emulated(name)))
    }

    fn origin(&self, emulated: bool) -> Origin {
        match (self.simulated, emulated) {
            (true, _) => Origin::Simulated,
            (false, true) => Origin::Emulated,
            (false, false) => Origin::Measured,
        }
    }

    /// Whether the processor of this name was played by its maker's emulator.
    pub fn is_emulated(&self, processor: &str) -> bool {
        let mut processors = self.processors.iter();
        processors.any(|one| one.emulated && one.name == processor)
    }
}
