//! `layerlab runtime`: the runtimes that phones are given beside their agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::Folders;
use layerlab_farm::runtimes::{
    AddedRuntime, Addition, LibrarySystem, RuntimeStore, RuntimeStoreError,
};
use layerlab_lab::text_table::table;
use layerlab_lab::webhook::without_secrets;
use tempfile::TempDir;

use super::exit::{Code, ExitWith, Failure};
use super::fetch::{as_url, expect_sha256, fetch};
use super::output;
use super::prune::size;

#[derive(clap::Subcommand)]
pub(super) enum RuntimeCommand {
    /// Keep what phones need of a runtime, so that they are given it when they are next measured
    Add {
        /// An Android archive (.aar), a Python wheel (.whl), or a folder with libraries; an archive's URL
        #[arg(value_name = "FILE|FOLDER|URL")]
        file: PathBuf,
        /// The SHA-256 that the archive must have; of what comes from a URL it must be known
        #[arg(long, value_name = "HASH")]
        sha256: Option<String>,
        /// What to call it [default: what it is called by its maker]
        #[arg(long)]
        name: Option<String>,
    },
    /// Print the runtimes that were added
    List {
        /// Print JSON, with each library and its SHA-256
        #[arg(long)]
        json: bool,
    },
    /// Keep a runtime no longer; phones that have it are not given it again
    Remove {
        /// The runtime, as the list names it
        name: String,
    },
}

pub(super) fn run(command: &RuntimeCommand) -> Result<(), Failure> {
    let store = RuntimeStore::in_folder(&Folders::of_this_user().data);
    match command {
        RuntimeCommand::Add { file, sha256, name } => {
            let fetched = fetched(file, sha256.as_deref())?;
            let file = fetched.as_ref().map_or(file, |(file, _)| file);
            if let Some(sha256) = sha256 {
                expect_sha256(file, sha256)?;
            }
            let Addition { runtime, is_new } = store.add(file, name.as_deref()).map_err(failure)?;
            let title = runtime.title();
            let title = Printable(&title);
            output::print(if is_new {
                format!(
                    "{title} was added for {}: {}",
                    targets(&runtime),
                    amount(&runtime)
                )
            } else {
                format!("{title} was there already; nothing has changed")
            })
        }
        RuntimeCommand::List { json } => {
            let runtimes = store.list().map_err(failure)?;
            if *json {
                return output::print_json(&runtimes);
            }
            if runtimes.is_empty() {
                return output::print(
                    "no runtime was added; phones measure their CPUs, by tract alone (docs/phones.md says what to add)",
                );
            }
            output::print(list(&runtimes))
        }
        RuntimeCommand::Remove { name } => {
            let runtime = store.remove(name).map_err(failure)?;
            let title = runtime.title();
            output::print(format_args!(
                "{} was removed; phones are not given it any more",
                Printable(&title)
            ))
        }
    }
}

/// The file that was fetched, and the folder that goes with it; nothing where `file` is one of this machine.
fn fetched(file: &Path, sha256: Option<&str>) -> Result<Option<(PathBuf, TempDir)>, Failure> {
    let Some(url) = as_url(file) else {
        return Ok(None);
    };
    if sha256.is_none() {
        let error = anyhow!(
            "phones will run what comes from {}: say with --sha256 which file it must be, as its maker publishes it",
            Printable(&without_secrets(url))
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let cache = Folders::of_this_user().cache;
    std::fs::create_dir_all(&cache).exit_with(Code::Output)?;
    let folder = TempDir::new_in(&cache).exit_with(Code::Output)?;
    Ok(Some((fetch(url, folder.path())?, folder)))
}

fn failure(error: RuntimeStoreError) -> Failure {
    let code = if error.is_of_store() {
        Code::Output
    } else {
        Code::Input
    };
    Failure::new(code, error)
}

fn list(runtimes: &[AddedRuntime]) -> String {
    let rows = runtimes.iter().map(|runtime| {
        let licence = runtime.licences.first().map_or("not said", String::as_str);
        let cells = [
            &runtime.name,
            &runtime.version,
            &targets(runtime),
            &amount(runtime),
        ];
        let cells = cells.into_iter().map(String::as_str).chain([licence]);
        cells.map(|text| Printable(text).to_string()).collect()
    });
    table(&["runtime", "version", "for", "size", "licence"], &[], rows)
}

/// The processors and systems that it is for: `arm64-v8a and x86_64 (Android)`.
fn targets(runtime: &AddedRuntime) -> String {
    let of = |system: LibrarySystem| -> Option<String> {
        let libraries = runtime
            .libraries
            .iter()
            .filter(|library| library.system == system);
        let abis: BTreeSet<&str> = libraries.map(|library| library.abi.as_str()).collect();
        let abis: Vec<&str> = abis.into_iter().collect();
        (!abis.is_empty()).then(|| format!("{} ({system})", abis.join(", ")))
    };
    let systems = [LibrarySystem::Android, LibrarySystem::Computer].into_iter();
    let all: Vec<String> = systems.filter_map(of).collect();
    all.join(", ")
}

fn amount(runtime: &AddedRuntime) -> String {
    let libraries = runtime.libraries.len();
    let noun = if libraries == 1 {
        "library"
    } else {
        "libraries"
    };
    let bytes = runtime.libraries.iter().map(|library| library.bytes).sum();
    format!("{libraries} {noun}, {}", size(bytes))
}
