//! `layerlab link`: what a link to an edge server carries.

mod check;
mod measure;
mod shape;
mod summary;

use super::exit::Failure;

#[derive(clap::Subcommand)]
pub(super) enum LinkCommand {
    /// Measure bandwidth and round trip of the link from this machine to an edge server, both ways, and publish them. It
    /// measures from this machine: no phone has part in it yet
    Measure(measure::MeasureArgs),
    /// Say whether a measured link is sound
    Check(check::CheckLinkArgs),
}

pub(super) async fn run(command: LinkCommand) -> Result<(), Failure> {
    match command {
        LinkCommand::Measure(args) => measure::run(args).await,
        LinkCommand::Check(args) => check::run(&args),
    }
}
