//! `layerlab quarantine`: phones that are left alone for a while. A daemon that runs is asked; without one, the host's file
//! is read and changed.

use std::time::Duration;

use super::exit::{Code, ExitWith, Failure};
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::Folders;
use layerlab_farm::known_phones::serial_of;
use layerlab_farm::quarantine::{Entry, Quarantine};
use layerlab_lab::talk::{Answer, Request};
use layerlab_lab::text_table::table;

#[derive(clap::Subcommand)]
pub(super) enum QuarantineCommand {
    /// Leave a phone alone for a while
    Add {
        /// The phone: a name that `layerlab devices` lists, or the address at which it is
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

pub(super) async fn run(command: &QuarantineCommand) -> Result<(), Failure> {
    match lab::ask_if_there(&request(command)).await? {
        None => without_daemon(command),
        Some(answer) => told(command, answer),
    }
}

fn request(command: &QuarantineCommand) -> Request {
    match command {
        QuarantineCommand::Add {
            phone,
            reason,
            period,
        } => Request::Quarantine {
            phone: phone.clone(),
            reason: reason.clone(),
            period: Duration::from(*period),
        },
        QuarantineCommand::List { .. } => Request::Quarantined,
        QuarantineCommand::Lift { phone } => Request::Lift {
            phone: phone.clone(),
        },
    }
}

/// Says what the daemon has answered.
fn told(command: &QuarantineCommand, answer: Answer) -> Result<(), Failure> {
    match (command, answer) {
        (QuarantineCommand::Lift { phone }, Answer::Done) => lifted(phone),
        (QuarantineCommand::List { json }, Answer::Quarantine { entries }) => list(&entries, *json),
        (QuarantineCommand::Add { .. }, Answer::Quarantine { entries }) => {
            entries.iter().try_for_each(added)
        }
        (_, other) => Err(lab::unexpected(&other)),
    }
}

fn without_daemon(command: &QuarantineCommand) -> Result<(), Failure> {
    let state = Folders::of_this_user().state;
    let quarantine = Quarantine::in_folder(&state);
    match command {
        QuarantineCommand::Add {
            phone,
            reason,
            period,
        } => {
            let serial = serial_of(&state, phone);
            let entry = quarantine.add(&serial, reason, Duration::from(*period));
            added(&entry.exit_with(Code::Output)?)
        }
        QuarantineCommand::List { json } => {
            list(&quarantine.list().exit_with(Code::Output)?, *json)
        }
        QuarantineCommand::Lift { phone } => {
            let serial = serial_of(&state, phone);
            let names = [phone.as_str(), &serial];
            if quarantine.lift_all(&names).exit_with(Code::Output)? {
                return lifted(phone);
            }
            let error = anyhow::anyhow!(
                "{} is not in quarantine; `layerlab quarantine list` says who is",
                Printable(phone)
            );
            Err(Failure::new(Code::Input, error))
        }
    }
}

fn added(entry: &Entry) -> Result<(), Failure> {
    let phone = Printable(&entry.phone);
    output::print(format_args!(
        "{phone} is left alone until {}",
        entry.until_here()
    ))
}

fn lifted(phone: &str) -> Result<(), Failure> {
    output::print(format_args!("{} is used again", Printable(phone)))
}

fn list(entries: &[Entry], json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&entries);
    }
    if entries.is_empty() {
        return output::print("no phone is in quarantine");
    }
    let rows = entries.iter().map(|entry| {
        vec![
            Printable(&entry.phone).to_string(),
            entry.until_here(),
            Printable(&entry.why()).to_string(),
        ]
    });
    output::print(table(&["phone", "until", "reason"], &[], rows))
}
