//! `plan edge --verify`: the plan is run on the phone and its server, so that what was measured stands beside what was
//! predicted.

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_campaign::{ModelFile, SetFile};
use layerlab_edge::Token;
use layerlab_farm::adb::Printable;
use layerlab_lab::text_table::{Cells, table};
use layerlab_planners::edge::{LatencyIntervals, LatencyShares, Side, SplitPlan};
use layerlab_profiles::Nanos;
use layerlab_profiles::document::Header;
use layerlab_profiles::link::LinkHeader;
use layerlab_profiles::summary::Summary;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_protocol::{
    EdgeAgreement, EdgeImages, EdgeInference, EdgePacking, EdgePart, EdgePlan, EdgeSide, Request,
    Response, ShapedLink,
};
use serde_json::{Value, json};

use super::Stretch;
use super::packing::Packings;
use crate::adb::{AdbArgs, PhoneArgs};
use crate::edge_server::TokenArgs;
use crate::errand::{Errand, ErrandTo};
use crate::evaluate::same_device;
use crate::exit::{Code, ExitWith, Failure};
use crate::model_options::{open_with_twin, parse_dim, refuse_other_twin};

/// Inferences before those that are timed: the first has the server load its layers.
const WARM_UP: u32 = 3;

/// What the input is drawn from.
const SEED: u64 = 1;

/// Differences up to this, in billionths of the largest number, are those of another order of additions in 32-bit floats.
const TOLERANCE_PPB: u64 = 1_000_000;

#[derive(clap::Args)]
pub(super) struct VerifyArgs {
    /// Run the plan and put what was measured beside what was predicted
    #[arg(long, requires_all = ["device", "server", "model"])]
    verify: bool,
    /// With --verify: the phone, as `layerlab devices` lists it
    #[arg(long, value_name = "PHONE", requires = "verify")]
    device: Option<String>,
    /// With --verify: where `layerlab edge-server --model` listens, as the phone reaches it
    #[arg(long, value_name = "HOST:PORT", requires = "verify")]
    server: Option<String>,
    /// With --verify: have the phone reach a server on this machine through adb, as `adb reverse` does
    #[arg(long, requires = "verify")]
    tunnel: bool,
    #[command(flatten)]
    token: TokenArgs,
    /// With --verify: the ONNX model
    #[arg(long, value_name = "FILE", requires = "verify")]
    model: Option<PathBuf>,
    /// With --verify: the model's quantised twin, for processors that compute in 8 bits
    #[arg(long, value_name = "FILE", requires = "verify")]
    quantised: Option<PathBuf>,
    /// With --verify and --tensors: the evaluation set that was measured with, whose pictures are answered
    #[arg(long, value_name = "FILE", requires_all = ["verify", "tensors"])]
    set: Option<PathBuf>,
    /// With --verify: the size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim, requires = "verify")]
    dims: Vec<(String, u64)>,
    /// With --verify: how many inferences are timed
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(6..=1000))]
    inferences: u32,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    adb: AdbArgs,
}

/// A plan that was run.
pub(super) struct VerifiedSplit {
    device: String,
    server: String,
    is_simulated: bool,
    rest: Nanos,
    total: Summary,
    phone: Summary,
    link: Summary,
    upload: Summary,
    queue: Summary,
    compute: Summary,
    download: Summary,
    agreement: Option<EdgeAgreement>,
    not_compared: Option<String>,
    /// A codec that crossing tensors were rounded by.
    rounded_by: Option<TensorCodec>,
}

/// What is to be run, read and found to belong together before the device is touched.
pub(super) struct Prepared<'a> {
    args: &'a VerifyArgs,
    device: &'a str,
    server: &'a str,
    model: ModelFile,
    /// The pictures that are answered, where tensors may be packed.
    pictures: Option<(SetFile, EdgeImages)>,
    token: Token,
}

impl VerifyArgs {
    /// Reads what running needs, if the plan is to be run.
    pub(super) fn prepare(
        &self,
        profiled: &Header,
        packings: Option<&Packings>,
    ) -> Result<Option<Prepared<'_>>, Failure> {
        let (true, Some(device), Some(server), Some(model)) =
            (self.verify, &self.device, &self.server, &self.model)
        else {
            return Ok(None);
        };
        let dims = self.dims.iter().cloned().collect();
        let model = open_with_twin(model, self.quantised.as_deref(), &dims)?;
        if model.source_sha256 != profiled.model.sha256 {
            let message =
                "--model is another model than the profiles'; give the file that was profiled";
            return Err(Failure::new(Code::Input, anyhow!(message)));
        }
        refuse_other_twin(&profiled.model, &model).exit_with(Code::Input)?;
        Ok(Some(Prepared {
            args: self,
            device,
            server,
            model,
            pictures: packings
                .map(|packings| self.pictures(packings))
                .transpose()?,
            token: self.token.read()?,
        }))
    }

    /// The pictures whose tensors were packed when that was measured: how small they become depends on what is in them.
    fn pictures(&self, packings: &Packings) -> Result<(SetFile, EdgeImages), Failure> {
        let (measured, images) = packings.pictures();
        let Some(file) = &self.set else {
            let message = format!(
                "how small tensors become depends on the pictures: name the --set {} that --tensors was measured with",
                measured.name
            );
            return Err(Failure::new(Code::Usage, anyhow!(message)));
        };
        let set = SetFile::open(file).exit_with(Code::Input)?;
        if set.sha256 != measured.sha256 {
            let message =
                "--set is another evaluation set than the one that --tensors was measured with";
            return Err(Failure::new(Code::Input, anyhow!(message)));
        }
        let set_sha256 = set.sha256.clone();
        Ok((set, EdgeImages { set_sha256, images }))
    }
}

impl Prepared<'_> {
    /// Runs the plan's stretches, whose tensors cross packed where it says so, with so long a rest before each inference as before
    /// those that were profiled. Dropping the future ends that.
    pub(super) async fn run(
        &self,
        (stretches, packings): (&[Stretch], Vec<EdgePacking>),
        profiled: [&Header; 2],
        link: &LinkHeader,
        agent: Option<PathBuf>,
    ) -> Result<VerifiedSplit, Failure> {
        let args = self.args;
        let to = ErrandTo {
            device: self.device,
            server: self.server,
            tunnel: args.tunnel,
            again: "run the plan again",
        };
        let set = self.pictures.as_ref().map(|(set, _)| set.file());
        let files = self.model.files().chain(set);
        let mut errand = Errand::prepare(to, files, agent, &args.adb, &args.phone).await?;
        let found = errand.found().clone();
        let [phone, _] = profiled;
        same_device(&phone.device, &found, "--device")?;
        let rest = rest(stretches, profiled);
        let mut codecs = packings.iter().map(|packing| packing.codec);
        let rounded_by = codecs.find(|codec| codec.is_eight_bit());
        let plan = self.plan(errand.server().to_owned(), stretches, packings, rest, link);
        errand.ask(&Request::RunEdgePlan { plan }).await?;
        let ran = errand.hear(|_, _| {}).await?;
        let (inferences, agreement, not_compared) = match ran {
            Response::EdgePlanRan {
                inferences,
                agreement,
                not_compared,
                ..
            } if inferences.len() == args.inferences as usize => {
                (inferences, agreement, not_compared)
            }
            _ => return Err(errand.other_answer()),
        };
        let summary = |part: fn(&EdgeInference) -> Nanos| {
            let times: Vec<Nanos> = inferences.iter().map(part).collect();
            Summary::of(&times).ok_or_else(|| errand.other_answer())
        };
        Ok(VerifiedSplit {
            device: found.name,
            server: self.server.to_owned(),
            is_simulated: found.simulated,
            rest,
            total: summary(|it| it.total_ns)?,
            phone: summary(|it| it.phone_ns)?,
            link: summary(|it| it.upload_ns + it.download_ns)?,
            upload: summary(|it| it.upload_ns)?,
            queue: summary(|it| it.queue_ns)?,
            compute: summary(|it| it.server_ns)?,
            download: summary(|it| it.download_ns)?,
            agreement,
            not_compared,
            rounded_by,
        })
    }

    fn plan(
        &self,
        server: String,
        stretches: &[Stretch],
        packings: Vec<EdgePacking>,
        rest: Nanos,
        link: &LinkHeader,
    ) -> EdgePlan {
        let part = |stretch: &Stretch| EdgePart {
            segment: stretch.segment,
            side: match stretch.side {
                Side::Phone => EdgeSide::Phone,
                Side::Server => EdgeSide::Server,
            },
            processor: stretch.processor.clone(),
        };
        EdgePlan {
            server,
            token: self.token.to_hex(),
            model_sha256: self.model.sha256.clone(),
            quantised_sha256: self.model.quantised_sha256(),
            server_model_sha256: self.model.source_sha256.clone(),
            parts: stretches.iter().map(part).collect(),
            inferences: self.args.inferences,
            warm_up: WARM_UP,
            rest_ns: Some(rest),
            seed: SEED,
            shape: link.shape.as_ref().map(|shape| ShapedLink {
                bandwidth_bps: shape.bandwidth_bps,
                round_trip_ns: shape.round_trip_ns,
            }),
            packings,
            images: self.pictures.as_ref().map(|(_, images)| images.clone()),
        }
    }
}

/// What the processors of the plan rested before each inference that was profiled: the longest of them.
fn rest(stretches: &[Stretch], profiled: [&Header; 2]) -> Nanos {
    let rests = stretches.iter().filter_map(|stretch| {
        let mut measurements = profiled[stretch.side as usize].measurements.iter();
        let measured = measurements.find(|it| it.processor == stretch.processor)?;
        Some(measured.gap_ns)
    });
    rests.max().unwrap_or(Nanos::ZERO)
}

impl VerifiedSplit {
    pub(super) fn text(&self, plan: &SplitPlan, sure: &LatencyIntervals) -> String {
        let LatencyShares {
            phone,
            upload,
            server,
            download,
        } = plan.shares();
        let mut rows: Vec<Cells> = Vec::new();
        let between = |interval: Option<(Nanos, Nanos)>| {
            interval.map_or_else(String::new, |(low, high)| format!("{low} to {high}"))
        };
        let mut row = |name: &str, predicted: Option<Nanos>, sure, measured: &Summary| {
            rows.push(vec![
                name.to_owned(),
                predicted.map_or_else(String::new, |it| it.to_string()),
                between(sure),
                measured.median.to_string(),
                between(measured.median_ci95),
            ]);
        };
        row("all", Some(plan.cost().latency), sure.all, &self.total);
        row("phone", Some(phone), sure.phone, &self.phone);
        row("link", Some(upload + download), sure.link, &self.link);
        row("server", Some(server), sure.server, &self.compute);
        row("its queue", None, None, &self.queue);
        let mut lines = vec![
            format!(
                "Run {} times on {} with the server at {}, {} of rest before each; medians of",
                self.total.count,
                Printable(&self.device),
                Printable(&self.server),
                self.rest
            ),
            table(
                &[
                    "part",
                    "predicted",
                    "95 % interval",
                    "measured",
                    "95 % interval",
                ],
                &[1, 3],
                rows,
            ),
            self.agreement_text(),
        ];
        if self.is_simulated {
            lines.push(
                "The phone's time is simulated, the link's and the server's are real; all is their sum".to_owned(),
            );
        }
        lines.join("\n")
    }

    fn agreement_text(&self) -> String {
        let Some(agreement) = &self.agreement else {
            let why = self
                .not_compared
                .as_deref()
                .unwrap_or("the agent did not say why");
            return format!(
                "The result was not compared with the whole network's on the phone alone: {}",
                Printable(why)
            );
        };
        let verdict = match agreement.difference_ppb <= TOLERANCE_PPB {
            true => "equals",
            false => "differs from",
        };
        let by = match (agreement.difference_ppb, self.rounded_by) {
            (u64::MAX, _) => "some are no numbers".to_owned(),
            (ppb, Some(codec)) => format!(
                "the largest difference is {} % of the largest number, where {codec} rounded what crossed to 8 bits",
                ppb as f64 / 1e7
            ),
            (ppb, None) => format!(
                "the largest difference is {} % of the largest number, and up to {} % is rounding",
                ppb as f64 / 1e7,
                TOLERANCE_PPB as f64 / 1e7
            ),
        };
        format!(
            "The result {verdict} the whole network's on {} of the phone alone: {by}",
            Printable(&agreement.processor)
        )
    }

    pub(super) fn json(&self) -> Value {
        let times = |summary: &Summary| {
            json!({
                "median_ns": summary.median,
                "ci95_ns": summary.median_ci95.map(|(low, high)| [low, high]),
            })
        };
        let agreement = self.agreement.as_ref().map(|it| {
            json!({
                "processor": it.processor,
                "elements": it.elements,
                "difference_ppb": it.difference_ppb,
                "equal": it.difference_ppb <= TOLERANCE_PPB,
            })
        });
        json!({
            "device": self.device,
            "phone_simulated": self.is_simulated,
            "inferences": self.total.count,
            "rest_ns": self.rest,
            "latency": times(&self.total),
            "phone": times(&self.phone),
            "link": times(&self.link),
            "upload": times(&self.upload),
            "queue": times(&self.queue),
            "server": times(&self.compute),
            "download": times(&self.download),
            "agreement": agreement,
            "not_compared": self.not_compared,
            "rounded_by": self.rounded_by,
        })
    }
}
