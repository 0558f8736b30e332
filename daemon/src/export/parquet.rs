//! `layerlab export --format parquet`: profiles as tables for DuckDB and pandas (docs/analysis.md).

use std::path::{Path, PathBuf};

use layerlab_analysis::{ExportError, ExportedRows, export};
use layerlab_lab::analysis::host_name;
use layerlab_lab::query::indexed_profiles;

use crate::exit::{Code, Failure};
use crate::{lab, output};

#[derive(clap::Args)]
#[group(skip)]
pub(super) struct ParquetArgs {
    /// With `--format parquet`: the folder of the tables; rows that a profile has there already are replaced
    #[arg(long, value_name = "FOLDER", required_if_eq("format", "parquet"))]
    out: Option<PathBuf>,
    /// With `--format parquet`: all profiles that the lab here has published and that are still there
    #[arg(long, conflicts_with = "profiles")]
    published: bool,
}

impl ParquetArgs {
    /// Refuses these options with another format.
    pub(super) fn refuse_elsewhere(&self) -> Result<(), Failure> {
        if self.out.is_none() && !self.published {
            return Ok(());
        }
        let error = anyhow::anyhow!(
            "--out and --published are of `--format parquet`; other formats are printed"
        );
        Err(Failure::new(Code::Usage, error))
    }
}

pub(super) async fn run(profiles: &[PathBuf], args: &ParquetArgs) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        return args.refuse_elsewhere();
    };
    match args.published {
        true => export_all(&published().await?, out, host_name().as_deref()),
        false => export_all(profiles, out, None),
    }
}

/// The folders of what the lab here has published, as far as they are still there.
async fn published() -> Result<Vec<PathBuf>, Failure> {
    let profiles = indexed_profiles(&lab::kept().await?, None, None);
    let folders = profiles.into_iter().map(|profile| profile.folder);
    Ok(folders.filter(|folder| folder.is_dir()).collect())
}

/// Exports one profile after the other. One that cannot be read does not keep the others from it; a folder that cannot be written
/// does.
fn export_all(profiles: &[PathBuf], out: &Path, host: Option<&str>) -> Result<(), Failure> {
    let mut rows = ExportedRows::default();
    let mut unreadable = Vec::new();
    for profile in profiles {
        match export(profile, out, host) {
            Ok(more) => rows += more,
            Err(error) if error.is_of_profile() => unreadable.push(error),
            Err(error) => return Err(Failure::new(Code::Output, error)),
        }
    }
    let exported = profiles.len() - unreadable.len();
    if exported == 0 {
        if profiles.is_empty() {
            output::note("The lab has published no profile that is still there.");
        }
        return refuse(unreadable, profiles.len());
    }
    output::print(format_args!(
        "{exported} profile{} in {}: {} rows of layers, {} of segments, {} of samples",
        if exported == 1 { "" } else { "s" },
        out.display(),
        rows.layers,
        rows.segments,
        rows.samples,
    ))?;
    refuse(unreadable, profiles.len())
}

/// Says why profiles are not in the tables.
fn refuse(mut unreadable: Vec<ExportError>, all: usize) -> Result<(), Failure> {
    let Some(last) = unreadable.pop() else {
        return Ok(());
    };
    if all == 1 {
        return Err(Failure::new(Code::Input, last));
    }
    let count = unreadable.len() + 1;
    for error in unreadable.iter().chain([&last]) {
        output::note(format_args!("layerlab: {error}"));
    }
    let error = anyhow::anyhow!("{count} of {all} profiles are not in the tables; see above why");
    Err(Failure::new(Code::Input, error))
}
