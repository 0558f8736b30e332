//! What is at fault when something cannot be done with a phone.

/// What is at fault when trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The server does not answer: no phone of it can be used.
    Server,
    /// The phone is not there, or waits for a person.
    Away,
    /// The server sees the phone and cannot talk to it.
    Offline,
    /// The phone is there, and a shell on it does not do what it should.
    Shell,
    /// The phone works, and the agent on it does not.
    Agent,
}
