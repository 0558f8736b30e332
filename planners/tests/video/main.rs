//! Video on a phone beside a server: calibration against scikit-learn, planners against brute force.

mod any_world;
mod beyond;
mod brute;
mod calibration;
mod cbo;
mod cbo_replays;
mod fastva;
mod live;
mod misuse;
mod replays;
mod simulated;
mod simulator;
mod table;
