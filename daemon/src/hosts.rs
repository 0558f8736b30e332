//! `layerlab hosts`: the hosts that share the lab.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::Failure;
use super::{lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{ListedHost, listed_hosts};
use layerlab_lab::record::LeaseState;
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;

#[derive(clap::Args)]
pub(super) struct HostsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &HostsArgs) -> Result<(), Failure> {
    let Some(reader) = lab::reader().await? else {
        return nothing(args, "no lab has been here yet; start `layerlab daemon`");
    };
    if !reader.is_on_server() {
        return nothing(
            args,
            "This lab has one host, this machine: its store is a file. Several hosts share a store on a PostgreSQL server; \
             docs/lab.md says how.",
        );
    }
    let hosts = reader.hosts().await.map_err(lab::unread)?;
    let kept = reader.unfinished().await.map_err(lab::unread)?;
    let now = Timestamp::now();
    let hosts = listed_hosts(hosts, &kept, now);
    if args.json {
        return output::print_json(&hosts);
    }
    if hosts.is_empty() {
        return output::print("No host has opened this lab yet; start `layerlab daemon`.");
    }
    output::print(hosts_table(&hosts, now))
}

/// What is said where there are no hosts to list.
fn nothing(args: &HostsArgs, why: &str) -> Result<(), Failure> {
    match args.json {
        true => output::print_json(&Vec::<ListedHost>::new()),
        false => output::print(why),
    }
}

fn hosts_table(hosts: &[ListedHost], now: Timestamp) -> String {
    let zone = TimeZone::system();
    let rows = hosts.iter().map(|host| {
        vec![
            Printable(&host.name).to_string(),
            match (host.lease, host.since) {
                (LeaseState::Alive, _) | (_, None) => "alive".to_owned(),
                (LeaseState::Lost, Some(at)) => format!("lost since {}", moment(at, now, &zone)),
                (LeaseState::Ended, Some(at)) => format!("ended {}", moment(at, now, &zone)),
            },
            host.devices.len().to_string(),
            host.running.to_string(),
            Printable(&host.version).to_string(),
        ]
    });
    table(
        &["host", "lease", "devices", "running", "version"],
        &[2, 3],
        rows,
    )
}
