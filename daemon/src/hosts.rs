//! `layerlab hosts`: the hosts that share the lab.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::Failure;
use super::which_lab::{Lab, LabArgs};
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{ListedHost, listed_hosts};
use layerlab_lab::text_table::table;

#[derive(clap::Args)]
pub(super) struct HostsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is said of a lab whose store no other host can share.
const ALONE: &str = "This lab has one host, this machine: its store is a file. Several hosts share a store on a PostgreSQL server; \
                     docs/lab.md says how.";

pub(super) async fn run(args: &HostsArgs, lab: &LabArgs) -> Result<(), Failure> {
    let hosts = match lab.open()? {
        Lab::Here => here().await?,
        Lab::Elsewhere(lab) => {
            let hosts = lab.hosts().await?;
            match hosts.is_empty() {
                true => Err("That lab has one host: its store is a file."),
                false => Ok(hosts),
            }
        }
    };
    match (hosts, args.json) {
        (Ok(hosts), true) => output::print_json(&hosts),
        (Ok(hosts), false) => output::print(hosts_table(&hosts, Timestamp::now())),
        (Err(_), true) => output::print_json(&Vec::<ListedHost>::new()),
        (Err(why), false) => output::print(why),
    }
}

/// Those of the lab here, or why there are none to list.
async fn here() -> Result<Result<Vec<ListedHost>, &'static str>, Failure> {
    let Some(reader) = lab::reader().await? else {
        return Ok(Err("no lab has been here yet; start `layerlab daemon`"));
    };
    if !reader.is_on_server() {
        return Ok(Err(ALONE));
    }
    let hosts = reader.hosts().await.map_err(lab::unread)?;
    let kept = reader.unfinished().await.map_err(lab::unread)?;
    let hosts = listed_hosts(hosts, &kept, Timestamp::now());
    Ok(match hosts.is_empty() {
        true => Err("No host has opened this lab yet; start `layerlab daemon`."),
        false => Ok(hosts),
    })
}

fn hosts_table(hosts: &[ListedHost], now: Timestamp) -> String {
    let zone = TimeZone::system();
    let rows = hosts.iter().map(|host| {
        vec![
            Printable(&host.name).to_string(),
            host.lease_in_words(now, &zone),
            host.devices.len().to_string(),
            host.running.to_string(),
            Printable(host.zone.as_deref().unwrap_or_default()).to_string(),
            Printable(&host.version).to_string(),
        ]
    });
    table(
        &[
            "host",
            "lease",
            "devices",
            "running",
            "time zone",
            "version",
        ],
        &[2, 3],
        rows,
    )
}
