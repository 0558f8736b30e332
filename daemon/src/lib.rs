//! layerlab's host side: finds devices, has their agents measure, derives and publishes profiles.

pub mod campaign;
pub mod cli;
pub mod device;
pub mod evaluation_set;
pub mod host;
pub mod lab;
pub mod provision;
pub mod store;
pub mod sweep_plot;
