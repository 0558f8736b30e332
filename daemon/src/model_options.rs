//! What the options that name models have in common: the sizes of symbolic dimensions, the model with its quantised twin,
//! and which twin fits a profile.

use std::collections::BTreeMap;
use std::path::Path;

use layerlab_campaign::ModelFile;
use layerlab_campaign::publish::folder_name;
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

/// Sizes for the symbolic dimensions of a model, of which one may have several.
#[derive(clap::Args)]
pub(super) struct DimSizesArgs {
    /// The size of a symbolic dimension of the model; may be repeated. With several sizes, such as N=1,64,256, there is a
    /// profile for each, in folders such as N=64, and `layerlab interpolate` says what lies between
    #[arg(long = "dim", value_name = "NAME=SIZE[,SIZE…]", value_parser = parse_dim_sizes)]
    dims: Vec<(String, Vec<u64>)>,
}

/// One choice of sizes, and what its profile's folder is called among those of other choices.
pub(super) struct DimChoice {
    pub(super) folder: Option<String>,
    pub(super) dims: BTreeMap<String, u64>,
}

impl DimSizesArgs {
    /// The choices, in the order in which they are given.
    pub(super) fn choices(&self) -> anyhow::Result<Vec<DimChoice>> {
        for (place, (name, _)) in self.dims.iter().enumerate() {
            if self.dims[..place].iter().any(|(other, _)| other == name) {
                anyhow::bail!(
                    "the dimension {name} is there twice: write {name}=1,64 for several sizes"
                );
            }
        }
        let single = |(name, sizes): &(String, Vec<u64>)| Some((name.clone(), *sizes.first()?));
        let dims: BTreeMap<String, u64> = self.dims.iter().filter_map(single).collect();
        let mut several = self.dims.iter().filter(|(_, sizes)| sizes.len() > 1);
        let choices = match (several.next(), several.next()) {
            (None, _) => vec![DimChoice { folder: None, dims }],
            (Some((name, sizes)), None) => {
                let choice = |&size: &u64| {
                    let mut dims = dims.clone();
                    dims.insert(name.clone(), size);
                    let folder = Some(format!("{}={size}", folder_name(name)));
                    DimChoice { folder, dims }
                };
                sizes.iter().map(choice).collect()
            }
            (Some((one, _)), Some((other, _))) => anyhow::bail!(
                "the dimensions {one} and {other} both have several sizes: give several to one, and run the command for each \
                 size of the other"
            ),
        };
        Ok(choices)
    }
}

/// `NAME=SIZE[,SIZE…]`, each size once.
fn parse_dim_sizes(text: &str) -> Result<(String, Vec<u64>), String> {
    let (name, sizes) = text
        .split_once('=')
        .ok_or("write NAME=SIZE, such as H=224")?;
    let sizes = sizes
        .split(',')
        .map(|size| Ok(parse_dim(&format!("{name}={size}"))?.1));
    let sizes: Vec<u64> = sizes.collect::<Result<_, String>>()?;
    for (place, size) in sizes.iter().enumerate() {
        if sizes[..place].contains(size) {
            return Err(format!("the size {size} is there twice"));
        }
    }
    Ok((name.to_owned(), sizes))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(dims: &[&str]) -> anyhow::Result<Vec<DimChoice>> {
        let dims = dims.iter().map(|text| parse_dim_sizes(text));
        let dims = dims.collect::<Result<_, _>>().map_err(anyhow::Error::msg)?;
        DimSizesArgs { dims }.choices()
    }

    #[test]
    fn several_sizes_of_one_dimension_are_a_choice_each() {
        let one = choices(&["N=8", "H=224"]).expect("one choice");
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].folder, None);
        assert_eq!(
            one[0].dims,
            BTreeMap::from([("H".to_owned(), 224), ("N".to_owned(), 8)])
        );
        let three = choices(&["N=1,64,256", "H=224"]).expect("three choices");
        let folders: Vec<Option<&str>> = three.iter().map(|it| it.folder.as_deref()).collect();
        assert_eq!(folders, [Some("N=1"), Some("N=64"), Some("N=256")]);
        assert_eq!(
            three[1].dims,
            BTreeMap::from([("H".to_owned(), 224), ("N".to_owned(), 64)])
        );
        assert_eq!(choices(&[]).expect("no dimension")[0].dims, BTreeMap::new());
    }

    #[test]
    fn what_is_no_choice_of_sizes_is_refused() {
        for (dims, expected) in [
            (&["N=1,64,1"][..], "the size 1 is there twice"),
            (&["N=1,,2"], "`` is no size"),
            (&["N=1,2", "N=8"], "the dimension N is there twice"),
            (
                &["N=1,2", "M=3,4"],
                "the dimensions N and M both have several sizes",
            ),
        ] {
            let error = choices(dims).err().expect("refused").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
