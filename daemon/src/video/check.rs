//! `layerlab video check`: is what was measured of frames sound?

use std::path::Path;

use layerlab_profiles::video::{VideoDocument, check_video_directory};

use crate::exit::{Code, ExitWith, Failure};
use crate::findings::{CheckFolderArgs, refuse_errors};

pub(super) fn run(args: &CheckFolderArgs) -> Result<(), Failure> {
    let (video, findings) = check_video_directory(&args.folder).exit_with(Code::Input)?;
    let sound = format!(
        "a sound measurement of {} on {}: {} answers, {} frames",
        video.header.model.name,
        video.header.answered_by(),
        video.answers.len(),
        video.frames.len()
    );
    args.print(&findings, &sound)
}

/// Reads what was measured; refuses what contradicts itself.
pub(super) fn read(folder: &Path) -> Result<VideoDocument, Failure> {
    let (video, findings) = check_video_directory(folder).exit_with(Code::Input)?;
    refuse_errors(folder, &findings, "; `layerlab video check` lists them")?;
    Ok(video)
}
