//! What the options that name models have in common: the sizes of symbolic dimensions, the model with its quantised twin,
//! and which twin fits a profile.

use std::collections::BTreeMap;
use std::path::Path;

use layerlab_campaign::ModelFile;
use layerlab_profiles::document::Model;

use super::exit::{Code, ExitWith, Failure};

/// Sizes for the symbolic dimensions of a model.
#[derive(clap::Args)]
pub(super) struct DimArgs {
    /// The size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim)]
    dims: Vec<(String, u64)>,
}

impl DimArgs {
    pub(super) fn map(&self) -> BTreeMap<String, u64> {
        self.dims.iter().cloned().collect()
    }
}

/// `NAME=SIZE`.
pub(super) fn parse_dim(text: &str) -> Result<(String, u64), String> {
    let (name, size) = text
        .split_once('=')
        .ok_or("write NAME=SIZE, such as H=224")?;
    match size.parse() {
        Ok(size) if size > 0 => Ok((name.to_owned(), size)),
        _ => Err(format!(
            "`{size}` is no size: write a whole number of at least 1"
        )),
    }
}

/// Reads a model, and its quantised twin if there is one, with symbolic dimensions set by `dims`.
pub(super) fn open_with_twin(
    model: &Path,
    quantised: Option<&Path>,
    dims: &BTreeMap<String, u64>,
) -> Result<ModelFile, Failure> {
    ModelFile::open(model, dims)
        .and_then(|model| model.with_quantised(quantised, dims))
        .exit_with(Code::Input)
}

/// Refuses another quantised twin than the one that a profile's numbers are of.
pub(super) fn refuse_other_twin(profiled: &Model, given: &ModelFile) -> anyhow::Result<()> {
    let given = given.quantised.as_ref().map(|twin| &twin.source.sha256);
    let profiled = profiled.quantised.as_ref().map(|twin| &twin.sha256);
    match (given, profiled) {
        (None, Some(_)) => anyhow::bail!(
            "the profile is of a model with a quantised twin; give the twin with --quantised"
        ),
        (Some(_), None) => anyhow::bail!(
            "the profile is of a model without a quantised twin; leave --quantised out, or measure this one first"
        ),
        (Some(given), Some(profiled)) if given != profiled => anyhow::bail!(
            "--quantised is another quantised model than the profile's; measure this one first"
        ),
        _ => Ok(()),
    }
}
