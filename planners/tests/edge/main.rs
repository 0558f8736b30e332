//! Networks split between a phone and a server (jointdnn).

mod accurate;
mod accurate_checker;
mod arc_flow;
mod baselines;
mod brute_force;
mod checker;
mod goals;
mod measured;
mod measured_packed;
mod mended;
mod misuse;
mod optimum;
mod packed;
mod paper;
#[path = "../planted/mod.rs"]
mod phone;
mod placed;
mod planted;
#[allow(dead_code, reason = "each test binary uses some of this")]
#[path = "../several/mod.rs"]
mod several;
