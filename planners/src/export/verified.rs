//! What was measured of plans that were run on a device.

use std::collections::BTreeMap;

use layerlab_profiles::Placement;
use layerlab_profiles::summary::Estimate;

/// What running a placement on a device gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerifiedPlacement {
    /// The median of the passes.
    pub time_ns: u64,
    /// Its 95 % interval; nothing where there were too few passes.
    pub time_ci95_ns: Option<(u64, u64)>,
    /// The accuracy and the ends of its 95 % interval; nothing where the time alone was measured.
    pub accuracy: Option<(f64, (f64, f64))>,
    /// What one inference draws above what the idle device does, in nJ in the place of ns; nothing where no meter was read.
    pub energy: Option<Estimate>,
}

/// What was measured of each placement that was run.
pub type VerifiedPlacements = BTreeMap<Placement, VerifiedPlacement>;
