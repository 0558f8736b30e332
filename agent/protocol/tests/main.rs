//! Tests of the protocol: one program, which is linked once.

mod answers;
mod beside_long;
mod edge_plan;
mod energy;
mod frames;
mod framing;
mod memory;
mod placed;
mod readings;
mod steady;
mod stream;
mod tensors;
mod unsupported;
mod version_3;
