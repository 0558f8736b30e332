//! A network split between a phone and a server, as JointDNN does it (`jointdnn` in citations).
//!
//! [`SplitNetwork`] says what groups of layers cost on each side and which tensors lie between them, [`Link`] what
//! moving bytes costs ([`MeasuredNetwork`] and [`measured_link`] make both of published documents), [`SplitProblem::new`]
//! puts them together, and [`split`] answers a [`SplitGoal`] by a
//! [`SplitAlgorithm`] with a [`SplitOutcome`]. [`check_split`] recalculates any plan. [`training_network`] makes a
//! training step a network of twice the layers. Tensors may cross in one of several [`Packing`]s: each does in the form in which it
//! arrives soonest, so that of such networks the latency alone can be planned with. Where the phone has several processors and an [`AccuracyLimit`] is to be kept,
//! [`PlacedProblem`] says what groups cost on each of them, and [`split_accurately`] answers with an [`AccurateOutcome`], which
//! [`check_accuracy`] checks: what none of the papers does.
//!
//! What is charged, where the paper is wrong as printed:
//! - Each tensor crosses the link once, when it is first used on the other side: not whole frontiers, and no tensor
//!   twice.
//! - Eq. 3: a network that begins on the server uploads its input L_0 (printed: the output of the first group). The
//!   results are downloaded where the last layer runs on the server.
//! - Eq. 9: transfers are charged where the side changes (printed: also between neighbouring groups on the phone), and
//!   a group downloads its input (printed: its output).
//! - Eq. 13 and 16: each backward layer that runs on the server returns its own weights (printed: one layer's for a
//!   whole group); the results are downloaded if they are wanted.
//! - Algorithm 1: all limits hold together (printed: the last one overwrites the others).
//! - Figure 7: a group that makes a skip's source before its last layer, and is not the whole of the skip, is split
//!   there.
//! - While the server computes, and while a transfer waits, the phone draws idle power (printed: none).

pub mod accuracy_limit;
pub mod accurate;
pub mod algorithm;
pub mod check;
pub mod cost;
pub mod energy;
pub mod error;
pub mod goal;
pub mod link;
mod margin;
pub mod measured;
mod measured_link;
pub mod network;
pub mod packing;
pub mod placed_group;
pub mod placed_problem;
pub mod plan;
pub mod problem;
pub mod quantity;
pub mod side;
mod side_processor;
pub mod solve;
pub mod training;
pub mod transfer;

pub use accuracy_limit::AccuracyLimit;
pub use accurate::{AccurateOutcome, AccurateSplit, TooInaccurate};
pub use algorithm::SplitAlgorithm;
pub use check::{AccuracyFault, SplitFault, check_accuracy, check_split};
pub use cost::SplitCost;
pub use energy::{Energy, Power};
pub use error::SplitError;
pub use goal::{SplitGoal, SplitLimits};
pub use link::{Link, PaperLink, RadioPower, Wait};
pub use margin::LatencyIntervals;
pub use measured::{MeasuredNetwork, MeasuredSplitError, PlacedOn, refuse_other_phone};
pub use measured_link::measured_link;
pub use network::{Group, PhoneCost, SplitNetwork, Tensor, chain_tensors};
pub use packing::{Packed, Packing};
pub use placed_group::PlacedGroup;
pub use placed_problem::PlacedProblem;
pub use plan::{LatencyShares, SplitInfeasible, SplitOutcome, SplitPlan, WhyNoSplit};
pub use problem::SplitProblem;
pub use quantity::Quantity;
pub use side::{Direction, Side};
pub use solve::{split, split_accurately, split_front};
pub use training::{BackwardPass, mirrored_segment, training_network};
pub use transfer::TensorTransfer;
