//! `layerlab video stream`: a policy decides live about frames on a device beside an edge server. Its replay stands beside that.

mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget};
use layerlab_campaign::{ModelFile, SetFile, WrittenShape};
use layerlab_edge::{PictureRequest, Request as EdgeRequest, Token};
use layerlab_planners::video::fastva::Scheduled;
use layerlab_planners::video::live::LiveSettings;
use layerlab_planners::video::measured::MeasuredSettings;
use layerlab_planners::video::replay::{ReplayBandwidth, VideoPolicy, replay_policy};
use layerlab_planners::video::{AgreementWatch, VideoStream};
use layerlab_profiles::Bytes;
use layerlab_profiles::link::LinkShape;
use layerlab_protocol::{FrameStream, Request, Response, ShapedLink, StreamedFrame};

use self::report::Streamed;
use super::decision::{DecisionArgs, frame_rate, interval, weight};
use super::measured::{Encoding, MeasuredSides, encoding};
use super::replay::worlds::round_trip;
use super::replay::{PolicyArg, Replayed, Setting};
use crate::adb::{AdbArgs, PhoneArgs};
use crate::edge_server::TokenArgs;
use crate::errand::{Errand, ErrandTo};
use crate::evaluate::same_device;
use crate::exit::{Code, ExitWith, Failure};
use crate::link::check::sound_link;
use crate::model_options::{DimArgs, open_with_twin};
use crate::output;

#[derive(clap::Args)]
pub(crate) struct StreamArgs {
    /// The policy: cbo, cbo-uncalibrated, cbo-by-class, cbo-local, server, max-accuracy (FastVA), max-utility, offload, local or deep-decision
    #[arg(long, value_name = "NAME", value_parser = online)]
    policy: VideoPolicy,
    /// The device, as `layerlab devices` lists it: the one that --phone measured
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The model that --phone measured
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Its quantised twin, if it was measured with one
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    /// The evaluation set that --phone measured: the frames that both sides have measured in all forms, those of the test half,
    /// are shown again and again
    #[arg(long, value_name = "FILE")]
    set: PathBuf,
    /// What `layerlab video measure` published of the device
    #[arg(long, value_name = "FOLDER")]
    phone: PathBuf,
    /// The same of the server, of the same images
    #[arg(long, value_name = "FOLDER")]
    server: PathBuf,
    /// What `layerlab video calibrate` published of the device's answers; cbo needs it
    #[arg(long, value_name = "FOLDER")]
    calibration: Option<PathBuf>,
    /// Where `layerlab edge-server --model` listens with the server's model, as the device reaches it
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,
    /// Have the phone reach a server on this machine through adb, as `adb reverse` does
    #[arg(long)]
    tunnel: bool,
    #[command(flatten)]
    token: TokenArgs,
    /// The link to the server, as `layerlab link measure` published it: what the policy believes. One that was measured with
    /// --shape is slowed down as then
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with = "shape",
        required_unless_present = "shape"
    )]
    link: Option<PathBuf>,
    /// Slow a fast link down to this bandwidth and round trip, such as 5mbit,75ms, which the policy believes
    #[arg(long, value_name = "BANDWIDTH,TIME")]
    shape: Option<WrittenShape>,
    /// What frames are encoded as: png, or jpeg- and a quality that was measured, such as jpeg-75
    #[arg(long, value_name = "ENCODING", default_value = "png", value_parser = encoding)]
    encoding: Encoding,
    /// Frames per second
    #[arg(long, value_name = "NUMBER", default_value = "30", value_parser = frame_rate)]
    fps: f64,
    /// How many frames come
    #[arg(long, value_name = "COUNT", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    #[command(flatten)]
    decision: DecisionArgs,
    /// What FastVA's policies maximise: frames per second plus so many times the accuracy
    #[arg(long, value_name = "NUMBER", value_parser = weight)]
    alpha: Option<f64>,
    /// What a simulated device draws from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what became of each frame into this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    phone_options: PhoneArgs,
    #[command(flatten)]
    dims: DimArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A policy that decides about frames as they come.
fn online(name: &str) -> Result<VideoPolicy, String> {
    let policy: VideoPolicy = name
        .parse()
        .map_err(|bad: layerlab_planners::video::replay::BadPolicy| bad.to_string())?;
    match policy.not_live() {
        None => Ok(policy),
        Some(why) => Err(format!(
            "{name} {why}; replay it with `layerlab video replay`"
        )),
    }
}

/// What is to be streamed, read and found to belong together before the device is touched.
struct Prepared<'a> {
    args: &'a StreamArgs,
    sides: MeasuredSides,
    model: ModelFile,
    set: SetFile,
    /// By their places in the set.
    images: Vec<u64>,
    token: Token,
    shape: Option<LinkShape>,
    settings: LiveSettings,
    watch: AgreementWatch,
    replayed: Replayed,
}

pub(super) async fn run(
    args: &StreamArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let prepared = args.prepare()?;
    if let Some(file) = &args.csv {
        refuse_unwritable(file)?;
    }
    let streamed = prepared.stream(agent, adb).await?;
    if let Some(file) = &args.csv {
        let bytes = streamed.csv().exit_with(Code::Internal)?;
        std::fs::write(file, bytes)
            .map_err(|error| anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output)?;
    }
    if let Some(lost) = streamed.lost() {
        output::note(format_args!(
            "layerlab: without the server from then on: {lost}"
        ));
    }
    match args.json {
        true => output::print_json(&streamed.json()),
        false => output::print(streamed.text()),
    }
}

/// A stream takes a while: that its table cannot be written is better known before.
fn refuse_unwritable(file: &Path) -> Result<(), Failure> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let why = match (file.is_dir(), folder.is_none_or(Path::is_dir)) {
        (true, _) => "it is a folder; name a file",
        (false, false) => "its folder is not there; make it, or name another",
        (false, true) => return Ok(()),
    };
    let error = anyhow!("cannot write {}: {why}", file.display());
    Err(Failure::new(Code::Output, error))
}

impl StreamArgs {
    fn prepare(&self) -> Result<Prepared<'_>, Failure> {
        let usage = |error| Err(Failure::new(Code::Usage, error));
        if self.policy == VideoPolicy::MaxUtility && self.alpha.is_none() {
            return usage(anyhow!(
                "max-utility weighs accuracy against frames per second: give --alpha, such as --alpha 50"
            ));
        }
        let needs_calibration = [VideoPolicy::Cbo, VideoPolicy::CboByClass];
        if needs_calibration.contains(&self.policy) && self.calibration.is_none() {
            return usage(anyhow!(
                "{} decides by calibrated confidences: give --calibration, as `layerlab video calibrate` makes it, or choose \
                 cbo-uncalibrated",
                self.policy
            ));
        }
        let folders = [self.phone.as_path(), self.server.as_path()];
        let sides = MeasuredSides::read(folders, &[], self.calibration.as_slice(), self.encoding)?;
        let model = open_with_twin(&self.model, self.quantised.as_deref(), &self.dims.map())?;
        let set = SetFile::open(&self.set).exit_with(Code::Input)?;
        refuse_others(&sides, &model, &set)?;
        let (bandwidth_bps, round_trip, shape) = self.believed()?;
        let video = sides.video();
        let images = video.images().exit_with(Code::Input)?;
        let stream = VideoStream::new(interval(self.fps), self.decision.within());
        let settings = MeasuredSettings {
            stream: stream.exit_with(Code::Usage)?,
            bandwidth: ReplayBandwidth::Constant(bandwidth_bps),
            round_trip: round_trip.into(),
            frames: self.frames as usize,
            seed: self.seed,
        };
        // A live phone prepares all forms of a frame before it decides about it, and sends what is said of a picture with it.
        let prepare = video.prepare_all();
        let beside = request_bytes(&sides)?;
        let mut world = sides.world(self.policy, &settings)?;
        world.round_trip = settings.round_trip + prepare;
        for size in world.frames.iter_mut().flat_map(|frame| &mut frame.sizes) {
            *size = *size + beside;
        }
        let policy = self.decision.settings(self.alpha);
        let replayed = Replayed {
            policy: PolicyArg::Policy(self.policy),
            setting: Setting {
                bandwidth_bps,
                round_trip,
                frames_per_second: self.fps,
                alpha: self.alpha,
            },
            results: replay_policy(&world, self.policy, &policy).exit_with(Code::Input)?,
            world,
        };
        refuse_hopeless(&replayed, self.decision.deadline)?;
        let models = &replayed.world.models;
        let (Some(local), Some(remote)) = (models.local().first(), models.remote().first()) else {
            let error = anyhow!("a measured world has no models: please report this");
            return Err(Failure::new(Code::Internal, error));
        };
        let calibrator = sides.calibrator(self.policy);
        let video = sides.video();
        let watch = video.agreement(calibrator).exit_with(Code::Input)?;
        let settings = LiveSettings {
            policy: self.policy,
            settings: policy,
            frames: self.frames as usize,
            interval: settings.stream.interval(),
            within: settings.stream.within(),
            bandwidth_bps,
            round_trip: settings.round_trip,
            prepare,
            local: local.clone(),
            remote: remote.clone(),
            confidence: sides.phone.header.confidence,
            calibrator: calibrator.clone(),
            by_class: match self.policy {
                VideoPolicy::CboByClass => {
                    let by_class = video.server_by_class(calibrator, &remote.accuracies);
                    by_class.exit_with(Code::Input)?
                }
                _ => Vec::new(),
            },
        };
        Ok(Prepared {
            args: self,
            token: self.token.read()?,
            sides,
            model,
            set,
            images,
            shape,
            settings,
            watch: AgreementWatch::new(watch),
            replayed,
        })
    }

    /// The link's bandwidth, its round trip, and what it is slowed down to, if it is.
    fn believed(&self) -> Result<(u64, Duration, Option<LinkShape>), Failure> {
        if let Some(shape) = self.shape {
            let shape = shape.published();
            return Ok((shape.bandwidth_bps, shape.round_trip_ns.into(), Some(shape)));
        }
        let folder = self.link.as_deref().unwrap_or(Path::new(""));
        let link = sound_link(folder)?;
        let Some(upload) = link.rows.first() else {
            let error = anyhow!(
                "the link in {} has no upload; measure it again",
                folder.display()
            );
            return Err(Failure::new(Code::Input, error));
        };
        Ok((
            upload.fit.bandwidth_bps,
            round_trip(&link)?,
            link.header.shape,
        ))
    }
}

/// Refuses a model or a set that was not measured.
fn refuse_others(sides: &MeasuredSides, model: &ModelFile, set: &SetFile) -> Result<(), Failure> {
    let measured = &sides.phone.header;
    let other = if !measured.placement.is_empty() {
        "--phone measured a placement, and a streaming phone runs all layers on one processor; replay it with `layerlab video \
         replay --placement`"
    } else if model.source_sha256 != measured.model.sha256 {
        "--model is another model than --phone measured; give that one, or measure this one first"
    } else if model.quantised_sha256() != measured.model.quantised_sha256 {
        "--quantised is not what --phone measured the model with; give that twin, or none if there was none"
    } else if set.sha256 != measured.set.sha256 {
        "--set is another set than --phone measured; give that one, or measure this one first"
    } else {
        return Ok(());
    };
    Err(Failure::new(Code::Input, anyhow!(other)))
}

/// Refuses what its own replay says is of no use.
fn refuse_hopeless(replayed: &Replayed, deadline: humantime::Duration) -> Result<(), Failure> {
    let error = match &replayed.results {
        Scheduled::Infeasible { frame } => anyhow!(
            "{} must answer every frame, and would be late from frame {frame} on: give fewer --fps or a longer --deadline",
            replayed.policy.name()
        ),
        Scheduled::Planned(results) if results.missed_share() >= 1.0 => anyhow!(
            "{} would answer no frame within {deadline} over this link: give a longer --deadline, a faster link, or another policy",
            replayed.policy.name()
        ),
        Scheduled::Planned(_) => return Ok(()),
    };
    Err(Failure::new(Code::NoPlan, error))
}

/// How many bytes a frame has on the link beside its picture.
fn request_bytes(sides: &MeasuredSides) -> Result<Bytes, Failure> {
    let server = &sides.server.header;
    let (forms, preprocessing) = (sides.video().forms(), &sides.phone.header.set.preprocessing);
    let form = forms
        .first()
        .ok_or_else(|| anyhow!("there are no forms: please report this"));
    let asked = PictureRequest {
        // Whichever it is, it has as many bytes.
        model: [0; 32],
        processor: server.processor.name.clone(),
        format: form.exit_with(Code::Internal)?.format,
        channels: preprocessing.channels.clone(),
        mean: preprocessing.mean.clone(),
        scale: preprocessing.scale,
        bytes: 0,
    };
    let request = EdgeRequest::Picture(asked).encode();
    Ok(Bytes::from_bytes(request.len() as u64))
}

impl<'a> Prepared<'a> {
    /// Streams. Dropping the future ends that.
    async fn stream(self, agent: Option<PathBuf>, adb: &AdbArgs) -> Result<Streamed, Failure> {
        let args = self.args;
        let to = ErrandTo {
            device: &args.device,
            server: &args.connect,
            tunnel: args.tunnel,
            again: "stream again",
        };
        let files = self.model.files().chain([self.set.file()]);
        let mut errand = Errand::prepare(to, files, agent, adb, &args.phone_options).await?;
        let found = errand.found().clone();
        same_device(&self.sides.phone.header.device, &found, "--device")?;
        let stream = self.asked(errand.server().to_owned())?;
        errand.ask(&Request::StreamFrames { stream }).await?;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let mut frames: Vec<StreamedFrame> = Vec::new();
        loop {
            let heard = errand.hear(|done, of| {
                bar.set_length(of);
                bar.set_position(done);
            });
            match heard.await? {
                Response::StreamedFrames { frames: next } => frames.extend(next),
                Response::StreamEnded {
                    frames: sent,
                    slower,
                    lost,
                    ..
                } if sent == frames.len() as u64 && sent == u64::from(args.frames) => {
                    bar.finish_and_clear();
                    let streamed = Streamed::new(self, &found, frames, (slower, lost));
                    return streamed.exit_with(Code::Internal);
                }
                _ => return Err(errand.other_answer()),
            }
        }
    }

    fn asked(&self, server: String) -> Result<FrameStream, Failure> {
        let (phone, beside) = (&self.sides.phone.header, &self.sides.server.header);
        Ok(FrameStream {
            server,
            token: self.token.to_hex(),
            model_sha256: self.model.sha256.clone(),
            quantised_sha256: self.model.quantised_sha256(),
            processor: phone.processor.name.clone(),
            server_model_sha256: beside.model.sha256.clone(),
            server_processor: beside.processor.name.clone(),
            set_sha256: self.set.sha256.clone(),
            images: self.images.clone(),
            forms: self.sides.video().forms(),
            settings: serde_json::to_string(&self.settings).exit_with(Code::Internal)?,
            seed: self.args.seed,
            shape: self.shape.as_ref().map(|shape| ShapedLink {
                bandwidth_bps: shape.bandwidth_bps,
                round_trip_ns: shape.round_trip_ns,
            }),
        })
    }
}
