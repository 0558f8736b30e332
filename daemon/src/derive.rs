//! `layerlab derive`: layer times anew from a profile's samples, by the method that the user names.

use std::path::PathBuf;

use layerlab_profiles::document::{Method, Profile};

use super::campaign::publish_failure;
use super::exit::{Code, ExitWith, Failure};
use super::{output, show};
use layerlab_campaign::publish::Staging;
use layerlab_campaign::this_program;

#[derive(clap::Args)]
pub(super) struct DeriveArgs {
    /// The profile's folder
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    /// How layer times come from the samples
    #[arg(long, value_enum)]
    method: MethodName,
    /// Publish the new profile here instead of printing it
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long, requires = "out")]
    replace: bool,
}

/// The methods that apply to accelerators; the times of a processor that is timed layer by layer stay as they are.
#[derive(Clone, Copy, clap::ValueEnum)]
enum MethodName {
    /// The papers' differencing; needs every prefix and every suffix
    Differencing,
    /// Least squares over all measured segments, the cost of each cut halved
    Graph,
    /// Least squares, the cost of each cut divided as the profile's probes say
    Probed,
}

impl From<MethodName> for Method {
    fn from(name: MethodName) -> Method {
        match name {
            MethodName::Differencing => Method::Differencing,
            MethodName::Graph => Method::Graph,
            MethodName::Probed => Method::Probed,
        }
    }
}

pub(super) fn run(args: &DeriveArgs) -> Result<(), Failure> {
    let profile = Profile::read(&args.profile).exit_with(Code::Input)?;
    let mut derived = profile
        .rederive(args.method.into())
        .exit_with(Code::Input)?;
    derived.header.written_by = Some(this_program());
    let Some(out) = &args.out else {
        return output::print(show::tables(&derived));
    };
    let staging = Staging::prepare(out, args.replace).map_err(publish_failure)?;
    for finding in staging.publish(&derived).map_err(publish_failure)? {
        output::note(finding);
    }
    output::print(format_args!("Published in {}", out.display()))
}
