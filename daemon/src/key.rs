//! `layerlab key`: keys that labs sign their profiles with.

use std::path::PathBuf;

use layerlab_campaign::publish::new_key;

use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key: a private file, which `lab.signing-key` of the configuration names, and a public one beside it, by
    /// which `layerlab check --key` tells who published a profile
    New {
        /// The private key's file; the public one's has `.pub` after it
        file: PathBuf,
    },
}

pub(super) fn run(command: &KeyCommand) -> Result<(), Failure> {
    let KeyCommand::New { file } = command;
    let public = new_key(file).exit_with(Code::Output)?;
    output::print(format_args!(
        "The private key is {}: keep it to yourself.\nThe public key is {}: give it to whoever reads your profiles.",
        file.display(),
        public.display()
    ))
}
