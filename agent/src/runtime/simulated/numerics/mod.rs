//! What simulated processors compute: every layer of a network with 32-bit, 16-bit or 8-bit numerics.
//!
//! Each layer is one tract model; a segment is its layers run one after the other. So all segments of a
//! network share their weights, and running it whole or in parts gives the same bits by construction.
//!
//! Reduced numerics keep tensors as 32-bit floats that hold only values the processor has: each weight
//! once when a layer is first run, each tensor that enters, and each operator's result are rounded. The
//! models are neither simplified nor optimised, so that inner steps stay operators of their own.
//! Tensors that are not 32-bit floats (shapes, indices) are left alone.

mod accumulate;
mod half_precision;
mod plans;
mod quantised;
mod rounding;
mod step;
#[cfg(test)]
mod tests;

pub(super) use self::plans::LayerPlans;
