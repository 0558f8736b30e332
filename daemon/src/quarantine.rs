//! `layerlab quarantine`: phones that are left alone for a while.

use std::time::Duration;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::Folders;
use layerlab_farm::quarantine::Quarantine;
use layerlab_lab::text_table::table;

#[derive(clap::Subcommand)]
pub(super) enum QuarantineCommand {
    /// Leave a phone alone for a while
    Add {
        /// The phone's serial, or the name by which `layerlab devices` lists it
        phone: String,
        /// Why, for whoever finds it in the list
        #[arg(long)]
        reason: String,
        /// For how long, such as 30m, 2h or 7d
        #[arg(long = "for", value_name = "DURATION", default_value = "1h")]
        period: humantime::Duration,
    },
    /// Print who is left alone, why and until when
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Use a phone again
    Lift {
        /// The phone, as the list names it
        phone: String,
    },
}

pub(super) fn run(command: &QuarantineCommand) -> Result<(), Failure> {
    let quarantine = Quarantine::in_folder(&Folders::of_this_user().state);
    match command {
        QuarantineCommand::Add {
            phone,
            reason,
            period,
        } => {
            let entry = quarantine
                .add(phone, reason, Duration::from(*period))
                .exit_with(Code::Output)?;
            output::print(format_args!(
                "{} is left alone until {}",
                Printable(phone),
                entry.until_here()
            ))
        }
        QuarantineCommand::List { json } => {
            let entries = quarantine.list().exit_with(Code::Output)?;
            if *json {
                return output::print_json(&entries);
            }
            if entries.is_empty() {
                return output::print("no phone is in quarantine");
            }
            let rows = entries.iter().map(|entry| {
                vec![
                    Printable(&entry.phone).to_string(),
                    entry.until_here(),
                    Printable(&entry.reason).to_string(),
                ]
            });
            output::print(table(&["phone", "until", "reason"], &[], rows))
        }
        QuarantineCommand::Lift { phone } => {
            if quarantine.lift(phone).exit_with(Code::Output)? {
                return output::print(format_args!("{} is used again", Printable(phone)));
            }
            let error = anyhow::anyhow!(
                "{} is not in quarantine; `layerlab quarantine list` says who is",
                Printable(phone)
            );
            Err(Failure::new(Code::Input, error))
        }
    }
}
