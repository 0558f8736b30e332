//! The agent's side of the child processes.

pub(super) mod connection;
pub(super) mod loading;
pub(super) mod session;
