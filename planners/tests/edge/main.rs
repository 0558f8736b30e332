//! Networks split between a phone and a server (jointdnn).

mod arc_flow;
mod baselines;
mod brute_force;
mod checker;
mod goals;
mod measured;
mod mended;
mod misuse;
mod optimum;
mod paper;
mod planted;
