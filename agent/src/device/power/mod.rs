//! Power meters: what a device draws, however that is known. A meter is read over windows of half a minute or more; it knows
//! nothing of networks and of what runs meanwhile.

mod counter;
mod external;
mod fuel_gauge;
mod rails;
mod rapl;
mod readings;
mod sampled;

use std::path::{Path, PathBuf};
use std::time::Instant;

use layerlab_profiles::energy::Meter;
use layerlab_profiles::{NanoJoules, Nanos};
use layerlab_protocol::MeterChoice;

pub(super) use self::readings::PowerReadings;

/// What tells how much a device draws.
pub trait PowerMeter: Send {
    /// What it is.
    fn meter(&self) -> Meter;

    /// A window begins now, by the device's clock.
    fn begin(&mut self, now: Nanos) -> Result<(), MeterError>;

    /// The window goes on: asked after every inference, and several times a second while the device idles.
    fn poll(&mut self, now: Nanos) -> Result<(), MeterError>;

    /// The window ends now: what was drawn in it.
    fn end(&mut self, now: Nanos) -> Result<Drawn, MeterError>;
}

/// What a device drew in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// By the meter.
    pub energy: NanoJoules,
    /// From how many readings that is known.
    pub readings: u64,
    /// The standard deviation of the readings, in µW; 0 of a counter.
    pub scatter_uw: u64,
    /// What all readings until now are multiples of, in µW; absent of a counter, and while there was but one value.
    pub step_uw: Option<u64>,
}

/// Why nothing can be read of a power meter: one sentence for a person.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// There is none.
    #[error(
        "this device has no power meter that can be read ({reasons}); attach one and name it with --meter, or leave out --energy"
    )]
    None {
        /// Which were looked for, and why each cannot be read.
        reasons: String,
    },
    /// The one that was asked for is not there.
    #[error("there are no {what} in {}; choose another --meter", place.display())]
    Missing {
        /// What is missing.
        what: &'static str,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// A simulated device has a gauge, or nothing.
    #[error(
        "a simulated device has no meter `{0}`; choose --meter auto, which is the gauge of its file"
    )]
    NotSimulated(MeterChoice),
    /// A simulated device's file says nothing of a gauge.
    #[error(
        "the simulated device has no power meter; add [gauge] to its file, or leave out --energy"
    )]
    NoGauge,
    /// The battery is not what the device runs from.
    #[error(
        "the device is powered from outside, so that its fuel gauge does not see what its processors draw: unplug it and reach it \
         over the network, or suspend charging"
    )]
    Powered,
    /// Nobody says where the power comes from.
    #[error(
        "the device does not tell whether it is powered from outside, so that its fuel gauge proves nothing; choose another --meter"
    )]
    PowerUnknown,
    /// A file of it cannot be read.
    #[error("cannot read {} of the power meter: {reason}; {remedy}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
        /// What helps.
        remedy: &'static str,
    },
    /// It told too little.
    #[error(
        "the power meter gave {readings} readings in a window of {window}, too few for an average; choose a longer --energy, or \
         another --meter"
    )]
    TooFew {
        /// How many readings there were.
        readings: u64,
        /// How long the window was.
        window: Nanos,
    },
    /// An instrument is not there.
    #[error(
        "no power meter answers at {address}: {reason}; start what sends its lines, or name another --meter"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// Why not.
        reason: String,
    },
    /// An instrument says something else.
    #[error(
        "the power meter at {address} sent {line:?}, and not a time in microseconds and a power in microwatts, such as \
         `1500000 742000`"
    )]
    BadLine {
        /// Where it is.
        address: String,
        /// What it said.
        line: String,
    },
    /// An instrument says nothing more.
    #[error("the power meter at {address} {what}; look after it, and measure again")]
    Lost {
        /// Where it is.
        address: String,
        /// What became of it.
        what: &'static str,
    },
}

/// What opens the meters of a real machine.
#[derive(Debug)]
pub(super) struct Meters {
    sys: PathBuf,
    /// When the device's clock began.
    start: Instant,
}

impl Meters {
    /// Those that the kernel tells of under `sys`; the device's clock began at `start`.
    pub(super) fn told_under(sys: &Path, start: Instant) -> Meters {
        Meters {
            sys: sys.to_owned(),
            start,
        }
    }

    /// Opens the one that was chosen. `charging` says whether the battery is being charged, where Android tells.
    pub(super) fn open(
        &self,
        choice: &MeterChoice,
        charging: Option<bool>,
    ) -> Result<Box<dyn PowerMeter>, MeterError> {
        match choice {
            MeterChoice::Rails => rails::open(&self.sys),
            MeterChoice::Rapl => rapl::open(&self.sys),
            MeterChoice::FuelGauge => fuel_gauge::open(&self.sys, charging),
            MeterChoice::Tcp(address) => external::connect(address, self.start),
            MeterChoice::Serial(path) => external::open(Path::new(path), self.start),
            MeterChoice::Any => {
                let mut reasons = Vec::new();
                for kind in [
                    MeterChoice::Rails,
                    MeterChoice::Rapl,
                    MeterChoice::FuelGauge,
                ] {
                    match self.open(&kind, charging) {
                        Ok(meter) => return Ok(meter),
                        // That a fuel gauge is there, and proves nothing now, is the better reason.
                        Err(error @ (MeterError::Powered | MeterError::PowerUnknown)) => {
                            return Err(error);
                        }
                        Err(error @ MeterError::Read { .. }) => {
                            reasons.push(format!("{kind}: {error}"));
                        }
                        Err(_) => reasons.push(format!("{kind}: not there")),
                    }
                }
                Err(MeterError::None {
                    reasons: reasons.join("; "),
                })
            }
        }
    }
}
