//! `layerlab tensors`: tensors that cross cuts, compressed.

mod check;
mod measure;

use std::path::PathBuf;

use super::adb::WithPhones;
use super::exit::Failure;
use super::findings::CheckFolderArgs;

#[derive(clap::Subcommand)]
pub(super) enum TensorsCommand {
    /// Compress the tensors that cross a model's cuts while it answers pictures: their sizes, the times that takes, and what a
    /// rounding to 8 bits costs in accuracy
    Measure(Box<WithPhones<measure::MeasureArgs>>),
    /// Say whether what was measured of tensors is sound
    Check(CheckFolderArgs),
}

pub(super) async fn run(command: TensorsCommand, agent: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        TensorsCommand::Measure(both) => {
            let WithPhones { args, adb } = *both;
            measure::run(&args, agent, &adb).await
        }
        TensorsCommand::Check(args) => check::run(&args),
    }
}
