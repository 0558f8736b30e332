//! What checks of documents beside profiles found, printed by the commands that check them.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_profiles::check::Severity;
use layerlab_profiles::folder::FolderFinding;

use crate::exit::{Code, Failure};
use crate::output;

/// Which document is to be checked.
#[derive(clap::Args)]
pub(crate) struct CheckFolderArgs {
    /// The folder that was published
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

impl CheckFolderArgs {
    /// Prints what was found, and what is `sound` where nothing contradicts itself.
    pub(crate) fn print(&self, findings: &[FolderFinding], sound: &str) -> Result<(), Failure> {
        let folder = self.folder.display();
        if self.json {
            output::print_json(&findings)?;
        } else {
            for finding in findings {
                output::print(finding)?;
            }
        }
        refuse_errors(&self.folder, findings, "")?;
        if !self.json {
            let warnings = findings.len();
            output::print(format_args!("{folder}: {sound}, {warnings} warnings"))?;
        }
        Ok(())
    }
}

/// Says what is doubtful, and refuses what contradicts itself by its first contradiction.
pub(crate) fn note_or_refuse(folder: &Path, findings: &[FolderFinding]) -> Result<(), Failure> {
    for finding in findings {
        if finding.severity == Severity::Error {
            let error = anyhow!("{} contradicts itself: {finding}", folder.display());
            return Err(Failure::new(Code::Check, error));
        }
        output::note(finding);
    }
    Ok(())
}

/// Refuses what contradicts itself; `hint` says more of it.
pub(crate) fn refuse_errors(
    folder: &Path,
    findings: &[FolderFinding],
    hint: &str,
) -> Result<(), Failure> {
    let errors = findings.iter().filter(|it| it.severity == Severity::Error);
    match errors.count() {
        0 => Ok(()),
        errors => {
            let folder = folder.display();
            let error = anyhow!("{folder} contradicts itself: {errors} errors{hint}");
            Err(Failure::new(Code::Check, error))
        }
    }
}
