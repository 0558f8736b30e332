//! `layerlab tensors check`: is what was measured of tensors sound?

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_profiles::check::Severity;
use layerlab_profiles::tensors::check_tensors_directory;

use crate::exit::{Code, ExitWith, Failure};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The folder that `layerlab tensors measure` published
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let folder = args.folder.display();
    let (tensors, findings) = check_tensors_directory(&args.folder).exit_with(Code::Input)?;
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
            "{folder}: a sound measurement of the tensors of {}: {} of them, {} pictures, {} warnings",
            tensors.header.model.name,
            tensors.header.compressed().count(),
            tensors.header.pictures,
            findings.len()
        ))?;
    }
    Ok(())
}
