//! `layerlab lab prune`: gives room back that the lab takes, the oldest first.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, ExitWith, Failure};
use super::{baseline, lab, output};
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::Folders;
use layerlab_lab::config::Config;
use layerlab_lab::journal;
use layerlab_lab::record::{RecordChange, Run};
use layerlab_lab::retention::{Kind, Places, Removable, Usage, usage};
use layerlab_lab::store::{Store, StorePlace};
use layerlab_lab::talk::Request;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;

/// So many of the things that would go are named; the others are counted.
const NAMED: usize = 20;

#[derive(clap::Subcommand)]
pub(super) enum LabCommand {
    /// Say what the lab takes of the disk and what would go, the oldest first; with --remove it goes
    ///
    /// Journals of runs that are over, copies of models that no open job needs, what phones logged around failures, and HTML
    /// reports can go. Profiles stay,
    /// unless --older-profiles is given.
    Prune(PruneArgs),
}

#[derive(clap::Args)]
pub(super) struct PruneArgs {
    /// How much the lab may keep, such as 20GiB or 500MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    budget: u64,
    /// Profiles go, too, of which there is a newer one of the same model on the same device
    #[arg(long)]
    older_profiles: bool,
    /// Remove it; otherwise it is only said what would go
    #[arg(long)]
    remove: bool,
    /// The daemon's configuration [default: as `layerlab daemon` finds it]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: &LabCommand) -> Result<(), Failure> {
    let LabCommand::Prune(args) = command;
    let folders = Folders::of_this_user();
    let variable = |name: &str| std::env::var_os(name);
    let config = Config::load(args.config.as_deref(), variable).exit_with(Code::Input)?;
    let places = Places {
        copies: config.config.library(&folders),
        reports: config.config.reports(&folders),
        state: folders.state,
        older_profiles: args.older_profiles,
        baselines: baseline::folders()?.collect(),
    };
    let Some(reader) = lab::reader().await? else {
        return output::print("no lab has been here yet, so that there is nothing to remove");
    };
    let kept = reader.all().await.exit_with(Code::Input)?;
    let journals = reader.journal_sizes().await.exit_with(Code::Input)?;
    let usage = usage(&kept, &journals, &places).exit_with(Code::Output)?;
    let goes = usage.beyond(args.budget);
    match args.json {
        true => output::print_json(&goes)?,
        false => output::print(text(&usage, &goes, args.budget))?,
    }
    if !args.remove {
        if !args.json && !goes.is_empty() {
            output::note("\nNothing was removed; --remove does it.");
        }
        return Ok(());
    }
    for one in &goes {
        if let Some(path) = &one.path {
            remove(one, path).exit_with(Code::Output)?;
        }
    }
    let journals = goes.iter().filter(|one| one.kind == Kind::Journals);
    let Some(last) = journals.map(|one| one.since).max() else {
        return Ok(());
    };
    remove_journals(last).await
}

/// The daemon removes them, for the store is its own; without one it is ours.
async fn remove_journals(last: Timestamp) -> Result<(), Failure> {
    if lab::ask_if_there(&Request::Prune { before: last })
        .await?
        .is_some()
    {
        output::note("\nThe daemon removes the journals, some of them every few seconds.");
        return Ok(());
    }
    let place = StorePlace::of_lab(&lab::folder()).exit_with(Code::Output)?;
    let (store, kept) = Store::open(&place).await.exit_with(Code::Output)?;
    loop {
        const AT_ONCE: usize = 100;
        let old = store.old_journals(last, Default::default(), AT_ONCE).await;
        let old = old.exit_with(Code::Output)?;
        let count = old.len();
        let changes = old.into_iter().flat_map(|run| {
            let names = journal::names(&kept.lab, &run).into_iter();
            let gone = RecordChange::Run(Run {
                journals_removed: Some(Timestamp::now()),
                ..run
            });
            names.map(RecordChange::JournalGone).chain([gone])
        });
        store
            .keep(changes.collect())
            .await
            .exit_with(Code::Output)?;
        if count < AT_ONCE {
            break;
        }
    }
    store.close().await;
    Ok(())
}

/// Removes a file or a folder; one that has changed since it was looked at stays.
fn remove(one: &Removable, path: &Path) -> std::io::Result<()> {
    let removed = match one.kind {
        Kind::OlderProfile | Kind::Artifacts => std::fs::remove_dir_all(path),
        _ => {
            let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
            let is_same = (modified.ok())
                .and_then(|at| Timestamp::try_from(at).ok())
                .is_some_and(|at| at == one.since);
            if !is_same {
                return Ok(());
            }
            std::fs::remove_file(path)
        }
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn text(usage: &Usage, goes: &[&Removable], budget: u64) -> String {
    let takes = format!("The lab takes {}", size(usage.bytes));
    if usage.bytes <= budget {
        return format!(
            "{takes}, which is within {}: nothing has to go.",
            size(budget)
        );
    }
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let rows = goes.iter().take(NAMED).map(|one| {
        vec![
            one.kind.to_string(),
            Printable(&one.name).to_string(),
            moment(one.since, now, &zone),
            size(one.bytes),
        ]
    });
    let gone: u64 = goes.iter().map(|one| one.bytes).sum();
    let left = usage.bytes.saturating_sub(gone);
    let mut parts = Vec::new();
    if !goes.is_empty() {
        parts.push(table(&["what", "", "since", "size"], &[3], rows));
    }
    if goes.len() > NAMED {
        parts.push(format!(" and {} more", goes.len() - NAMED));
    }
    let more = match left > budget {
        true => format!(
            ", {} more than it may: the rest is in use",
            size(left - budget)
        ),
        false => String::new(),
    };
    let things = if goes.len() == 1 { "thing" } else { "things" };
    parts.push(format!(
        "{takes}; without these {} {things} it takes {}{more}.",
        goes.len(),
        size(left)
    ));
    parts.join("\n")
}

/// `bytes` for people: `512 B`, `3.4 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for next in units {
        if amount < 1024.0 {
            break;
        }
        (amount, unit) = (amount / 1024.0, next);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{amount:.1} {unit}"),
    }
}

/// A size as users write it: `500MiB`.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim() {
        "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    let size = number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    size.ok_or_else(|| "write a whole number with its unit, such as 20GiB, 500MiB or 0B".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_said() {
        for (text, expected) in [
            ("20GiB", Ok(20 << 30)),
            ("500 MiB", Ok(500 << 20)),
            ("0B", Ok(0)),
            ("20", Err(())),
            ("GiB", Err(())),
            ("99999999999TiB", Err(())),
            ("20GB", Err(())),
        ] {
            assert_eq!(bytes(text).map_err(|_| ()), expected, "{text}");
        }
        assert_eq!(size(512), "512 B");
        assert_eq!(size(3 << 20), "3.0 MiB");
        assert_eq!(size(1536 << 20), "1.5 GiB");
    }
}
