//! How a set's answers are judged, as options say it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_profiles::accuracy::{Decoder, Metric, Priors, SsdOutputs};

use crate::exit::{Code, ExitWith, Failure};

/// How answers are judged.
#[derive(clap::Args)]
pub(super) struct MetricArgs {
    /// How answers are judged: top-1, top-5, multi-label (F1), detection (F1 of boxes), pixel-accuracy (the share of pixels
    /// whose class is right) or verification (the share of pairs that are told rightly)
    #[arg(long, value_enum)]
    metric: MetricName,
    /// What a class or a box must reach to be found, from 0 to 1, or two images' cosine similarity to be the same, from -1
    /// [default: 0.5 multi-label, 0.2 detection by yolo-v1, 0.25 by others]
    #[arg(long, value_parser = cosine, allow_hyphen_values = true)]
    threshold: Option<f32>,
    /// Verification: choose the threshold by this model's answers to the first half of the pairs, and judge by the others
    #[arg(long, value_name = "MODEL", conflicts_with = "threshold")]
    pub(super) calibrate: Option<PathBuf>,
    /// Detection: the form of the network's answers [default: yolo-v1]
    #[arg(long, value_enum)]
    decoder: Option<DecoderName>,
    /// Detection by yolo-v1: cells along each side [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    grid: Option<u32>,
    /// Detection by yolo-v1: boxes of each cell [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    boxes: Option<u32>,
    /// Detection by ssd: the order of the network's outputs [default: boxes-first]
    #[arg(long, value_enum)]
    outputs: Option<OutputsName>,
    /// Detection by ssd: boxes are relative to the priors in this JSON file; else they are corners
    #[arg(long, value_name = "FILE")]
    priors: Option<PathBuf>,
    /// Pixel accuracy: the width and height of the network's answer [default: those of --size]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = super::size)]
    answer_size: Option<(u32, u32)>,
    /// Detection: of boxes that overlap by more than this, the best stays [default: 0.5]
    #[arg(long, value_parser = share)]
    nms: Option<f32>,
    /// Detection: a box finds an object that it overlaps by at least this [default: 0.5]
    #[arg(long = "match", value_name = "MATCH", value_parser = share)]
    match_at_least: Option<f32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MetricName {
    #[value(name = "top-1")]
    Top1,
    #[value(name = "top-5")]
    Top5,
    MultiLabel,
    Detection,
    PixelAccuracy,
    Verification,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DecoderName {
    /// A grid of cells, as YOLO's first version
    YoloV1,
    /// One output 1 x N x (5 + classes), as YOLOv5 is exported
    YoloV5,
    /// One output 1 x (4 + classes) x N, as YOLOv8 is exported
    YoloV8,
    /// Two outputs, boxes 1 x N x 4 and scores 1 x N x (1 + classes) with the background first
    Ssd,
}

#[derive(Clone, Copy, ValueEnum)]
enum OutputsName {
    BoxesFirst,
    ScoresFirst,
}

impl MetricArgs {
    /// The metric of images that become this wide and this high; an option that means nothing to it is refused, not
    /// ignored.
    pub(super) fn metric(&self, size: (u32, u32)) -> Result<Metric, Failure> {
        if let Some((option, metrics)) = self.misplaced() {
            return Err(usage(&format!(
                "{option} is for --metric {metrics}: leave it out"
            )));
        }
        Ok(match self.metric {
            MetricName::Top1 => Metric::TopK { k: 1 },
            MetricName::Top5 => Metric::TopK { k: 5 },
            MetricName::MultiLabel => Metric::MultiLabel {
                threshold: self.share_or(0.5)?,
            },
            MetricName::Detection => self.detection(size)?,
            MetricName::PixelAccuracy => {
                let (width, height) = self.answer_size.unwrap_or(size);
                Metric::PixelAccuracy { width, height }
            }
            MetricName::Verification => Metric::Verification {
                threshold: match (self.threshold, &self.calibrate) {
                    (Some(threshold), _) => threshold,
                    // Until one is chosen.
                    (None, Some(_)) => 0.0,
                    (None, None) => {
                        return Err(usage(
                            "verification needs a threshold: give --threshold, or a model to choose one by --calibrate",
                        ));
                    }
                },
            },
        })
    }

    fn detection(&self, (width, height): (u32, u32)) -> Result<Metric, Failure> {
        let suppress_above = self.nms.unwrap_or(0.5);
        let match_at_least = self.match_at_least.unwrap_or(0.5);
        let decoder = match self.decoder() {
            // The grid and the boxes are those of YOLO's first version.
            DecoderName::YoloV1 => {
                return Ok(Metric::Detection {
                    grid: self.grid.unwrap_or(7),
                    boxes: self.boxes.unwrap_or(2),
                    threshold: self.share_or(0.2)?,
                    suppress_above,
                    match_at_least,
                });
            }
            DecoderName::YoloV5 => Decoder::YoloV5 { width, height },
            DecoderName::YoloV8 => Decoder::YoloV8 { width, height },
            DecoderName::Ssd => Decoder::Ssd {
                outputs: match self.outputs {
                    Some(OutputsName::ScoresFirst) => SsdOutputs::ScoresFirst,
                    Some(OutputsName::BoxesFirst) | None => SsdOutputs::BoxesFirst,
                },
                priors: self.priors.as_deref().map(read_priors).transpose()?,
            },
        };
        if let (Some(fault), Some(path)) = (decoder.fault(), &self.priors) {
            let error = anyhow!("`{}`: {fault}; correct it", path.display());
            return Err(Failure::new(Code::Input, error));
        }
        Ok(Metric::DecodedDetection {
            decoder,
            threshold: self.share_or(0.25)?,
            suppress_above,
            match_at_least,
        })
    }

    fn decoder(&self) -> DecoderName {
        self.decoder.unwrap_or(DecoderName::YoloV1)
    }

    /// The first option that the metric does not know, and what knows it.
    fn misplaced(&self) -> Option<(&'static str, &'static str)> {
        let detection = self.metric == MetricName::Detection;
        let by = |decoder| detection && self.decoder() == decoder;
        let pixels = self.metric == MetricName::PixelAccuracy;
        let no_threshold = pixels || matches!(self.metric, MetricName::Top1 | MetricName::Top5);
        let (grid, ssd) = (by(DecoderName::YoloV1), by(DecoderName::Ssd));
        let options = [
            (
                "--threshold",
                self.threshold.is_some() && no_threshold,
                "multi-label, detection or verification",
            ),
            (
                "--calibrate",
                self.calibrate.is_some() && self.metric != MetricName::Verification,
                "verification",
            ),
            (
                "--answer-size",
                self.answer_size.is_some() && !pixels,
                "pixel-accuracy",
            ),
            (
                "--decoder",
                self.decoder.is_some() && !detection,
                "detection",
            ),
            ("--nms", self.nms.is_some() && !detection, "detection"),
            (
                "--match",
                self.match_at_least.is_some() && !detection,
                "detection",
            ),
            (
                "--grid",
                self.grid.is_some() && !grid,
                "detection by yolo-v1",
            ),
            (
                "--boxes",
                self.boxes.is_some() && !grid,
                "detection by yolo-v1",
            ),
            (
                "--outputs",
                self.outputs.is_some() && !ssd,
                "detection --decoder ssd",
            ),
            (
                "--priors",
                self.priors.is_some() && !ssd,
                "detection --decoder ssd",
            ),
        ];
        let misplaced = options.into_iter().find(|(_, misplaced, _)| *misplaced);
        misplaced.map(|(option, _, metrics)| (option, metrics))
    }

    /// The threshold of a share.
    fn share_or(&self, default: f32) -> Result<f32, Failure> {
        match self.threshold.unwrap_or(default) {
            share if share >= 0.0 => Ok(share),
            _ => Err(usage(
                "a --threshold below 0 is for --metric verification: give one from 0 to 1",
            )),
        }
    }
}

fn usage(sentence: &str) -> Failure {
    Failure::new(Code::Usage, anyhow!("{sentence}"))
}

/// The priors of the JSON file at `path`.
fn read_priors(path: &Path) -> Result<Priors, Failure> {
    let named = path.display();
    let text =
        fs::read(path).map_err(|reason| anyhow!("cannot read `{named}`: {reason}; check the path"));
    let priors = text.and_then(|text| {
        serde_json::from_slice(&text).map_err(|reason| {
            anyhow!(
                "`{named}` holds no priors: {reason}; write them as docs/method.md describes, §6"
            )
        })
    });
    priors.exit_with(Code::Input)
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.5".to_owned()),
    }
}

/// A number from -1 to 1.
fn cosine(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(cosine) if (-1.0..=1.0).contains(&cosine) => Ok(cosine),
        _ => Err(
            "write a number from 0 to 1, such as 0.5, or of verification from -1 to 1".to_owned(),
        ),
    }
}
