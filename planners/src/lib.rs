//! Profiles in, decisions out: which layer of a network should run on which processor.
//!
//! The algorithms are those of MLMP (Tan and Cao, "Efficient Execution of Deep Neural Networks on Mobile
//! Devices with NPU", IPSN 2021) with their gaps closed. They plan for a CPU and one accelerator; the fastest
//! and the exhaustive search plan for up to four processors. Two problems: the most accurate placement within a
//! time, and the fastest placement of at least an accuracy. Beside them: what draws least within either limit
//! ([`mod@least_energy`]), and plans by time or energy alone where accuracy was not measured ([`cost_alone`]).
//!
//! In steps: [`profile::time_table`] and [`AccuracyTable`] take what was measured, [`AccuracyModel::train`]
//! learns the losses that were not, [`Problem::new`] puts the two together, and [`planning::plan`] answers a
//! [`Goal`] by an [`Algorithm`] with an [`Outcome`]: an immutable [`Plan`] with its reasons, or why there is
//! none. [`check::check`] recalculates any outcome from the raw tables, [`sweep`] plans over many limits,
//! [`export`] writes the answers down.
//!
//! Two parts are planners of their own: [`edge`], which groups of layers run on a phone and which on a server beside it
//! (JointDNN), and [`video`], which frames of a video a phone answers and which a server.
//!
//! Everything here is pure: no clock, no network, no asynchrony. The same input gives the same plan.

pub mod accuracy;
pub mod check;
pub mod confidence;
pub mod cost_alone;
pub mod edge;
pub mod error_bands;
pub mod export;
pub mod features;
pub mod front;
pub mod goal;
mod interval;
pub mod least_energy;
pub mod measured_rows;
pub mod memory;
pub mod outcome;
pub mod placement;
pub mod planning;
pub mod problem;
mod processor_table;
pub mod profile;
pub mod reason;
pub mod refine;
pub mod regress;
pub mod rows;
pub mod solve;
pub mod sweep;
pub mod times;
pub mod unsupported;
pub mod video;

pub use accuracy::AccuracyModel;
pub use confidence::Confidence;
pub use cost_alone::{TimePlan, fastest_plan, least_energy_alone};
pub use goal::Goal;
pub use least_energy::{EnergyLimit, EnergyPlan, least_energy};
pub use memory::MemoryMode;
pub use outcome::{Infeasible, Outcome, Plan};
pub use planning::{plan, plan_keeping};
pub use problem::Problem;
pub use rows::{AccuracyRow, AccuracyTable, Set};
pub use solve::Algorithm;
pub use times::TimeTable;
pub use unsupported::UnsupportedSegment;
