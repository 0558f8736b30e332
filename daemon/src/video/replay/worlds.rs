//! The worlds that are replayed: what a phone and a server measured, or the papers' tables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_planners::video::VideoStream;
use layerlab_planners::video::calibration::Calibrator;
use layerlab_planners::video::measured::MeasuredSettings;
use layerlab_planners::video::papers::{self, PaperSettings};
use layerlab_planners::video::replay::{ReplayBandwidth, ReplayWorld, VideoPolicy};
use layerlab_profiles::link::{LinkDirection, LinkDocument};
use layerlab_profiles::video::VideoDocument;

use super::{PolicyArg, ReplayArgs, Setting};
use crate::exit::{Code, ExitWith, Failure};
use crate::link::check::sound_link;
use crate::output;
use crate::video::check;
use crate::video::decision::interval;
use crate::video::measured::{Encoding, MeasuredSides, encoding};

/// What the world is made of.
#[derive(clap::Args)]
pub(super) struct WorldArgs {
    /// Replay the world of a paper's evaluation: the times and accuracies of its tables, and simulated frames
    #[arg(
        long,
        value_enum,
        conflicts_with = "phone",
        required_unless_present = "phone"
    )]
    paper: Option<PaperArg>,
    /// What `layerlab video measure` published of the phone
    #[arg(long, value_name = "FOLDER", requires = "server")]
    phone: Option<PathBuf>,
    /// The same of the server, of the same images
    #[arg(long, value_name = "FOLDER", requires = "phone")]
    server: Option<PathBuf>,
    /// The same of a compressed model on the phone's CPU, for the policy compress
    #[arg(long, value_name = "FOLDER", requires = "phone")]
    compressed: Option<PathBuf>,
    /// What else on the phone can answer the same images, such as another processor, as `layerlab video measure` published it:
    /// cbo-placements and FastVA's policies choose for each frame, the others answer as --phone does; may be given several times
    #[arg(long, value_name = "FOLDER", requires = "phone")]
    placement: Vec<PathBuf>,
    /// What `layerlab video calibrate` published of the phone's answers; one for --phone, and for each --placement
    #[arg(long, value_name = "FOLDER", requires = "phone")]
    calibration: Vec<PathBuf>,
    /// What frames are encoded as: png, or jpeg- and a quality that was measured, such as jpeg-75
    #[arg(long, value_name = "ENCODING", default_value = "png", value_parser = encoding, conflicts_with = "paper")]
    encoding: Encoding,
    /// Take the bandwidth of each 100 ms from the upload trace of this measured link, and its round trip, in the place of
    /// --bandwidth and --round-trip
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["bandwidth", "round_trip"])]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PaperArg {
    /// Tan and Cao, INFOCOM 2022: AlexNet on the NPU, ResNet-152 on the server
    Cbo,
    /// Tan and Cao, INFOCOM 2020: ResNet and SqueezeNet on both
    Fastva,
}

/// What worlds are made of.
pub(super) struct Worlds {
    source: Source,
    /// The link's bandwidth over time and its round trip, where they were recorded.
    trace: Option<(ReplayBandwidth, Duration)>,
}

enum Source {
    Paper(PaperArg),
    /// What was measured, and of a compressed model if that was.
    Measured(Box<MeasuredSides>, Option<Box<VideoDocument>>),
}

impl WorldArgs {
    pub(super) fn read(&self, policies: &[PolicyArg]) -> Result<Worlds, Failure> {
        let usage = |error| Err(Failure::new(Code::Usage, error));
        let source = match (&self.paper, &self.phone, &self.server) {
            (Some(paper), _, _) => {
                if *paper == PaperArg::Fastva && policies.contains(&PolicyArg::Compress) {
                    return usage(anyhow!(
                        "compress is a baseline of CBO's paper: replay it with --paper cbo, or with --compressed"
                    ));
                }
                Source::Paper(*paper)
            }
            (None, Some(phone), Some(server)) => {
                if self.compressed.is_none() && policies.contains(&PolicyArg::Compress) {
                    return usage(anyhow!(
                        "compress needs --compressed: what `layerlab video measure` published of a compressed model on the \
                         phone's CPU"
                    ));
                }
                let chooses = PolicyArg::Policy(VideoPolicy::CboPlacements);
                if self.placement.is_empty() && policies.contains(&chooses) {
                    return usage(anyhow!(
                        "cbo-placements chooses for each frame what on the phone answers it: give --placement, what \
                         `layerlab video measure` published of another processor or placement"
                    ));
                }
                if self.calibration.is_empty() {
                    output::note(
                        "layerlab: without --calibration, cbo believes confidences as they are; `layerlab video calibrate` makes one",
                    );
                }
                let sides = [phone.as_path(), server.as_path()];
                let (placements, calibrations) = (&self.placement, &self.calibration);
                let measured = MeasuredSides::read(sides, placements, calibrations, self.encoding)?;
                let compressed = self.compressed.as_deref().map(check::read).transpose()?;
                Source::Measured(Box::new(measured), compressed.map(Box::new))
            }
            _ => return usage(anyhow!("give --paper, or --phone and --server")),
        };
        let trace = match &self.trace {
            Some(folder) => Some(trace(folder)?),
            None => None,
        };
        Ok(Worlds { source, trace })
    }
}

/// The upload trace of a measured link, and its round trip.
fn trace(folder: &Path) -> Result<(ReplayBandwidth, Duration), Failure> {
    let wrong = |error| Failure::new(Code::Input, error);
    let link = sound_link(folder)?;
    let folder = folder.display();
    let upload = link.traces.iter();
    let upload: Vec<_> = upload
        .filter(|it| it.direction == LinkDirection::Upload)
        .collect();
    let Some(first) = upload.first() else {
        return Err(wrong(anyhow!(
            "the link in {folder} has no trace of the upload; measure it with --trace"
        )));
    };
    let interval = first.interval;
    if upload.iter().any(|it| it.interval != interval) {
        return Err(wrong(anyhow!(
            "the trace of the link in {folder} has intervals of different lengths; measure it again"
        )));
    }
    let bandwidth = ReplayBandwidth::Trace {
        interval,
        bytes: upload.iter().map(|it| it.bytes.as_bytes()).collect(),
    };
    Ok((bandwidth, round_trip(&link)?))
}

/// The round trip of a measured link, by the fit of its upload.
pub(in crate::video) fn round_trip(link: &LinkDocument) -> Result<Duration, Failure> {
    let upload = link.rows.iter();
    let upload = upload.filter(|row| row.direction == LinkDirection::Upload);
    let nanos = upload.map(|row| row.fit.round_trip.value.as_nanos()).next();
    // A fit may put the round trip below nothing.
    let nanos = nanos.unwrap_or(0).max(0);
    Ok(Duration::from_nanos(nanos.unsigned_abs()))
}

impl Worlds {
    /// What a policy meets in this setting.
    pub(super) fn world(
        &self,
        policy: PolicyArg,
        setting: Setting,
        args: &ReplayArgs,
    ) -> Result<ReplayWorld, Failure> {
        let (bandwidth, round_trip) = match &self.trace {
            Some((bandwidth, round_trip)) => (bandwidth.clone(), *round_trip),
            None => {
                let constant = ReplayBandwidth::Constant(setting.bandwidth_bps);
                (constant, setting.round_trip)
            }
        };
        let within = args.decision.within();
        let world = match &self.source {
            Source::Paper(paper) => {
                let settings = PaperSettings {
                    frames_per_second: setting.frames_per_second,
                    within,
                    bandwidth_bps: setting.bandwidth_bps,
                    round_trip: round_trip.into(),
                    frames: args.frames as usize,
                    seed: args.seed,
                };
                let world = match (policy, paper) {
                    (PolicyArg::Compress, _) => papers::compress_world(&settings),
                    (_, PaperArg::Cbo) => papers::cbo_world(&settings),
                    (_, PaperArg::Fastva) => papers::fastva_world(&settings),
                };
                ReplayWorld {
                    bandwidth,
                    ..world.exit_with(Code::Input)?
                }
            }
            Source::Measured(measured, compressed) => {
                let settings = MeasuredSettings {
                    stream: VideoStream::new(interval(setting.frames_per_second), within)
                        .exit_with(Code::Input)?,
                    bandwidth,
                    round_trip: round_trip.into(),
                    frames: args.frames as usize,
                    seed: args.seed,
                };
                match (policy, compressed) {
                    (PolicyArg::Compress, Some(compressed)) => {
                        measured.world_of(compressed, &Calibrator::Uncalibrated, &settings)?
                    }
                    (policy, _) => measured.world(policy.policy(), &settings)?,
                }
            }
        };
        Ok(world)
    }

    /// What it is, for people.
    pub(super) fn title(&self) -> String {
        match &self.source {
            Source::Paper(PaperArg::Cbo) => {
                "The tables of CBO's paper, and SIMULATED frames: no phone, no video".to_owned()
            }
            Source::Paper(PaperArg::Fastva) => {
                "The tables of FastVA's paper, and SIMULATED frames: no phone, no video".to_owned()
            }
            Source::Measured(measured, _) => measured.title("replayed"),
        }
    }
}
