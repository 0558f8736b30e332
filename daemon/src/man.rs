//! `layerlab man`: a man page for layerlab and for each of its commands.

use std::path::PathBuf;

use clap::CommandFactory;

use super::Cli;
use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
#[command(after_help = "For this user: layerlab man ~/.local/share/man/man1, then man layerlab")]
pub(super) struct ManArgs {
    /// The folder for the pages: layerlab.1, layerlab-profile.1 and so on
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(args: &ManArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}", folder.display()))
        .exit_with(Code::Output)?;
    output::print(format_args!("The man pages are in {}", folder.display()))
}
