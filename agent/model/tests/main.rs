//! Tests of models: one program, which is linked once.

// A test that fails to unwrap has failed.
#![allow(clippy::unwrap_used)]

mod attention;
mod chaining;
mod common;
mod crossing;
mod cutting;
mod files;
mod named_layers;
mod quantise;
mod quantised_answers;
mod random_graphs;
mod refused;
