//! `layerlab link check`: is a measured link sound?

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_profiles::check::Severity;
use layerlab_profiles::link::{LinkDocument, check_link_directory};

use crate::exit::{Code, ExitWith, Failure};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct CheckLinkArgs {
    /// The measured link's folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Reads a measured link; says what is doubtful of it, and refuses what contradicts itself.
pub(crate) fn sound_link(folder: &Path) -> Result<LinkDocument, Failure> {
    let (link, findings) = check_link_directory(folder).exit_with(Code::Input)?;
    for finding in &findings {
        if finding.severity == Severity::Error {
            let error = anyhow!("{} contradicts itself: {finding}", folder.display());
            return Err(Failure::new(Code::Check, error));
        }
        output::note(finding);
    }
    Ok(link)
}

pub(super) fn run(args: &CheckLinkArgs) -> Result<(), Failure> {
    let folder = args.folder.display();
    let (link, findings) = check_link_directory(&args.folder).exit_with(Code::Input)?;
    if args.json {
        output::print_json(&findings)?;
    } else {
        for finding in &findings {
            output::print(finding)?;
        }
    }
    let errors = findings.iter().filter(|it| it.severity == Severity::Error);
    let errors = errors.count();
    if errors > 0 {
        let error = anyhow!("{folder} contradicts itself: {errors} errors");
        return Err(Failure::new(Code::Check, error));
    }
    if !args.json {
        output::print(format_args!(
            "{folder}: a sound measurement of the {} link {}, {} samples, {} warnings",
            link.header.kind,
            link.header.name,
            link.samples.len(),
            findings.len()
        ))?;
    }
    Ok(())
}
