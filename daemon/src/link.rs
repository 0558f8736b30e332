//! `layerlab link`: what a link to an edge server carries.

pub(crate) mod check;
mod measure;
mod requests;
mod summary;

use std::path::PathBuf;

use super::adb::WithPhones;
use super::exit::Failure;
use super::findings::CheckFolderArgs;

#[derive(clap::Subcommand)]
pub(super) enum LinkCommand {
    /// Measure bandwidth and round trip of the link from this machine, or with --device from a phone, to an edge server, both
    /// ways, and publish them
    #[command(
        after_help = "A lab measures the same by itself, in a job with [link]: `layerlab job example` explains its keys."
    )]
    Measure(Box<WithPhones<measure::MeasureArgs>>),
    /// Say whether a measured link is sound
    Check(CheckFolderArgs),
}

pub(super) async fn run(command: LinkCommand, agent: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        LinkCommand::Measure(both) => {
            let WithPhones { args, adb } = *both;
            measure::run(args, agent, &adb).await
        }
        LinkCommand::Check(args) => check::run(&args),
    }
}
