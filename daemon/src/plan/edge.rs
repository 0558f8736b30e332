//! `layerlab plan edge`: which layers to run on the phone and which on a server beside it (jointdnn), from what was measured.

mod accuracy;
mod energy;
mod packing;
mod planner;
mod sweep;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_lab::text_table::{Cells, table};
use layerlab_planners::edge::{
    AccurateSplit, Energy, LatencyIntervals, MeasuredNetwork, Packed, PlacedGroup, Quantity, Side,
    SplitAlgorithm, SplitGoal, SplitLimits, SplitPlan, TensorTransfer, measured_link,
    refuse_other_phone,
};
use layerlab_profiles::document::Profile;
use layerlab_profiles::link::LinkDocument;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Nanos, Segment};
use serde_json::{Value, json};

use self::accuracy::{AccuracyArgs, RequiredAccuracy};
use self::energy::{DrawnByPlan, Radio};
use self::packing::{PackingArgs, Packings, edge_packings};
use self::planner::{Answer, Planner};
use self::verify::{VerifiedSplit, VerifyArgs};
use crate::exit::{Code, ExitWith, Failure};
use crate::link::check::sound_link;
use crate::output;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct EdgeArgs {
    #[command(subcommand)]
    command: Option<EdgeCommand>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(clap::Subcommand)]
enum EdgeCommand {
    /// Where layers run over the bandwidth of the link, as CSV: on the phone, on the server, or on both
    Sweep(sweep::SweepArgs),
}

/// What is on both sides of a link. A subcommand does without what is required, so that it is optional here.
#[derive(clap::Args)]
struct Sides {
    /// The phone's profile
    #[arg(long, value_name = "FOLDER", required = true)]
    profile: Option<PathBuf>,
    /// The server's profile of the same model: `layerlab profile --device host`, run on the server
    #[arg(long, value_name = "FOLDER", required = true)]
    remote: Option<PathBuf>,
    /// The phone's processors that may be used, such as cpu,npu [default: its CPUs; with --accuracy those of the placements whose
    /// accuracies were measured]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    processors: Vec<String>,
    /// The server's [default: its CPUs]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    remote_processors: Vec<String>,
    #[command(flatten)]
    packing: PackingArgs,
}

impl Sides {
    /// The phone's profile and the server's.
    fn read(&self) -> Result<(Profile, Profile), Failure> {
        let phone = Profile::read(named(&self.profile)?).exit_with(Code::Input)?;
        let server = Profile::read(named(&self.remote)?).exit_with(Code::Input)?;
        Ok((phone, server))
    }

    /// The processors that were named, of the phone and of the server.
    fn chosen(&self) -> [&[String]; 2] {
        [&self.processors, &self.remote_processors]
    }

    fn network(
        &self,
        phone: &Profile,
        server: &Profile,
        required: Option<&RequiredAccuracy>,
        packings: Option<&Packings>,
    ) -> Result<MeasuredNetwork, Failure> {
        let [on_phone, on_server] = self.chosen();
        let on_phone = required.map_or(on_phone, |required| required.placed_on.chosen());
        let network = MeasuredNetwork::new(phone, server, [on_phone, on_server]);
        let network = network.exit_with(Code::Input)?;
        let Some(packings) = packings else {
            return Ok(network);
        };
        if let (Some(_), Some(codec)) = (required, packings.lossy()) {
            let error = anyhow!(
                "what {codec} costs was not measured together with placements, so that --accuracy cannot be kept with it; leave \
                 {codec} out of --codecs"
            );
            return Err(Failure::new(Code::Input, error));
        }
        packings.applied_to(network, [phone, server])
    }
}

#[derive(clap::Args)]
struct OneArgs {
    #[command(flatten)]
    sides: Sides,
    /// The measured link between the two, as `layerlab link measure` publishes it
    #[arg(long, value_name = "FOLDER", required = true)]
    link: Option<PathBuf>,
    /// What is to be least
    #[arg(long, value_enum, default_value_t = Minimise::Latency)]
    minimise: Minimise,
    /// The most that one inference may take from its input to its result, such as 120ms
    #[arg(long, value_name = "DURATION")]
    latency: Option<humantime::Duration>,
    /// The most that the server may compute for one inference, such as 20ms; 0s for nothing
    #[arg(long, value_name = "DURATION")]
    server_time: Option<humantime::Duration>,
    /// The most that the phone may draw for one inference above what it draws anyway, such as 500mJ
    #[arg(long, value_name = "ENERGY", value_parser = energy::energy)]
    energy: Option<Energy>,
    #[command(flatten)]
    accuracy: AccuracyArgs,
    /// The phone's radio, to plan with energy: its powers are those of jointdnn's Table 3, by what the link carries; the phone's
    /// profile must be one with --energy
    #[arg(long, value_enum)]
    radio: Option<Radio>,
    /// joint, or what it is compared with: phone-only, server-only, neurosurgeon (one cut), larac (one limit)
    #[arg(long, default_value_t = SplitAlgorithm::Joint, value_name = "NAME")]
    algorithm: SplitAlgorithm,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Minimise {
    Latency,
    ServerTime,
    PhoneEnergy,
}

impl OneArgs {
    fn goal(&self) -> SplitGoal {
        let nanos = |limit: humantime::Duration| Nanos::from(std::time::Duration::from(limit));
        SplitGoal {
            minimise: match self.minimise {
                Minimise::Latency => Quantity::Latency,
                Minimise::ServerTime => Quantity::ServerTime,
                Minimise::PhoneEnergy => Quantity::Energy,
            },
            limits: SplitLimits {
                latency: self.latency.map(nanos),
                energy: self.energy,
                server_time: self.server_time.map(nanos),
            },
        }
    }
}

/// A plan, and what it was made for.
struct Planned {
    phone: Profile,
    server: Profile,
    link: LinkDocument,
    network: MeasuredNetwork,
    plan: SplitPlan,
    intervals: LatencyIntervals,
    /// What the fastest split of each baseline takes, without limits; nothing where there is none.
    others: Vec<(SplitAlgorithm, Option<Nanos>)>,
    /// Where energy is planned with.
    drawn: Option<DrawnByPlan>,
    /// Where an accuracy is required.
    accurate: Option<(RequiredAccuracy, AccurateSplit)>,
    /// Where tensors may be packed.
    packings: Option<Packings>,
}

/// Neighbouring groups that run on one processor.
struct Stretch {
    segment: Segment,
    side: Side,
    processor: String,
}

pub(super) async fn run(args: &EdgeArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    match &args.command {
        Some(EdgeCommand::Sweep(args)) => sweep::run(args),
        None => one(&args.one, agent).await,
    }
}

fn named(folder: &Option<PathBuf>) -> Result<&Path, Failure> {
    folder.as_deref().ok_or_else(|| {
        let error = anyhow!("name the --profile, the --remote and the --link to plan with");
        Failure::new(Code::Usage, error)
    })
}

async fn one(args: &OneArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    let radio = energy::radio(args)?;
    let (phone, server) = args.sides.read()?;
    let packings = args.sides.packing.read()?;
    let link = sound_link(named(&args.link)?)?;
    refuse_other_phone(&phone, &link).exit_with(Code::Input)?;
    let prepared = args.verify.prepare(&phone.header, packings.as_ref())?;
    let required = args.accuracy.learn(&args.sides, &phone, &server)?;
    let network = (args.sides).network(&phone, &server, required.as_ref(), packings.as_ref())?;
    let mut over = measured_link(&link, &network).exit_with(Code::Input)?;
    let network = match radio {
        Some(radio) => {
            over.radio = radio.paper().link().radio;
            network.with_phone_energy(&phone).exit_with(Code::Input)?
        }
        None => network,
    };
    let limited = required.as_ref().map(RequiredAccuracy::limit).transpose()?;
    let planner = Planner::new(&network, &over, limited.as_ref())?;
    let answer = planner.answer(args.goal(), args.algorithm)?;
    let Answer {
        plan,
        network: placed,
        accurate,
    } = answer.map_err(|why| Failure::new(Code::NoPlan, anyhow!(why)))?;
    let drawn = match radio {
        Some(radio) => {
            let least = least_drawn(&planner)?;
            Some(DrawnByPlan::of(&plan, &placed, radio, least))
        }
        None => None,
    };
    let others = others(&planner)?;
    drop(limited);
    let planned = Planned {
        drawn,
        intervals: placed.intervals(&plan, &link),
        others,
        phone,
        server,
        link,
        network: placed,
        plan,
        accurate: required.zip(accurate),
        packings,
    };
    if !args.json {
        output::print(planned.text(prepared.is_some()))?;
    }
    let verified = match prepared {
        Some(prepared) => {
            let stretches = stretches(&planned.network, &planned.plan);
            let profiled = [&planned.phone.header, &planned.server.header];
            let packings = edge_packings(&planned.network, &planned.plan);
            let what = (stretches.as_slice(), packings);
            let run = prepared.run(what, profiled, &planned.link.header, agent);
            Some(run.await?)
        }
        None => None,
    };
    match verified {
        verified if args.json => output::print_json(&planned.json(verified.as_ref())),
        Some(verified) => {
            let text = verified.text(&planned.plan, &planned.intervals);
            output::print(format_args!("\n{text}"))
        }
        None => Ok(()),
    }
}

/// What plans are compared with.
const BASELINES: [SplitAlgorithm; 3] = [
    SplitAlgorithm::PhoneOnly,
    SplitAlgorithm::ServerOnly,
    SplitAlgorithm::Neurosurgeon,
];

/// What the fastest split of each baseline takes, without other limits than that of accuracy; nothing where there is none.
fn others(planner: &Planner) -> Result<Vec<(SplitAlgorithm, Option<Nanos>)>, Failure> {
    let latency = |algorithm| {
        let answer = planner.least(Quantity::Latency, algorithm)?;
        Ok((algorithm, answer.map(|it| it.plan.cost().latency)))
    };
    BASELINES.into_iter().map(latency).collect()
}

/// What the phone draws with the most frugal split of each baseline, without other limits than that of accuracy; nothing where
/// there is none.
fn least_drawn(planner: &Planner) -> Result<Vec<(String, Option<Energy>)>, Failure> {
    let energy = |algorithm: SplitAlgorithm| {
        let answer = planner.least(Quantity::Energy, algorithm)?;
        let energy = answer.map(|it| it.plan.cost().energy);
        Ok((algorithm.to_string(), energy))
    };
    BASELINES.into_iter().map(energy).collect()
}

/// A plan's groups, those beside one another on one processor as one.
fn stretches(network: &MeasuredNetwork, plan: &SplitPlan) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for group in plan.groups() {
        let processor = network.processor(group).unwrap_or("?").to_owned();
        let PlacedGroup { segment, side } = *group;
        match stretches.last_mut() {
            Some(last) if last.side == side && last.processor == processor => {
                if let Ok(both) = Segment::new(last.segment.first(), segment.last()) {
                    last.segment = both;
                }
            }
            _ => stretches.push(Stretch {
                segment,
                side,
                processor,
            }),
        }
    }
    stretches
}

impl Planned {
    /// Whether anything of it is simulated.
    fn is_simulated(&self) -> bool {
        self.phone.header.simulated
            || self.server.header.simulated
            || self.link.header.shape.is_some()
    }

    /// How a transfer of the plan is packed, if it is.
    fn packed(&self, transfer: &TensorTransfer) -> Option<(&Packings, TensorCodec, Packed)> {
        let packed = self.network.network().packed(transfer)?;
        Some((self.packings.as_ref()?, transfer.codec?, packed))
    }

    /// Whether any of it is of an emulated processor, which has no phone's times.
    fn is_emulated(&self) -> bool {
        self.phone.header.emulated || self.server.header.emulated
    }

    fn text(&self, is_run: bool) -> String {
        let plan = &self.plan;
        let (phone, server) = (&self.phone.header, &self.server.header);
        let link = &self.link.header;
        let shares = plan.shares();
        let mut lines = vec![
            format!(
                "{} on {} beside {} over {} ({}){}",
                phone.model.name,
                phone.device.name,
                server.device.name,
                link.name,
                link.kind,
                match (self.is_simulated(), self.is_emulated()) {
                    (true, _) => ", simulated",
                    (false, true) => ", emulated",
                    (false, false) => "",
                },
            ),
            format!(
                "{}: {}{}; phone {}, upload {}, server {}, download {}",
                plan.algorithm(),
                plan.cost().latency,
                self.intervals
                    .all
                    .map_or_else(String::new, |(low, high)| { format!(" ({low} to {high})") }),
                shares.phone,
                shares.upload,
                shares.server,
                shares.download
            ),
        ];
        let stretches = stretches(&self.network, plan).into_iter();
        let row = |it: Stretch| -> Cells {
            vec![it.segment.to_string(), it.side.to_string(), it.processor]
        };
        lines.push(table(
            &["layers", "side", "processor"],
            &[],
            stretches.map(row),
        ));
        for transfer in plan.transfers() {
            let tensor = &self.network.network().tensors()[transfer.tensor];
            let what = match tensor.producer {
                0 => "the input".to_owned(),
                layer => format!("what leaves layer {layer}"),
            };
            let bytes = self.network.network().bytes_of(transfer);
            let mut line = format!("{}: {what}, {bytes}", transfer.direction);
            if let Some((packings, codec, packed)) = self.packed(transfer) {
                let how = packings.text(codec, packed, tensor.producer);
                line.push_str(&format!(" of {}, {how}", tensor.bytes));
            }
            lines.push(line);
        }
        let others: Vec<String> = self
            .others
            .iter()
            .map(|(algorithm, latency)| match latency {
                Some(latency) => format!("{algorithm} {latency}"),
                None => format!("{algorithm} impossible"),
            })
            .collect();
        let compared = match &self.accurate {
            Some((required, split)) => {
                lines.push(required.text(split));
                "Compared with what keeps that accuracy"
            }
            None => "Compared with",
        };
        lines.push(format!("{compared}: {}", others.join(", ")));
        lines.extend(self.drawn.as_ref().map(DrawnByPlan::text));
        let interval = match self.intervals.all {
            Some(_) => {
                "In brackets the 95 % interval of a run's median, as far as what was measured tells"
            }
            None => "What was measured gives no interval",
        };
        let end = match is_run {
            true => "",
            false => ", and nothing was run",
        };
        let rest = match (&self.accurate, &self.drawn) {
            (None, None) => "; accuracy and energy are not planned with",
            (None, Some(_)) => "; accuracy is not planned with",
            (Some(_), None) => "; energy is not planned with",
            (Some(_), Some(_)) => "",
        };
        lines.push(format!("{interval}{rest}{end}"));
        lines.join("\n")
    }

    fn json(&self, verified: Option<&VerifiedSplit>) -> Value {
        let plan = &self.plan;
        let shares = plan.shares();
        let stretches = stretches(&self.network, plan);
        let groups: Vec<Value> = stretches
            .iter()
            .map(|it| {
                json!({
                    "first_layer": it.segment.first(),
                    "last_layer": it.segment.last(),
                    "side": it.side.to_string(),
                    "processor": it.processor,
                })
            })
            .collect();
        let transfers: Vec<Value> = plan
            .transfers()
            .iter()
            .map(|transfer| {
                let tensor = &self.network.network().tensors()[transfer.tensor];
                let mut told = json!({
                    "direction": transfer.direction.to_string(),
                    "after_layer": tensor.producer,
                    "bytes": self.network.network().bytes_of(transfer),
                });
                if let Some((packings, codec, packed)) = self.packed(transfer) {
                    told["unpacked_bytes"] = json!(tensor.bytes);
                    packings.add_to(&mut told, codec, packed, tensor.producer);
                }
                told
            })
            .collect();
        let others: serde_json::Map<String, Value> = self
            .others
            .iter()
            .map(|(algorithm, latency)| (algorithm.to_string(), json!(latency)))
            .collect();
        let mut told = json!({
            "model": self.phone.header.model.name,
            "phone": self.phone.header.device.name,
            "server": self.server.header.device.name,
            "link": self.link.header.name,
            "kind": self.link.header.kind,
            "simulated": self.is_simulated(),
            "emulated": self.is_emulated(),
            "algorithm": plan.algorithm().name(),
            "groups": groups,
            "transfers": transfers,
            "latency_ns": plan.cost().latency,
            "latency_ci95_ns": self.intervals.all.map(|(low, high)| [low, high]),
            "phone_ns": shares.phone,
            "upload_ns": shares.upload,
            "server_ns": shares.server,
            "download_ns": shares.download,
            "baselines_latency_ns": others,
        });
        if let Some(drawn) = &self.drawn {
            drawn.add_to(&mut told);
        }
        if let Some((required, split)) = &self.accurate {
            required.add_to(split, &mut told);
        }
        if let Some(verified) = verified {
            told["verified"] = verified.json();
        }
        told
    }
}
