//! `layerlab link measure`: from this machine or a phone to an edge server.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget};
use layerlab_campaign::publish::Staging;
use layerlab_campaign::{LinkCampaign, LinkCampaignError, LinkSettings, WrittenShape};
use layerlab_farm::Policy;
use layerlab_profiles::link::{LinkKind, link_name};

use super::requests::RequestArgs;
use super::summary;
use crate::adb::{self, AdbArgs};
use crate::campaign::{agent_program, publish_failure};
use crate::edge_server::TokenArgs;
use crate::exit::{Code, Failure};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct MeasureArgs {
    /// Where the edge server listens, as whoever measures reaches it
    #[arg(value_name = "HOST:PORT")]
    server: String,
    /// Have this phone measure, which `layerlab devices` lists, instead of this machine
    #[arg(long, value_name = "PHONE")]
    device: Option<String>,
    /// Have the phone reach a server on this machine through adb, as `adb reverse` does
    #[arg(long, requires = "device")]
    tunnel: bool,
    /// What the link is called in its tables, such as lab-wifi
    #[arg(long, value_parser = link_name)]
    name: String,
    /// What carries the link, as you know it
    #[arg(long, value_enum)]
    kind: KindArg,
    #[command(flatten)]
    token: TokenArgs,
    /// Slow the link down to this bandwidth each way and add this round trip, such as 5mbit,75ms; what is published says
    /// that it was shaped
    #[arg(long, value_name = "BANDWIDTH,ROUND_TRIP")]
    shape: Option<WrittenShape>,
    /// Also keep the link full for so long each way, and record the bytes of each 100 ms
    #[arg(long, value_name = "TIME", value_parser = trace_time)]
    trace: Option<Duration>,
    /// Transfers of each of the five sizes (16 KiB to 4 MiB), each way
    #[arg(long, default_value_t = LinkSettings::USUAL_REPEATS, value_parser = clap::value_parser!(u32).range(bounds(LinkSettings::REPEATS)))]
    repeats: u32,
    /// Echoes of 64 bytes, and with --model as many requests
    #[arg(long, default_value_t = LinkSettings::USUAL_ECHOES, value_parser = clap::value_parser!(u32).range(bounds(LinkSettings::ECHOES)))]
    echoes: u32,
    /// Connections that share the exchanges evenly, one after the other: they differ by more than the exchanges on one tell. At
    /// most as many as --repeats [default: 5, or as many as --repeats]
    #[arg(long, value_parser = clap::value_parser!(u32).range(bounds(LinkSettings::CONNECTIONS)))]
    connections: Option<u32>,
    /// Microseconds of rest before each exchange: as many as the profiles to plan with have before each inference, for what has
    /// rested longer answers later
    #[arg(long, default_value_t = LinkSettings::USUAL_GAP_US, value_parser = clap::value_parser!(u64).range(LinkSettings::GAPS_US))]
    gap_us: u64,
    #[command(flatten)]
    requests: RequestArgs,
    /// What the random order of the exchanges is drawn from
    #[arg(long, default_value_t = LinkSettings::USUAL_SEED)]
    seed: u64,
    /// Where to publish: a folder that is not there yet
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Replace a folder that is already there
    #[arg(long)]
    replace: bool,
    /// How long to wait for a phone that is unplugged, or for its owner to accept its prompt
    #[arg(
        long,
        default_value = "10m",
        value_name = "DURATION",
        requires = "device",
        help_heading = "Phones"
    )]
    patience: humantime::Duration,
    /// Do not boot a phone anew that nothing else helps
    #[arg(long, requires = "device", help_heading = "Phones")]
    no_reboot: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Wifi,
    Cellular,
    Ethernet,
    UsbTunnel,
    NetworkTunnel,
}

impl KindArg {
    fn kind(self) -> LinkKind {
        match self {
            KindArg::Wifi => LinkKind::Wifi,
            KindArg::Cellular => LinkKind::Cellular,
            KindArg::Ethernet => LinkKind::Ethernet,
            KindArg::UsbTunnel => LinkKind::UsbTunnel,
            KindArg::NetworkTunnel => LinkKind::NetworkTunnel,
        }
    }
}

fn bounds(range: RangeInclusive<u32>) -> RangeInclusive<i64> {
    i64::from(*range.start())..=i64::from(*range.end())
}

/// From one interval to an hour.
fn trace_time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<humantime::Duration>().map(Duration::from);
    let time = time.ok().filter(|time| LinkSettings::TRACES.contains(time));
    time.ok_or_else(|| "write a time from 100ms to 1h, such as 10s".to_owned())
}

impl MeasureArgs {
    fn settings(&self) -> LinkSettings {
        LinkSettings {
            name: self.name.clone(),
            carrier: self.kind.kind(),
            server: self.server.clone(),
            token_file: self.token.file(),
            tunnel: self.tunnel,
            shape: self.shape,
            repeats: self.repeats,
            echoes: self.echoes,
            connections: self.connections,
            gap_us: self.gap_us,
            trace: self.trace,
            seed: self.seed,
        }
    }

    fn policy(&self) -> Policy {
        Policy {
            patience: self.patience.into(),
            may_reboot: !self.no_reboot,
            ..Policy::default()
        }
    }
}

pub(super) async fn run(
    args: MeasureArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let settings = args.settings();
    if !settings.has_enough_repeats() {
        let error = anyhow!(
            "a connection needs a transfer of each size: give --repeats of at least --connections"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let requests = (args.requests).timed(args.echoes, LinkSettings::smallest_transfer())?;
    let campaign = LinkCampaign::prepare(settings).map_err(link_failure)?;
    let campaign = campaign.with_requests(requests);
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let shown = bar.clone();
    let progress = move |done, of| {
        shown.set_length(of);
        shown.set_position(done);
    };
    let measured = match &args.device {
        None => campaign.measure_here(progress).await,
        Some(device) => {
            let agent = agent_program(agent)?;
            let link = adb::open_real_phone(device, agent, adb, args.policy()).await?;
            campaign.measure_from(&link, progress).await
        }
    };
    let link = measured.map_err(link_failure)?;
    bar.finish_and_clear();
    let findings = staging.publish_link(&link).map_err(publish_failure)?;
    for finding in &findings {
        output::note(finding);
    }
    match args.json {
        true => output::print_json(&summary::json(&link, &args.out)),
        false => output::print(summary::text(&link, &args.out)),
    }
}

fn link_failure(error: LinkCampaignError) -> Failure {
    let code = match &error {
        LinkCampaignError::Token(_) => Code::Input,
        LinkCampaignError::Here { .. }
        | LinkCampaignError::OtherKind { .. }
        | LinkCampaignError::Tunnel(_) => Code::Usage,
        LinkCampaignError::Thread { .. } => Code::Internal,
        _ => Code::Device,
    };
    Failure::new(code, error)
}
