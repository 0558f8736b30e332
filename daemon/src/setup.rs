//! `layerlab setup`: from a phone in its box to its first profile, one step after the other. Each step says what it found,
//! and what to do where it cannot go on.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_campaign::publish::folder_name;
use layerlab_campaign::{Campaign, ModelFile, TimesSettings};
use layerlab_farm::adb::{Fleet, Found, Printable, State};
use layerlab_farm::agents::Agents;
use layerlab_farm::discovery::{BUILT_IN, HOST};
use layerlab_farm::folders::Folders;
use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::quarantine::Quarantine;
use layerlab_profiles::units::Nanos;
use tokio::time::{Instant, timeout_at};

use super::adb::{self, AdbArgs, PhoneArgs};
use super::campaign::{agent_program, campaign_failure};
use super::doctor::{self, Finding};
use super::exit::{Code, ExitWith, Failure};
use super::fitness::{FitnessArgs, make_fit};
use super::progress::{Bars, CampaignBars};
use super::{output, show};

/// The network of the first profile: random weights, the structure of AlexNet, small.
const ALEXNET: &[u8] = include_bytes!("../../tests/models/alexnet.onnx");

/// How many steps there are.
const STEPS: u32 = 4;

#[derive(clap::Args)]
pub(super) struct SetupArgs {
    /// The phone, where several are plugged in [default: the first that is ready]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The most device time that the first profile takes for each accelerator
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    budget: humantime::Duration,
    /// Where to publish the first profile [default: layerlab-profiles/DEVICE/alexnet]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    fitness: FitnessArgs,
}

pub(super) async fn run(
    args: &SetupArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    if let Some(name) = args.device.as_deref() {
        refuse_what_is_no_phone(name)?;
    }
    let agent = agent_program(agent)?;
    let folders = Folders::of_this_user();

    begin(1, "Can phones be reached?")?;
    let fleet = adb.fleet(&folders).await;
    report(&doctor::servers(&fleet).await)?;
    let (phones, _) = fleet.list().await;
    if phones.is_empty() {
        // It matters before a phone is on USB, and is no matter once one was seen.
        report(&[doctor::udev_rule()])?;
    }

    begin(2, "Is a phone there, and does it let this computer in?")?;
    let found = wait(&fleet, args, adb).await?;

    begin(3, "What is it, and is there an agent for it?")?;
    let agents = Agents {
        folder: folders.data.join("agents"),
        of_host: agent.clone(),
    };
    let quarantine = Quarantine::in_folder(&folders.state);
    let runtimes = PhoneRuntimes::in_folder(&folders.data);
    let findings = doctor::examine(&found, &quarantine, &agents, &runtimes).await;
    // Whether it is fit is asked when it is to be measured, and then waited for.
    let findings: Vec<Finding> = findings.into_iter().map(Finding::with_time).collect();
    report(&findings)?;

    first_profile(args, agent, adb, &found.name).await
}

fn begin(step: u32, what: &str) -> Result<(), Failure> {
    output::print(format_args!("\n[{step} of {STEPS}] {what}"))
}

/// Prints what was found. Setting up ends where there is a problem.
fn report(findings: &[Finding]) -> Result<(), Failure> {
    doctor::print_all(findings)?;
    match doctor::problems(findings) {
        0 => Ok(()),
        _ => Err(Failure::new(
            Code::Device,
            anyhow!(
                "do what is said after the arrow, then run layerlab setup again: it goes on from here"
            ),
        )),
    }
}

/// Refuses a device that nobody has to plug in.
fn refuse_what_is_no_phone(name: &str) -> Result<(), Failure> {
    let is_simulated = BUILT_IN.iter().any(|device| device.name == name);
    if !is_simulated && name != HOST {
        return Ok(());
    }
    let play = match is_simulated {
        true => format!("; --simulate {name} has a phone play it"),
        false => String::new(),
    };
    let error = anyhow!(
        "setup is for phones, and {name} needs none: layerlab profile --device {name} --model FILE.onnx{play}"
    );
    Err(Failure::new(Code::Input, error))
}

/// Waits until the phone is ready, and says what it waits for as often as that changes.
async fn wait(fleet: &Fleet, args: &SetupArgs, adb: &AdbArgs) -> Result<Found, Failure> {
    let end = Instant::now() + Duration::from(args.phone.patience());
    let mut watch = fleet.watch();
    let mut said = String::new();
    loop {
        let Ok(Some(phones)) = timeout_at(end, watch.next()).await else {
            let error = anyhow!(
                "no phone was ready within {} (--patience): do what is said above, then run layerlab setup again",
                args.phone.patience()
            );
            return Err(Failure::new(Code::Device, error));
        };
        let (wanted, others): (Vec<Found>, Vec<Found>) = phones.into_iter().partition(|phone| {
            let name = args.device.as_deref();
            name.is_none_or(|name| phone.is_called(name))
        });
        let is_ready = |phone: &&Found| phone.row.state == State::Ready;
        if let Some(phone) = wanted.iter().find(is_ready) {
            let also = wanted.iter().filter(is_ready).skip(1).map(name_of);
            let also: Vec<String> = also.collect();
            output::print(ready(&name_of(phone), &also))?;
            return Ok(phone.clone());
        }
        let waiting = match (wanted.is_empty(), args.device.as_deref()) {
            (false, _) => obstacles(&wanted),
            (true, Some(name)) => absent(name, &others),
            (true, None) => none_there(&adb.addresses()),
        };
        if waiting != said {
            output::print(&waiting)?;
            said = waiting;
        }
    }
}

fn name_of(phone: &Found) -> String {
    Printable(&phone.name).to_string()
}

/// Which phone is set up, and how another one is.
fn ready(name: &str, also: &[String]) -> String {
    match also {
        [] => format!("{name} is ready"),
        [other, ..] => format!(
            "{name} is ready, and set up now ({} too; --device {other} sets that one up)",
            also.join(", ")
        ),
    }
}

/// What to do where there is no phone, also none at the addresses that were given.
fn none_there(addresses: &[String]) -> String {
    if addresses.is_empty() {
        return "no phone is plugged in: connect its cable, and switch on USB debugging (Settings, About phone: tap the \
                build number seven times; then Settings, Developer options). Waiting for it"
            .to_owned();
    }
    format!(
        "no phone answers at {}: take the address and port from the phone (Settings, Developer options, Wireless debugging; it \
         has another port after each boot), and let this computer in there once (`adb pair`). Waiting for it",
        addresses.join(" and ")
    )
}

/// What to do where a phone of this name is not there, but perhaps others are.
fn absent(name: &str, others: &[Found]) -> String {
    let name = Printable(name);
    if others.is_empty() {
        return format!(
            "{name} is not there, nor any other phone: {}",
            none_there(&[])
        );
    }
    let others: Vec<String> = others.iter().map(name_of).collect();
    format!(
        "{name} is not there: connect it, or name one that is with --device ({}). Waiting for it",
        others.join(", ")
    )
}

/// What keeps phones from being ready, with what to do.
fn obstacles(phones: &[Found]) -> String {
    let each = phones.iter().map(|phone| {
        let (reason, remedy) = (phone.row.state.reason(), phone.row.state.remedy());
        format!("{}: {reason}: {remedy}. Waiting for that", name_of(phone))
    });
    each.collect::<Vec<_>>().join("\n")
}

/// Measures a small network and publishes its profile.
async fn first_profile(
    args: &SetupArgs,
    agent: PathBuf,
    adb: &AdbArgs,
    name: &str,
) -> Result<(), Failure> {
    let model = ModelFile::from_onnx(ALEXNET).exit_with(Code::Internal)?;
    let network = model.network.name();
    begin(4, "What does a small network cost on it, layer by layer?")?;
    let out = args.out.clone().unwrap_or_else(|| {
        let folder = PathBuf::from("layerlab-profiles").join(folder_name(name));
        folder.join(folder_name(network))
    });
    let link = adb::open(name, agent, adb, &args.phone).await?;
    let fit = make_fit(&link, &args.fitness, args.phone.patience().into()).await?;
    let campaign = Campaign {
        model: &model,
        times: TimesSettings {
            budget: Nanos::from(Duration::from(args.budget)),
            ..TimesSettings::default()
        },
        accuracy: None,
        target: out.clone(),
        replace: args.replace,
        signing_key: None,
        fitness: fit.fitness.clone(),
    };
    let bars = Bars::new();
    let mut follower = CampaignBars::new(&bars, network, name);
    let published = campaign.run(&link, &mut follower).await;
    let published = published.map_err(campaign_failure)?;
    output::print(show::tables(&published.profile))?;
    for finding in published.findings {
        output::note(format_args!("\n{finding}"));
    }
    output::print(format_args!(
        "\nPublished in {}. Now a network of your own:\n    layerlab profile --device {name} --model FILE.onnx",
        out.display()
    ))
}
