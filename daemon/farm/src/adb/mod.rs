//! Phones over ADB: our own server or none, what is asked of it and of phones, and what is done when one of
//! them fails. The server's protocol is spoken natively, since every operation must have a deadline,
//! be cancelled by dropping it, and say which of server, phone and agent is at fault.

mod address;
mod ask;
pub(crate) mod capabilities;
pub mod direct;
mod endpoint;
mod error;
mod fault;
mod fleet;
mod found;
mod list;
mod names;
pub(crate) mod naming;
mod own;
mod phone;
mod program;
mod quiet;
mod route;
mod server;
mod shell;
mod text;
mod transfer;
mod tunnel;
mod wire;

pub use address::Address;
pub use capabilities::Values;
pub use endpoint::{Bytes, Endpoint, Stream};
pub use error::AdbError;
pub use fault::Fault;
pub use fleet::{Fleet, Settings};
pub use found::Found;
pub use list::{Row, State};
pub use phone::{Identity, Phone};
pub use program::{Program, find as find_program};
pub use quiet::{Quieted, Restored};
pub use route::{Route, RouteTracker};
pub use server::{Server, Tracker};
pub use shell::Output;
pub use text::{Printable, quote};
pub use transfer::{Content, Prover, Pushed};
