//! Layer times by least squares on the segment graph (docs/method.md §3 and §4).
//!
//! All times that can be known are S(i,j) = a_i + b_j: segments are edges between the nodes {a_i} and
//! {b_j} of a bipartite graph. Measured edges are combined by weighted least squares into all a and b;
//! anything derived is linear in them and carries the interval that follows from their covariance.
//!
//! In steps: [`NoiseModel`] says how far samples scatter, [`observe`] makes one robust time of each
//! segment's samples, [`Fit::new`] adjusts them to each other, [`additivity`] tests the model itself.

mod additivity;
mod connected;
mod contrast;
mod edge;
mod fit;
mod location;
mod moderation;
mod noise;
mod observation;
mod quantile;
mod snooping;

pub use additivity::{AdditivityTest, HeldBack, additivity};
pub use connected::GraphError;
pub use fit::Fit;
pub use noise::NoiseModel;
pub use observation::{Observation, Observations, observe};

pub(crate) use contrast::{Contrast, Nodes};
pub(crate) use quantile::two_sided_p_normal;
