//! `layerlab link measure`: from this machine to an edge server.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget};
use layerlab_campaign::publish::Staging;
use layerlab_campaign::{host, rfc3339, this_program};
use layerlab_edge::{
    Client, EdgeError, MeasurePlan, Measured, Patience, Progress, Shaper, Token, measure,
};
use layerlab_profiles::link::{
    LINK_FORMAT, LINK_VERSION, LinkDocument, LinkHeader, LinkKind, LinkProvenance, MeasuredFrom,
    link_name,
};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use super::shape::ShapeArg;
use super::summary;
use crate::campaign::publish_failure;
use crate::edge_server::{TokenArgs, program};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct MeasureArgs {
    /// Where the edge server listens
    #[arg(value_name = "HOST:PORT")]
    server: String,
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
    /// Echoes of 64 bytes
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(6..=10_000))]
    echoes: u32,
    /// What the random order of the exchanges is drawn from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to publish: a folder that is not there yet
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Replace a folder that is already there
    #[arg(long)]
    replace: bool,
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
}

impl KindArg {
    fn kind(self) -> LinkKind {
        match self {
            KindArg::Wifi => LinkKind::Wifi,
            KindArg::Cellular => LinkKind::Cellular,
            KindArg::Ethernet => LinkKind::Ethernet,
            KindArg::UsbTunnel => LinkKind::UsbTunnel,
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
    fn plan(&self) -> MeasurePlan {
        MeasurePlan {
            repeats: self.repeats,
            echoes: self.echoes,
            seed: self.seed,
            trace: self.trace,
            ..MeasurePlan::default()
        }
    }

    /// On a thread of its own, for it waits with blocking sockets.
    async fn measured(&self, token: Token) -> Result<Measured, Failure> {
        let (server, carrier, shape) = (self.server.clone(), self.kind, self.shape);
        let plan = self.plan();
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let measured = measure_from_here(&server, carrier, shape, &token, &plan);
            // Nobody waits for it any more when layerlab was interrupted.
            let _ = sender.send(measured);
        };
        let started = thread::Builder::new().name("link".to_owned()).spawn(work);
        started.exit_with(Code::Internal)?;
        receiver.await.exit_with(Code::Internal)?
    }
}

fn measure_from_here(
    server: &str,
    carrier: KindArg,
    shape: Option<ShapeArg>,
    token: &Token,
    plan: &MeasurePlan,
) -> Result<Measured, Failure> {
    let failed = |error: EdgeError| Failure::new(Code::Device, error);
    let direct = || Client::connect(server, token, &program(), Patience::default());
    // Whether the server is there, and knows the token, is seen without the shaper between.
    let reached = direct().and_then(|client| client.peer()).map_err(failed)?;
    if reached.ip().is_loopback() && matches!(carrier, KindArg::Wifi | KindArg::Cellular) {
        let error = anyhow!(
            "{server} is this machine itself, and no {} is between: say --kind usb-tunnel or ethernet, or measure a \
             server elsewhere",
            carrier.kind()
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let shaper = shape
        .map(|it| Shaper::start(reached, it.shape()))
        .transpose();
    let shaper = shaper.map_err(|source| failed(EdgeError::Shaper { source }))?;
    let way = shaper.as_ref().map_or(reached, Shaper::address);
    let connect =
        || Client::connect_by_way_of(&[way], server, token, &program(), Patience::default());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let measured = measure(connect, server, plan, |progress| match progress {
        Progress::Exchanges { done, of } => {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
        Progress::Trace(direction) => bar.set_message(format!("trace of the {direction}")),
    });
    bar.finish_and_clear();
    measured.map_err(failed)
}

pub(super) async fn run(args: MeasureArgs) -> Result<(), Failure> {
    let token = args.token.read()?;
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let began = OffsetDateTime::now_utc();
    let measured = args.measured(token).await?;
    let carrier = args.kind.kind();
    let header = LinkHeader {
        format: LINK_FORMAT.to_owned(),
        version: LINK_VERSION,
        name: args.name.clone(),
        kind: args.shape.map_or(carrier, |_| LinkKind::Shaped),
        carrier,
        shape: args.shape.map(ShapeArg::published),
        server: args.server.clone(),
        method: args.plan().method(),
        connections: measured.connections,
        provenance: LinkProvenance {
            started_at: rfc3339(began),
            finished_at: rfc3339(OffsetDateTime::now_utc()),
            measured_from: MeasuredFrom::Host,
            program: this_program(),
            server_program: measured.server_program,
            host: host(),
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
