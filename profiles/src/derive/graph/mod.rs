//! Layer times by least squares on the segment graph (docs/method.md §3 and §4).
//!
//! All times that can be known are S(i,j) = a_i + b_j, where nothing passes through: segments are edges between the nodes {a_i}
//! and {b_j} of a bipartite graph. Measured edges are combined by weighted least squares into all a and b;
//! anything derived is linear in them and carries the interval that follows from their covariance.
//!
//! In steps: [`NoiseModel`] says how far samples scatter, [`observe`] makes one robust time of each
//! segment's samples, [`Fit::new`] adjusts them to each other, [`additivity`] tests the model itself.

mod additivity;
mod adjusted;
mod cell;
mod connected;
mod contrast;
mod derived_number;
mod edge;
mod fit;
mod in_share;
mod layer_numbers;
mod location;
mod mixed_model;
mod moderation;
mod moments;
mod moving;
mod neighbours;
mod noise;
mod normal;
mod observation;
mod parts;
mod passes;
mod passing;
mod prospect;
mod quantile;
mod serial;
mod skyline;
mod snooping;
mod states;
mod steps;
mod two_way;
mod visit_samples;
mod visits;
mod whole;
mod windows;

pub use additivity::{AdditivityTest, HeldBack, additivity};
pub use connected::GraphError;
pub use fit::Fit;
pub use in_share::{InShares, Undivided};
pub use moving::{IMPROBABLE_BEND, LARGEST_BEND_PERCENT, MOVING_TERMS, MovingModel, MovingTerm};
pub use noise::NoiseModel;
pub use observation::{ErrorVariance, Observation, Observations, VisitSpread, observe};
pub use passes::pass_times;
pub use states::{TwoStates, two_states};
pub use steps::{SpeedStep, speed_steps};
pub use visit_samples::{FEWEST_VISITS, Visit, VisitSamples};
pub use visits::{observe_passes, observe_probes, observe_visits, visit_speeds};
pub use whole::{WholeAgainstParts, whole_against_parts};
pub use windows::{WindowMean, observe_windows};

pub(crate) use contrast::Contrast;
pub(crate) use derived_number::{DerivedNumber, LayerNumbers};
pub(crate) use prospect::PassingProspect;
pub(crate) use quantile::{
    normal_quantile, t_95, two_sided_p_student, upper_p_student, upper_t_quantile,
};
