//! `layerlab link measure`: from this machine or a phone to an edge server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget};
use layerlab_campaign::publish::Staging;
use layerlab_campaign::{TimesSettings, host, rfc3339, this_program};
use layerlab_edge::{LinkErrand, MeasurePlan, Token};
use layerlab_farm::Policy;
use layerlab_profiles::link::{
    LINK_FORMAT, LINK_VERSION, LinkDocument, LinkHeader, LinkKind, LinkProvenance, MeasuredFrom,
    link_name,
};
use time::OffsetDateTime;

use super::from_phone::PhoneEnd;
use super::requests::RequestArgs;
use super::shape::ShapeArg;
use super::{from_host, summary};
use crate::adb::AdbArgs;
use crate::campaign::publish_failure;
use crate::edge_server::{TokenArgs, program};
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
    shape: Option<ShapeArg>,
    /// Also keep the link full for so long each way, and record the bytes of each 100 ms
    #[arg(long, value_name = "TIME", value_parser = trace_time)]
    trace: Option<Duration>,
    /// Transfers of each of the five sizes (16 KiB to 4 MiB), each way
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    repeats: u32,
    /// Echoes of 64 bytes, and with --model as many requests
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(6..=10_000))]
    echoes: u32,
    /// Connections that share the exchanges evenly, one after the other: they differ by more than the exchanges on one tell. At
    /// most as many as --repeats [default: 5, or as many as --repeats]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: Option<u32>,
    /// Microseconds of rest before each exchange: as many as the profiles to plan with have before each inference, for what has
    /// rested longer answers later
    #[arg(long, default_value_t = TimesSettings::GAP_US, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    gap_us: u64,
    #[command(flatten)]
    requests: RequestArgs,
    /// What the random order of the exchanges is drawn from
    #[arg(long, default_value_t = 0)]
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

/// From one interval to an hour.
fn trace_time(text: &str) -> Result<Duration, String> {
    let limits = layerlab_edge::TRACE_INTERVAL..=Duration::from_secs(3600);
    let time = text.parse::<humantime::Duration>().map(Duration::from);
    let time = time.ok().filter(|time| limits.contains(time));
    time.ok_or_else(|| "write a time from 100ms to 1h, such as 10s".to_owned())
}

impl MeasureArgs {
    fn connections(&self) -> u32 {
        let most = MeasurePlan::default().connections;
        self.connections.unwrap_or(most.min(self.repeats))
    }

    fn plan(&self) -> Result<MeasurePlan, Failure> {
        Ok(MeasurePlan {
            repeats: self.repeats,
            echoes: self.echoes,
            connections: self.connections(),
            requests: self.requests.timed(self.echoes)?,
            gap: Duration::from_micros(self.gap_us),
            seed: self.seed,
            trace: self.trace,
            ..MeasurePlan::default()
        })
    }

    fn errand(&self, token: Token) -> Result<LinkErrand, Failure> {
        Ok(LinkErrand {
            server: self.server.clone(),
            token,
            program: program(),
            shape: self.shape.map(ShapeArg::shape),
            plan: self.plan()?,
        })
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
    if args.connections() > args.repeats {
        let error = anyhow!(
            "a connection needs a transfer of each size: give --repeats of at least --connections"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let mut errand = args.errand(args.token.read()?)?;
    let method = errand.plan.method();
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let carrier = args.kind.kind();
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let (began, measured, phone) = match &args.device {
        None => {
            let began = OffsetDateTime::now_utc();
            let measured = from_host::measure(errand, carrier, bar.clone()).await?;
            (began, measured, None)
        }
        Some(device) => {
            let phone = PhoneEnd::open(device, agent, adb, args.policy()).await?;
            let _tunnel = match args.tunnel {
                true => Some(phone.tunnel(&mut errand).await?),
                false => None,
            };
            let began = OffsetDateTime::now_utc();
            let (measured, phone) = phone.measure(&errand, carrier, &bar).await?;
            (began, measured, Some(phone))
        }
    };
    bar.finish_and_clear();
    let header = LinkHeader {
        format: LINK_FORMAT.to_owned(),
        version: LINK_VERSION,
        name: args.name.clone(),
        kind: args.shape.map_or(carrier, |_| LinkKind::Shaped),
        carrier,
        shape: args.shape.map(ShapeArg::published),
        server: args.server.clone(),
        method,
        connections: measured.connections,
        provenance: LinkProvenance {
            started_at: rfc3339(began),
            finished_at: rfc3339(OffsetDateTime::now_utc()),
            measured_from: match phone {
                Some(_) => MeasuredFrom::Phone,
                None => MeasuredFrom::Host,
            },
            program: this_program(),
            server_program: measured.server_program,
            host: host(),
            phone,
        },
    };
    let link = LinkDocument::new(header, measured.samples, measured.traces);
    // The link is at fault, not what was asked.
    let link = link.map_err(|error| {
        let error = anyhow!("the link to {} cannot be described: {error}", args.server);
        Failure::new(Code::Device, error)
    })?;
    let findings = staging.publish_link(&link).map_err(publish_failure)?;
    for finding in &findings {
        output::note(finding);
    }
    match args.json {
        true => output::print_json(&summary::json(&link, &args.out)),
        false => output::print(summary::text(&link, &args.out)),
    }
}
