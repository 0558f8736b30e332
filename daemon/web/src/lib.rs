//! The lab on the web: an API for people and programs elsewhere that hold a token. It asks the lab what commands ask it,
//! by the same front desk and the same queries, and keeps nothing of its own but the tokens.

mod access;
mod address;
mod api;
mod curve;
mod error;
mod explorer;
mod extract;
mod failures;
mod guard;
mod health;
mod lab;
mod metrics;
mod pages;
mod problem;
mod published;
mod server;
mod submission;
mod tls;
mod token;
mod uploads;

pub use address::check_address;
pub use api::description;
pub use error::WebError;
pub use lab::WebLab;
pub use problem::ProblemKind;
pub use server::WebServer;
pub use token::{NewToken, Role, Token, TokenError, TokenFile};
pub use uploads::Uploads;

/// The header with the version of layerlab that each answer of a lab has.
pub const VERSION_HEADER: &str = "layerlab-version";
