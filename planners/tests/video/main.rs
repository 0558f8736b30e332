//! Video on a phone beside a server: calibration against scikit-learn, planners against brute force.

mod brute;
mod calibration;
mod cbo;
mod fastva;
mod misuse;
mod replays;
mod simulated;
