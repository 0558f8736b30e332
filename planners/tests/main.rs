//! Tests of planners: one program, which is linked once.

mod checker;
mod heuristics;
mod learning;
mod least_energy;
mod limits;
mod misuse;
mod optimum;
mod planted;
mod processors;
mod profile;
mod recorded;
mod refine;
mod several;
mod three;
mod unsupported;
