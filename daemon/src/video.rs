//! `layerlab video`: frames of a video on a phone and on a server beside it.

mod calibrate;
mod check;
mod decision;
mod measure;
mod measured;
mod replay;
mod stream;

use std::path::PathBuf;

use super::adb::WithPhones;
use super::exit::Failure;
use super::findings::CheckFolderArgs;

#[derive(clap::Subcommand)]
pub(super) enum VideoCommand {
    /// Measure what frames cost a device in each resolution, and how often a model on it is right about them
    #[command(
        after_help = "A lab measures the same by itself, in a job with [video]: `layerlab job example` explains its keys."
    )]
    Measure(Box<WithPhones<measure::MeasureArgs>>),
    /// Say whether what was measured of frames is sound
    Check(CheckFolderArgs),
    /// Make a model's confidence say how often it is right, and publish what does that
    Calibrate(calibrate::CalibrateArgs),
    /// Replay a video: what policies of both papers make of it over bandwidth, frame rate, round trip and alpha
    Replay(Box<replay::ReplayArgs>),
    /// Stream frames on a device beside an edge server: a policy decides live, and its replay stands beside what came of it
    Stream(Box<WithPhones<stream::StreamArgs>>),
}

pub(super) async fn run(command: VideoCommand, agent: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        VideoCommand::Measure(both) => {
            let WithPhones { args, adb } = *both;
            measure::run(&args, agent, &adb).await
        }
        VideoCommand::Check(args) => check::run(&args),
        VideoCommand::Calibrate(args) => calibrate::run(&args),
        VideoCommand::Replay(args) => replay::run(&args),
        VideoCommand::Stream(both) => {
            let WithPhones { args, adb } = *both;
            stream::run(&args, agent, &adb).await
        }
    }
}
