//! What a layer costs on a processor.

use crate::summary::Estimate;

/// What one layer costs on one processor, in the terms of the papers.
///
/// `None` means that the quantity does not exist there (a CPU computes in main memory and moves
/// nothing) or cannot be told apart, in which case `compute_includes` says that it is in `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerTime {
    /// Computing the layer: the papers' `t_p` on an accelerator, `t_q` on a CPU.
    pub compute: Estimate,
    /// The transfers that `compute` contains because the design cannot separate them.
    pub compute_includes: Includes,
    /// Moving the layer's input from main memory to the processor: the papers' `t_d`.
    pub to_processor: Option<Estimate>,
    /// Moving the layer's output from the processor to main memory: the papers' `t_r`.
    pub from_processor: Option<Estimate>,
}

/// Transfers that a compute time contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Includes {
    /// The transfer of the layer's input to the processor.
    pub to_processor: bool,
    /// The transfer of the layer's output from the processor.
    pub from_processor: bool,
}
