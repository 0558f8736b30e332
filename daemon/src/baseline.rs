//! `layerlab baseline`: which profile later ones of the same model, device and runtime are compared with.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, Failure};
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::Folders;
use layerlab_lab::baseline::{Baseline, BaselineError, Baselines};
use layerlab_lab::query::indexed_profiles;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;
use layerlab_profiles::document::Profile;
use layerlab_profiles::gate::ProfileSubject;

#[derive(clap::Subcommand)]
pub(super) enum BaselineCommand {
    /// Make a profile the baseline of its model, device and runtime, in place of an earlier one
    Set {
        /// The profile's folder. What became worse on purpose is accepted so
        #[arg(value_name = "PROFILE")]
        folder: PathBuf,
    },
    /// List the baselines
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a baseline: the lab compares with the last good profile again. The profile stays
    Remove {
        /// The profile's folder, as the list names it
        #[arg(value_name = "PROFILE")]
        folder: PathBuf,
    },
}

pub(super) async fn run(command: &BaselineCommand) -> Result<(), Failure> {
    let baselines = baselines();
    match command {
        BaselineCommand::Set { folder } => {
            let lab_device = lab_device(folder).await?;
            let set = baselines.set(folder, lab_device.as_deref(), Timestamp::now());
            let set = set.map_err(failure)?;
            output::print(format_args!(
                "{} is the baseline of {}",
                Printable(&set.folder.display().to_string()),
                Printable(&of(&set))
            ))
        }
        BaselineCommand::List { json } => {
            let all = baselines.list().map_err(failure)?;
            match json {
                true => output::print_json(&all),
                false if all.is_empty() => output::print(
                    "There is no baseline: profiles are compared with the last good ones.",
                ),
                false => output::print(listed(&all)),
            }
        }
        BaselineCommand::Remove { folder } => {
            let shown = folder.display().to_string();
            if baselines.remove(folder).map_err(failure)? {
                return output::print(format_args!(
                    "{} is no baseline any more",
                    Printable(&shown)
                ));
            }
            let error = anyhow::anyhow!(
                "{} is no baseline; `layerlab baseline list` says which there are",
                Printable(&shown)
            );
            Err(Failure::new(Code::Input, error))
        }
    }
}

fn baselines() -> Baselines {
    Baselines::in_state(&Folders::of_this_user().state)
}

/// The folders of all baselines.
pub(super) fn folders() -> Result<impl Iterator<Item = PathBuf>, Failure> {
    let all = baselines().list().map_err(failure)?.into_iter();
    Ok(all.map(|baseline| baseline.folder))
}

/// The baseline that `profile`, which is in `folder`, is to be compared with.
pub(super) async fn of_profile(
    folder: &Path,
    profile: &Profile,
) -> Result<(PathBuf, Profile), Failure> {
    let subject = ProfileSubject::of(&profile.header);
    let lab_device = lab_device(folder).await?;
    let found = baselines().of(&subject, lab_device.as_deref());
    let Some(baseline) = found.map_err(failure)? else {
        let subject = Box::new(subject);
        return Err(failure(BaselineError::None { subject }));
    };
    let read = baseline.read().map_err(failure)?;
    Ok((baseline.folder, read))
}

/// What the lab calls the device of the profile in `folder`, if the lab published it.
async fn lab_device(folder: &Path) -> Result<Option<String>, Failure> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let kept = lab::kept().await?;
    let mut profiles = indexed_profiles(&kept, None, None).into_iter();
    Ok(profiles
        .find(|profile| profile.folder == folder)
        .map(|profile| profile.device))
}

fn failure(error: BaselineError) -> Failure {
    let code = match error {
        BaselineError::File { .. } => Code::Output,
        _ => Code::Input,
    };
    Failure::new(code, error)
}

/// What it is the baseline of, with the lab's name of the device.
fn of(baseline: &Baseline) -> String {
    match &baseline.lab_device {
        Some(device) => format!("{} (in the lab {device})", baseline.subject),
        None => baseline.subject.to_string(),
    }
}

fn listed(all: &[Baseline]) -> String {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let rows = all.iter().map(|baseline| {
        let subject = &baseline.subject;
        let runtimes: Vec<&str> = subject.runtimes.iter().map(String::as_str).collect();
        let state = match baseline.read() {
            Ok(_) => String::new(),
            Err(BaselineError::Changed { .. }) => "changed since".to_owned(),
            Err(_) => "gone".to_owned(),
        };
        let texts = [
            subject.model.clone(),
            baseline
                .lab_device
                .clone()
                .unwrap_or_else(|| subject.device.clone()),
            runtimes.join(", "),
            moment(baseline.since, now, &zone),
            baseline.folder.display().to_string(),
            state,
        ];
        texts.map(|text| Printable(&text).to_string()).to_vec()
    });
    let heads = ["model", "device", "runtimes", "since", "profile", ""];
    table(&heads, &[], rows)
}
