//! `layerlab devices`: what `--device` can name, and the phones that cannot be used, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::adb::{self, AdbArgs};
use super::campaign::{agent_program, campaign_failure};
use super::elsewhere::Elsewhere;
use super::exit::{Code, Failure};
use super::phone_processors::phone_processors;
use super::runtimes::in_words;
use super::which_lab::{Lab, LabArgs};
use super::{lab, output};
use layerlab_farm::LinkError;
use layerlab_farm::adb::{AdbError, Fleet, Found, Printable, Values};
use layerlab_farm::discovery::{self, HOST, LOCAL, Listed, ListedState};
use layerlab_farm::folders::Folders;
use layerlab_farm::quarantine::Quarantine;
use layerlab_lab::query::{JobsAsked, simulated_devices};
use layerlab_lab::talk::DeviceStatus;
use layerlab_lab::text_table::table;
use layerlab_profiles::document::Processor;

/// What is told of each device.
const HEADS: [&str; 6] = ["device", "link", "kind", "state", "battery", "description"];

#[derive(clap::Args)]
pub(super) struct DevicesArgs {
    /// Go on, and print each phone that comes, goes or changes its state
    #[arg(long)]
    watch: bool,
    /// Print JSON; with --watch, one object a line for each change
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: &DevicesArgs,
    adb: &AdbArgs,
    lab: &LabArgs,
    agent: Option<PathBuf>,
) -> Result<(), Failure> {
    match lab.open()? {
        Lab::Here => here(args, adb, agent_program(agent)?).await,
        Lab::Elsewhere(lab) => elsewhere(args, &lab).await,
    }
}

/// What a lab elsewhere says of its devices.
async fn elsewhere(args: &DevicesArgs, lab: &Elsewhere) -> Result<(), Failure> {
    if args.watch {
        let error = anyhow::anyhow!(
            "--watch is for the phones of this machine; `layerlab watch` shows those of a lab elsewhere"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let devices = lab.snapshot(JobsAsked::Open).await?.status.devices;
    if args.json {
        return output::print_json(&devices);
    }
    if devices.is_empty() {
        return output::print("The lab has no devices.");
    }
    output::print(table(&HEADS, &[], devices.iter().map(lab_row)))?;
    for device in &devices {
        if let Some(reason) = &device.reason {
            output::print(format_args!(
                "{}: {}",
                Printable(&device.device.name),
                Printable(reason)
            ))?;
        }
    }
    Ok(())
}

fn lab_row(status: &DeviceStatus) -> Vec<String> {
    let device = &status.device;
    vec![
        Printable(&device.name).to_string(),
        match (&status.host, &device.address) {
            (Some(host), Some(address)) => {
                format!("{} at {}", Printable(host), Printable(address))
            }
            (Some(host), None) => Printable(host).to_string(),
            (None, Some(address)) => format!("lab at {}", Printable(address)),
            (None, None) => "lab".to_owned(),
        },
        if device.simulated {
            "simulated"
        } else {
            "real"
        }
        .to_owned(),
        status.state.to_string(),
        // The lab looks at batteries before it measures, and does not tell.
        String::new(),
        Printable(&device.description).to_string(),
    ]
}

async fn here(args: &DevicesArgs, adb: &AdbArgs, agent: PathBuf) -> Result<(), Failure> {
    let folders = Folders::of_this_user();
    let fleet = adb.fleet(&folders).await;
    let played = Played::in_lab().await;
    if args.watch {
        return watch(args, &fleet, &played).await;
    }
    let quarantine = Quarantine::in_folder(&folders.state);
    let (found, problems) = fleet.list().await;
    let phones = join_all(found.iter().map(|found| Listed::phone(found, &quarantine))).await;
    let phones = phones.into_iter().map(|phone| played.mark(phone));
    let mut devices: Vec<Listed> = discovery::list();
    let before = devices.len();
    devices.extend(phones);
    for (found, listed) in found.iter().zip(&mut devices[before..]) {
        if let Some(asked) = processors_of(found, listed, &agent).await {
            match asked {
                Ok(processors) => listed.processors = Some(processors),
                Err(error) => output::note(format_args!(
                    "layerlab: {}: {error}",
                    Printable(&found.name)
                )),
            }
        }
    }
    if let Some(asked) = adb.host.processors(agent).await {
        let processors = asked.map_err(|error| campaign_failure(error.into()))?;
        let host = devices.iter_mut().find(|device| device.name == HOST);
        if let Some(host) = host {
            host.processors = Some(processors);
        }
    }
    if args.json {
        output::print_json(&devices)?;
    } else {
        output::print(devices_table(&devices))?;
        for device in &devices {
            for processor in device.processors.iter().flatten() {
                output::print(format_args!(
                    "{}: {}",
                    Printable(&device.name),
                    Printable(&in_words(processor))
                ))?;
            }
            if let (Some(reason), Some(remedy)) = (&device.reason, &device.remedy) {
                let name = Printable(&device.name);
                output::print(format_args!(
                    "{name}: {}; {}",
                    Printable(reason),
                    Printable(remedy)
                ))?;
            }
        }
    }
    fleet.problems.iter().chain(&problems).for_each(tell);
    Ok(())
}

/// The phones whose agents play simulated devices in this user's lab, by name.
pub(super) struct Played(BTreeSet<String>);

impl Played {
    pub(super) async fn in_lab() -> Played {
        // A store that cannot be read is named by whoever asks about the lab.
        let kept = lab::kept().await.unwrap_or_default();
        Played(simulated_devices(&kept))
    }

    /// Whether the phone called `name` is one of them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn mark(&self, phone: Listed) -> Listed {
        Listed {
            simulated: self.has(&phone.name),
            ..phone
        }
    }
}

/// What keeps phones from being seen, on standard error: the list is still worth having.
fn tell(problem: &AdbError) {
    output::note(format_args!("layerlab: phones cannot be seen: {problem}"));
}

/// The processors that a phone has with the runtimes that were added, as its agent finds them; `None` where that is no
/// question: without such runtimes all have the same, and one that the lab has play a device is left at it.
async fn processors_of(
    found: &Found,
    listed: &Listed,
    agent: &Path,
) -> Option<Result<Vec<Processor>, LinkError>> {
    let folders = Folders::of_this_user();
    let provision = adb::provision(&folders, agent.to_owned(), None);
    if provision.runtimes.are_none() || listed.simulated || listed.state != ListedState::Ready {
        return None;
    }
    Some(phone_processors(found, provision, &folders).await)
}

fn devices_table(devices: &[Listed]) -> String {
    let rows = devices.iter().map(|device| {
        let mut processors = device.processors.iter().flatten();
        let kind = match (device.simulated, device.link) {
            (false, _) if processors.any(|one| one.emulated) => "real, and emulated processors",
            (false, _) => "real",
            (true, LOCAL) => "simulated",
            // Whoever profiles it without the lab measures the phone itself.
            (true, _) => "simulated in the lab",
        };
        vec![
            Printable(&device.name).to_string(),
            match &device.address {
                Some(address) => format!("{} at {}", device.link, Printable(address)),
                None => device.link.to_owned(),
            },
            kind.to_owned(),
            Printable(&device.state.to_string()).to_string(),
            device.battery.as_ref().map(charge).unwrap_or_default(),
            Printable(&device.description).to_string(),
        ]
    });
    table(&HEADS, &[], rows)
}

/// How full and how warm a battery is, as far as the phone tells: `85 %, 27 °C`.
fn charge(battery: &Values) -> String {
    let level = battery.number("level_percent");
    let warmth = battery.number("temperature_millicelsius");
    let parts = [
        level.map(|percent| format!("{percent} %")),
        warmth.map(|millicelsius| format!("{} °C", millicelsius as f64 / 1000.0)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A change, for scripts.
#[derive(Serialize)]
struct Change<'a> {
    at: String,
    device: &'a Listed,
}

async fn watch(args: &DevicesArgs, fleet: &Fleet, played: &Played) -> Result<(), Failure> {
    fleet.problems.iter().for_each(tell);
    let mut known: BTreeMap<String, Found> = BTreeMap::new();
    let mut watch = fleet.watch();
    while let Some(found) = watch.next().await {
        let now: BTreeMap<String, Found> = found
            .into_iter()
            .map(|found| (found.name.clone(), found))
            .collect();
        for (name, found) in &known {
            if !now.contains_key(name) {
                let mut gone = played.mark(Listed::unasked(found));
                gone.state = ListedState::Gone;
                print_change(args, &gone)?;
            }
        }
        for (name, found) in &now {
            let before = known.get(name).map(|before| &before.row);
            if before != Some(&found.row) {
                print_change(args, &played.mark(Listed::unasked(found)))?;
            }
        }
        known = now;
    }
    Ok(())
}

fn print_change(args: &DevicesArgs, device: &Listed) -> Result<(), Failure> {
    let at = OffsetDateTime::now_utc()
        .format(&Rfc3339)
        .unwrap_or_default();
    if args.json {
        let change = Change { at, device };
        return output::print(serde_json::to_string(&change).unwrap_or_default());
    }
    let state = device.state.to_string();
    let (name, state) = (Printable(&device.name), Printable(&state));
    match (&device.reason, &device.remedy) {
        (Some(reason), Some(remedy)) => output::print(format_args!(
            "{at}  {name}  {state}: {}; {remedy}",
            Printable(reason)
        )),
        _ => output::print(format_args!(
            "{at}  {name}  {state}  {}",
            Printable(&device.description)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_farm::adb::{Row, Server, State};

    #[test]
    fn a_battery_is_told_as_far_as_the_phone_tells_it() {
        let told = |text: &str| charge(&Values::parse(text));
        let whole = "level_percent=85\ntemperature_millicelsius=27400\n";
        assert_eq!(told(whole), "85 %, 27.4 °C");
        assert_eq!(told("level_percent=7\n"), "7 %");
        assert_eq!(told("level_percent_missing=unsupported\n"), "");
    }

    #[test]
    fn a_phone_that_the_lab_has_play_a_device_is_listed_as_simulated() {
        let found = Found {
            name: "R58".to_owned(),
            serial: None,
            route: Server::given("127.0.0.1:1".parse().expect("an address")).into(),
            row: Row {
                serial: "R58".to_owned(),
                state: State::Ready,
                transport: None,
                model: None,
                usb_path: None,
            },
        };
        let kind = |played: Played| {
            let table = devices_table(&[played.mark(Listed::unasked(&found))]);
            table.contains("simulated in the lab")
        };
        assert!(kind(Played(["R58".to_owned()].into())));
        assert!(!kind(Played(["R59".to_owned()].into())));
    }
}
