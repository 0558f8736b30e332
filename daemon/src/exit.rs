//! Exit codes, and how errors come to them. README lists them for users.

use std::fmt;

/// Why layerlab ended. The numbers are promised to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Something that should not happen.
    Internal = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A model, a device file, a profile, images, their annotations, a job file or the configuration cannot be used.
    Input = 3,
    /// The device or its agent failed, an edge server, or a job of the lab; or no daemon answers.
    Device = 4,
    /// The result cannot be written.
    Output = 5,
    /// The profile, the measured link or what was measured of frames contradicts itself, or the profile is not the one with the digest or the signature that was asked for.
    Check = 6,
    /// `compare --gate`: the last profile is worse than the one before it, or than several, by more than is tolerated.
    Worse = 7,
    /// `plan`: no placement that the algorithm finds keeps the limit. `video replay` and `video stream`: nothing answers a frame in time.
    NoPlan = 8,
    /// Interrupted by the user.
    Interrupted = 130,
}

/// An error with the exit code that it ends layerlab with.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What to tell the user.
    pub error: anyhow::Error,
}

impl Failure {
    /// `error`, ending layerlab with `code`.
    pub fn new(code: Code, error: impl Into<anyhow::Error>) -> Failure {
        Failure {
            code,
            error: error.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each error's own sentence contains its cause.
        write!(f, "{}", self.error)
    }
}

/// Gives an error its exit code.
pub trait ExitWith<T> {
    /// The value, or the error with `code`.
    fn exit_with(self, code: Code) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> ExitWith<T> for Result<T, E> {
    fn exit_with(self, code: Code) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(code, error))
    }
}
