//! `layerlab check`: is a published profile sound?

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_profiles::check::{Severity, check_directory};

use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
pub(super) struct CheckArgs {
    /// The profile's folder
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let (profile, findings) = check_directory(&args.profile).exit_with(Code::Input)?;
    if args.json {
        output::print_json(&findings)?;
    } else {
        for finding in &findings {
            output::print(finding)?;
        }
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    if errors > 0 {
        let error = anyhow!(
            "{} contradicts itself: {errors} errors",
            args.profile.display()
        );
        return Err(Failure::new(Code::Check, error));
    }
    if !args.json {
        let mark = profile.header.mark();
        let what = mark.map_or_else(|| "profile".to_owned(), |mark| format!("{mark} profile"));
        output::print(format_args!(
            "{}: a sound {what} of {} on {}, {} samples, {} warnings",
            args.profile.display(),
            profile.header.model.name,
            profile.header.device.name,
            profile.samples.len(),
            findings.len()
        ))?;
    }
    Ok(())
}
