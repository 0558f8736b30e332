//! The worlds that are replayed: what a phone and a server measured, or the papers' tables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_planners::video::VideoStream;
use layerlab_planners::video::calibration::{CalibrationDocument, Calibrator};
use layerlab_planners::video::measured::{MeasuredSettings, MeasuredVideo};
use layerlab_planners::video::papers::{self, PaperSettings};
use layerlab_planners::video::replay::{ReplayBandwidth, ReplayWorld, VideoPolicy};
use layerlab_profiles::Nanos;
use layerlab_profiles::check::Severity;
use layerlab_profiles::link::{LinkDirection, LinkDocument, check_link_directory};
use layerlab_profiles::video::{FrameFormat, VideoDocument};

use super::{PolicyArg, ReplayArgs, Setting};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::video::calibrate::read_calibration;
use crate::video::check;

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
    /// What `layerlab video calibrate` published of the phone's answers
    #[arg(long, value_name = "FOLDER", requires = "phone")]
    calibration: Option<PathBuf>,
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

type Encoding = (FrameFormat, Option<u8>);

fn encoding(text: &str) -> Result<Encoding, String> {
    let quality = |text: &str| text.parse().ok().filter(|it| (1..=100).contains(it));
    let jpeg = text.strip_prefix("jpeg-").and_then(quality);
    match (text, jpeg) {
        ("png", _) => Ok((FrameFormat::Png, None)),
        (_, Some(quality)) => Ok((FrameFormat::Jpeg, Some(quality))),
        _ => Err("write png, or jpeg- and a quality from 1 to 100, such as jpeg-75".to_owned()),
    }
}

/// What worlds are made of.
pub(super) struct Worlds {
    source: Source,
    /// The link's bandwidth over time and its round trip, where they were recorded.
    trace: Option<(ReplayBandwidth, Duration)>,
}

enum Source {
    Paper(PaperArg),
    Measured(Box<Measured>),
}

struct Measured {
    phone: VideoDocument,
    server: VideoDocument,
    compressed: Option<VideoDocument>,
    calibration: Option<CalibrationDocument>,
    encoding: Encoding,
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
                Source::Measured(Box::new(self.measured(phone, server)?))
            }
            _ => return usage(anyhow!("give --paper, or --phone and --server")),
        };
        let trace = match &self.trace {
            Some(folder) => Some(trace(folder)?),
            None => None,
        };
        Ok(Worlds { source, trace })
    }

    fn measured(&self, phone: &Path, server: &Path) -> Result<Measured, Failure> {
        let phone = check::read(phone)?;
        let calibration = match &self.calibration {
            None => {
                output::note(
                    "layerlab: without --calibration, cbo believes confidences as they are; `layerlab video calibrate` makes one",
                );
                None
            }
            Some(folder) => {
                let calibration = read_calibration(folder)?;
                if let Some(unlike) = calibration.unlike(&phone) {
                    let error = anyhow!(
                        "the calibration in {} was fitted on {unlike}; calibrate what --phone measured",
                        folder.display()
                    );
                    return Err(Failure::new(Code::Input, error));
                }
                Some(calibration)
            }
        };
        Ok(Measured {
            phone,
            server: check::read(server)?,
            compressed: match &self.compressed {
                Some(folder) => Some(check::read(folder)?),
                None => None,
            },
            calibration,
            encoding: self.encoding,
        })
    }
}

/// The upload trace of a measured link, and its round trip.
fn trace(folder: &Path) -> Result<(ReplayBandwidth, Duration), Failure> {
    let wrong = |error| Failure::new(Code::Input, error);
    let (link, findings) = check_link_directory(folder).exit_with(Code::Input)?;
    let folder = folder.display();
    let mut errors = findings.iter().filter(|it| it.severity == Severity::Error);
    if let Some(error) = errors.next() {
        let (sentence, remedy) = (&error.sentence, error.remedy);
        let error = anyhow!("the link in {folder} contradicts itself: {sentence}; {remedy}");
        return Err(Failure::new(Code::Check, error));
    }
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

fn round_trip(link: &LinkDocument) -> Result<Duration, Failure> {
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
        let within = Duration::from(args.deadline).into();
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
            Source::Measured(measured) => {
                let interval = Nanos::from_nanos((1e9 / setting.frames_per_second) as u64);
                let settings = MeasuredSettings {
                    stream: VideoStream::new(interval, within).exit_with(Code::Input)?,
                    bandwidth,
                    round_trip: round_trip.into(),
                    frames: args.frames as usize,
                    seed: args.seed,
                };
                measured.world(policy, &settings)?
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
            Source::Measured(measured) => {
                let said = |video: &VideoDocument| {
                    let header = &video.header;
                    format!("{} on {}", header.model.name, header.device.name)
                };
                let headers = [&measured.phone, &measured.server].map(|video| &video.header);
                let mark = layerlab_campaign::plot::title_mark(
                    headers.iter().any(|header| header.device.simulated),
                    headers.iter().any(|header| header.processor.emulated),
                );
                format!(
                    "{} beside {}, replayed{mark}",
                    said(&measured.phone),
                    said(&measured.server)
                )
            }
        }
    }
}

impl Measured {
    fn world(
        &self,
        policy: PolicyArg,
        settings: &MeasuredSettings,
    ) -> Result<ReplayWorld, Failure> {
        let phone = match (policy, &self.compressed) {
            (PolicyArg::Compress, Some(compressed)) => compressed,
            _ => &self.phone,
        };
        let (format, quality) = self.encoding;
        let video = MeasuredVideo {
            phone,
            server: &self.server,
            format,
            quality,
        };
        let calibrated = match policy {
            PolicyArg::Policy(VideoPolicy::CboUncalibrated) | PolicyArg::Compress => None,
            _ => self
                .calibration
                .as_ref()
                .and_then(CalibrationDocument::best),
        };
        let uncalibrated = Calibrator::Uncalibrated;
        let calibrator = calibrated.map_or(&uncalibrated, |best| &best.calibrator);
        video.world(calibrator, settings).exit_with(Code::Input)
    }
}
