//! Tests of the agent: one program, which is linked once.

mod beside;
mod compression;
mod edge_models;
mod link;
mod serving;
mod visit_processes;
