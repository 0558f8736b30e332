//! `layerlab check`: is a published profile sound?

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_campaign::publish::VerifyingKey;
use layerlab_profiles::check::{Severity, check_directory, check_not_of_the_future};
use layerlab_profiles::document::{ExpectedDigest, ProfileDigest};

use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
pub(super) struct CheckArgs {
    /// The profile's folder
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    /// Refuse the profile unless it has this digest, of which the first twelve digits suffice
    #[arg(long, value_name = "HEX")]
    digest: Option<ExpectedDigest>,
    /// Refuse the profile unless the private half of this key signed it
    #[arg(long, value_name = "PUBLIC")]
    key: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let digest = ProfileDigest::of_folder(&args.profile).exit_with(Code::Input)?;
    if let Some(key) = &args.key {
        let key = VerifyingKey::read(key).exit_with(Code::Input)?;
        key.verify(&args.profile).exit_with(Code::Check)?;
    }
    let (profile, mut findings) = check_directory(&args.profile).exit_with(Code::Input)?;
    let now = jiff::Timestamp::now().to_string();
    findings.splice(0..0, check_not_of_the_future(&profile, &now));
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
    if let Some(expected) = args
        .digest
        .as_ref()
        .filter(|expected| !expected.is(&digest))
    {
        let error = anyhow!(
            "{} has the digest {digest}, not {expected}: it is another profile, or was changed; get it again from where \
             it was published",
            args.profile.display()
        );
        return Err(Failure::new(Code::Check, error));
    }
    if !args.json {
        let mark = profile.header.mark();
        let what = mark.map_or_else(|| "profile".to_owned(), |mark| format!("{mark} profile"));
        output::print(format_args!(
            "{}: a sound {what} of {} on {}, {} samples, {} warnings, digest {digest}",
            args.profile.display(),
            profile.header.model.name,
            profile.header.device.name,
            profile.samples.len(),
            findings.len()
        ))?;
    }
    Ok(())
}
