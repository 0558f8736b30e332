//! `layerlab config`: what the daemon is told, and by which file.

use std::path::PathBuf;

use serde::Serialize;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use layerlab_lab::config::{Config, ConfigChange, DEFAULT, Loaded, places};
use layerlab_lab::text_table::table;
use layerlab_web::check_address;

#[derive(clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Say whether the configuration can be used, which file it is and what it changes
    Check {
        /// The file [default: layerlab/config.toml in ~/.config, else in /etc]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the default configuration, which explains every key
    Default,
}

/// What `check --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    read: &'a [PathBuf],
    changes: &'a [ConfigChange],
}

pub(super) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    let (file, json) = match command {
        ConfigCommand::Check { config, json } => (config, *json),
        ConfigCommand::Default => return output::print(DEFAULT.trim_end()),
    };
    let variable = |name: &str| std::env::var_os(name);
    let loaded = Config::load(file.as_deref(), variable).exit_with(Code::Input)?;
    check_address(&loaded.config.web).exit_with(Code::Input)?;
    if json {
        return output::print_json(&Report {
            read: &loaded.read,
            changes: &loaded.changes,
        });
    }
    output::print(origin(&loaded))?;
    if loaded.changes.is_empty() {
        return output::print("everything is as `layerlab config default` says");
    }
    let rows = loaded.changes.iter().map(|change| {
        let texts = [&change.value, &change.default].map(ToString::to_string);
        [change.key.clone()].into_iter().chain(texts).collect()
    });
    output::print(table(&["key", "value", "default"], &[], rows))
}

fn origin(loaded: &Loaded) -> String {
    if let [file] = loaded.read.as_slice() {
        return format!("read {}", file.display());
    }
    let places = places(|name| std::env::var_os(name));
    let places: Vec<String> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    format!("there is no configuration in {}", places.join(" or "))
}
