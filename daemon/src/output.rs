//! What goes to the terminal: results to standard output, everything else to standard error.

use std::io::{self, Write};

use serde::Serialize;

use super::exit::{Code, ExitWith, Failure};

/// Prints `text` and a line feed. A reader that has gone away (`| head`) is no error.
pub(super) fn print(text: impl std::fmt::Display) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.exit_with(Code::Output),
    }
}

/// Prints `value` as JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value).exit_with(Code::Internal)?)
}

/// Tells the user something that is not the result. Nobody listening is no error.
pub(super) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Tells the user why layerlab ends.
pub(super) fn error(failure: &Failure) {
    note(format_args!("layerlab: {failure}"));
}
