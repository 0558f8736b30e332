//! `layerlab video check`: is what was measured of frames sound?

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_profiles::check::Severity;
use layerlab_profiles::video::{VideoDocument, check_video_directory};

use crate::exit::{Code, ExitWith, Failure};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The folder that `layerlab video measure` published
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let folder = args.folder.display();
    let (video, findings) = check_video_directory(&args.folder).exit_with(Code::Input)?;
    if args.json {
        output::print_json(&findings)?;
    } else {
        for finding in &findings {
            output::print(finding)?;
        }
    }
    refuse_errors(
        &args.folder,
        findings.iter().map(|finding| finding.severity),
    )?;
    if !args.json {
        output::print(format_args!(
            "{folder}: a sound measurement of {} on {}: {} answers, {} frames, {} warnings",
            video.header.model.name,
            video.header.answered_by(),
            video.answers.len(),
            video.frames.len(),
            findings.len()
        ))?;
    }
    Ok(())
}

/// Reads what was measured; refuses what contradicts itself.
pub(super) fn read(folder: &Path) -> Result<VideoDocument, Failure> {
    let (video, findings) = check_video_directory(folder).exit_with(Code::Input)?;
    refuse_errors(folder, findings.iter().map(|finding| finding.severity))?;
    Ok(video)
}

fn refuse_errors(folder: &Path, severities: impl Iterator<Item = Severity>) -> Result<(), Failure> {
    let errors = severities.filter(|it| *it == Severity::Error).count();
    if errors > 0 {
        let folder = folder.display();
        let error = anyhow!(
            "{folder} contradicts itself: {errors} errors; `layerlab video check` lists them"
        );
        return Err(Failure::new(Code::Check, error));
    }
    Ok(())
}
