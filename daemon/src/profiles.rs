//! `layerlab profiles`: what the lab has published, by model and device.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, Failure};
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{IndexedProfile, Page, indexed_profiles};
use layerlab_lab::record::Kept;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;
use layerlab_profiles::document::ProfileDigest;

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
    /// Print the folder of the newest profile of a model on a device, for other commands
    Latest {
        /// The model's name, as the list has it
        model: String,
        /// The device's name, as the list has it, or its serial
        device: String,
    },
}

pub(super) async fn run(command: &ProfilesCommand) -> Result<(), Failure> {
    let kept = lab::kept().await?;
    match command {
        ProfilesCommand::List { page, json } => list(&kept, *page, *json),
        ProfilesCommand::Show {
            model,
            device,
            json,
        } => {
            let profiles = of(&kept, model, device)?;
            match json {
                true => output::print_json(&profiles),
                false => output::print(profiles_table(&profiles)),
            }
        }
        ProfilesCommand::Latest { model, device } => {
            let profiles = of(&kept, model, device)?;
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
    }
}

fn list(kept: &Kept, page: Option<usize>, json: bool) -> Result<(), Failure> {
    let mut profiles = indexed_profiles(kept, None, None);
    // The newest comes first.
    profiles.dedup_by(|next, first| (&next.model, &next.device) == (&first.model, &first.device));
    let (all, chosen) = (profiles.len(), Page::new(page.unwrap_or(1)));
    if !json || page.is_some() {
        profiles = chosen.of(profiles);
    }
    if json {
        return output::print_json(&profiles);
    }
    if all == 0 {
        return output::print("The lab has published no profile yet.");
    }
    output::print(profiles_table(&profiles))?;
    if let Some(footer) = chosen.footer(all, "profiles", "layerlab profiles list") {
        output::note(format_args!("\n{footer}"));
    }
    Ok(())
}

/// The profiles of a model on a device; there is at least one.
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
        true => "of no device".to_owned(),
        false => format!("but on {}", devices.join(", ")),
    };
    let error = format!(
        "the lab has published no profile of {model} on {device}, {what}; `layerlab profiles list` says what there is"
    );
    Err(Failure::new(
        Code::Input,
        anyhow::anyhow!("{}", Printable(&error)),
    ))
}

fn profiles_table(profiles: &[IndexedProfile]) -> String {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let rows = profiles.iter().map(|profile| {
        let digest = match ProfileDigest::of_folder(&profile.folder) {
            Ok(digest) => digest.short().to_owned(),
            Err(_) => "gone".to_owned(),
        };
        let device = match profile.simulated {
            true => format!("{} (simulated)", profile.device),
            false => profile.device.clone(),
        };
        let texts = [
            profile.model.clone(),
            device,
            moment(profile.published, now, &zone),
            profile.job.to_string(),
            digest,
            profile.folder.display().to_string(),
        ];
        texts.map(|text| Printable(&text).to_string()).to_vec()
    });
    let heads = ["model", "device", "published", "job", "digest", "folder"];
    table(&heads, &[3], rows)
}
