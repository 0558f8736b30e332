//! `layerlab`, the program that users meet.

use std::process::ExitCode;

fn main() -> ExitCode {
    layerlab::main()
}
