//! What training and planning cost.
fn main() {}
