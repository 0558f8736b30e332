//! `layerlab profiles`: what the lab has published, by model and device.

mod get;
mod listed;

use std::path::PathBuf;

use super::elsewhere::ProfilesAsked;
use super::exit::{Code, Failure};
use super::which_lab::{Lab, LabArgs};
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{IndexedProfile, Page, indexed_profiles, newest_of_each};
use layerlab_lab::record::{Kept, RunNumber};
use listed::{ListedProfile, profiles_table};

#[derive(clap::Subcommand)]
pub(super) enum ProfilesCommand {
    /// List the newest profile of each model on each device
    List {
        /// Which page of a long list; JSON has all of it if none is chosen
        #[arg(long, value_name = "NUMBER")]
        page: Option<usize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all profiles of a model on a device, the newest first
    Show {
        /// The model's name, as the list has it
        model: String,
        /// The device's name, as the list has it, or its serial
        device: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy a published profile into a new folder, whole or not at all
    Get {
        /// The number of its run, as the list has it
        run: RunNumber,
        /// Where to put it
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// Replace what is already there
        #[arg(long)]
        replace: bool,
    },
    /// Print the folder of the newest profile of a model on a device, for other commands
    Latest {
        /// The model's name, as the list has it
        model: String,
        /// The device's name, as the list has it, or its serial
        device: String,
    },
}

pub(super) async fn run(command: &ProfilesCommand, lab: &LabArgs) -> Result<(), Failure> {
    let lab = lab.open()?;
    match command {
        ProfilesCommand::List { page, json } => list(&lab, *page, *json).await,
        ProfilesCommand::Show {
            model,
            device,
            json,
        } => {
            let profiles = all_of(&lab, model, device).await?;
            match json {
                true => output::print_json(&profiles),
                false => output::print(profiles_table(&profiles)),
            }
        }
        ProfilesCommand::Get { run, out, replace } => get::run(&lab, *run, out, *replace).await,
        ProfilesCommand::Latest { model, device } => latest(&lab, model, device).await,
    }
}

async fn list(lab: &Lab, page: Option<usize>, json: bool) -> Result<(), Failure> {
    let chosen = match json {
        true => page,
        false => Some(page.unwrap_or(1)),
    };
    let (profiles, all): (Vec<ListedProfile>, usize) = match lab {
        Lab::Here => {
            let mut profiles = indexed_profiles(&lab::kept().await?, None, None);
            newest_of_each(&mut profiles);
            let all = profiles.len();
            if let Some(page) = chosen {
                profiles = Page::new(page).of(profiles);
            }
            (profiles.into_iter().map(ListedProfile::from).collect(), all)
        }
        Lab::Elsewhere(lab) => {
            let (profiles, all) = lab.profiles(ProfilesAsked::Newest, chosen).await?;
            let profiles = profiles.into_iter().map(ListedProfile::from);
            (profiles.collect(), all)
        }
    };
    if json {
        return output::print_json(&profiles);
    }
    if all == 0 {
        return output::print("The lab has published no profile yet.");
    }
    output::print(profiles_table(&profiles))?;
    let page = Page::new(page.unwrap_or(1));
    if let Some(footer) = page.footer(all, "profiles", "layerlab profiles list") {
        output::note(format_args!("\n{footer}"));
    }
    Ok(())
}

/// The profiles of a model on a device; there is at least one.
async fn all_of(lab: &Lab, model: &str, device: &str) -> Result<Vec<ListedProfile>, Failure> {
    let Lab::Elsewhere(elsewhere) = lab else {
        let profiles = of(&lab::kept().await?, model, device)?;
        return Ok(profiles.into_iter().map(ListedProfile::from).collect());
    };
    let asked = ProfilesAsked::Of { model, device };
    let (profiles, _) = elsewhere.profiles(asked, None).await?;
    match profiles.is_empty() {
        true => Err(none_of(model, device, "")),
        false => Ok(profiles.into_iter().map(ListedProfile::from).collect()),
    }
}

async fn latest(lab: &Lab, model: &str, device: &str) -> Result<(), Failure> {
    if let Lab::Elsewhere(_) = lab {
        let error = anyhow::anyhow!(
            "the folders of a lab elsewhere are not on this machine; `layerlab profiles get RUN --out FOLDER` brings a \
             profile here"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let profiles = of(&lab::kept().await?, model, device)?;
    let there = profiles.iter().find(|profile| profile.folder.is_dir());
    let Some(latest) = there else {
        let error = anyhow::anyhow!(
            "the folders of all profiles of {} on {} are gone; `layerlab profiles show` lists them",
            Printable(model),
            Printable(device)
        );
        return Err(Failure::new(Code::Input, error));
    };
    output::print(latest.folder.display())
}

/// The profiles of a model on a device in the lab here; there is at least one.
fn of(kept: &Kept, model: &str, device: &str) -> Result<Vec<IndexedProfile>, Failure> {
    let profiles = indexed_profiles(kept, Some(model), Some(device));
    if !profiles.is_empty() {
        return Ok(profiles);
    }
    let mut devices: Vec<String> = (indexed_profiles(kept, Some(model), None).into_iter())
        .map(|profile| profile.device)
        .collect();
    devices.dedup();
    let what = match devices.is_empty() {
        true => ", of no device".to_owned(),
        false => format!(", but on {}", devices.join(", ")),
    };
    Err(none_of(model, device, &what))
}

fn none_of(model: &str, device: &str, what: &str) -> Failure {
    let error = format!(
        "the lab has published no profile of {model} on {device}{what}; `layerlab profiles list` says what there is"
    );
    Failure::new(Code::Input, anyhow::anyhow!("{}", Printable(&error)))
}
