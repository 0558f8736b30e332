//! `layerlab set`: an evaluation set from images and what is said about them.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_profiles::accuracy::{EvaluationSet, Metric, Preprocessing, Resize, Truth, Values};
use layerlab_profiles::sha256;
use serde::Serialize;

use super::campaign::publish_failure;
use super::exit::{Code, ExitWith, Failure};
use super::output;
use layerlab_campaign::evaluation_set::{Annotations, Loaded, SetError, Source};
use layerlab_campaign::publish::StagedFile;

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("annotations").required(true))]
pub(super) struct SetArgs {
    /// What the images show: a file in COCO's format for detection
    #[arg(long, value_name = "FILE", group = "annotations")]
    coco: Option<PathBuf>,
    /// What the images show: a folder with a PASCAL VOC file (XML) for each image
    #[arg(long, value_name = "FOLDER", group = "annotations")]
    voc: Option<PathBuf>,
    /// What the images show: a CSV file with the columns `image` and `label`, or `labels` separated by `;`
    #[arg(long, value_name = "FILE", group = "annotations")]
    labels: Option<PathBuf>,
    /// The folder that the images' file names start from; JPEG and PNG
    #[arg(long, value_name = "FOLDER")]
    images: PathBuf,
    /// The classes in the order of the network's answers [default: by category id with --coco, else alphabetical]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    classes: Option<Vec<String>>,
    /// Take the first so many images only
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    #[command(flatten)]
    metric: MetricArgs,
    /// What the set is called [default: the name of its file]
    #[arg(long)]
    name: Option<String>,
    /// Where to write the set
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace a file that is already there
    #[arg(long)]
    replace: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// How images become what the network takes.
#[derive(clap::Args)]
struct PreprocessingArgs {
    /// The network's input
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: (u32, u32),
    /// How images come to that size: stretch (whatever their ratio) or letterbox (as large as fits, on grey)
    #[arg(long, value_enum, default_value = "stretch")]
    resize: ResizeName,
    /// The order of the colours
    #[arg(long, value_enum, default_value = "rgb")]
    channels: Channels,
    /// Subtracted from pixels (0 to 255): a value for each channel, in the order of --channels
    #[arg(
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    mean: Vec<f32>,
    /// What pixels are multiplied by, after the mean was subtracted
    #[arg(long, default_value_t = 1.0, allow_hyphen_values = true)]
    scale: f32,
}

/// How answers are judged.
#[derive(clap::Args)]
struct MetricArgs {
    /// How answers are judged: top-1, top-5, multi-label (F1) or detection (F1 of YOLO's answers)
    #[arg(long, value_enum)]
    metric: MetricName,
    /// What a class or a box must reach to be found [default: 0.5 multi-label, 0.2 detection]
    #[arg(long, value_parser = share)]
    threshold: Option<f32>,
    /// Detection: cells along each side [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    grid: Option<u32>,
    /// Detection: boxes of each cell [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    boxes: Option<u32>,
    /// Detection: of boxes that overlap by more than this, the best stays [default: 0.5]
    #[arg(long, value_parser = share)]
    nms: Option<f32>,
    /// Detection: a box finds an object that it overlaps by at least this [default: 0.5]
    #[arg(long = "match", value_name = "MATCH", value_parser = share)]
    match_at_least: Option<f32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ResizeName {
    Stretch,
    Letterbox,
}

#[derive(Clone, Copy, ValueEnum)]
enum Channels {
    Rgb,
    Bgr,
    Gray,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MetricName {
    #[value(name = "top-1")]
    Top1,
    #[value(name = "top-5")]
    Top5,
    MultiLabel,
    Detection,
}

impl PreprocessingArgs {
    fn preprocessing(&self) -> Preprocessing {
        let channels = match self.channels {
            Channels::Rgb => "rgb",
            Channels::Bgr => "bgr",
            Channels::Gray => "gray",
        };
        Preprocessing {
            resize: match self.resize {
                ResizeName::Stretch => Resize::Stretch,
                ResizeName::Letterbox => Resize::Letterbox,
            },
            channels: channels.to_owned(),
            mean: self.mean.clone(),
            scale: self.scale,
        }
    }
}

impl MetricArgs {
    /// The metric; an option that means nothing to it is refused, not ignored.
    fn metric(&self) -> Result<Metric, Failure> {
        let top = matches!(self.metric, MetricName::Top1 | MetricName::Top5);
        let given = [
            (
                "--threshold",
                self.threshold.is_some() && top,
                "multi-label or detection",
            ),
            ("--grid", self.grid.is_some(), "detection"),
            ("--boxes", self.boxes.is_some(), "detection"),
            ("--nms", self.nms.is_some(), "detection"),
            ("--match", self.match_at_least.is_some(), "detection"),
        ];
        let misplaced = given.into_iter().find(|(_, given, _)| *given);
        if let Some((option, _, metrics)) =
            misplaced.filter(|_| self.metric != MetricName::Detection)
        {
            let error = anyhow!("{option} is for --metric {metrics}: leave it out");
            return Err(Failure::new(Code::Usage, error));
        }
        Ok(match self.metric {
            MetricName::Top1 => Metric::TopK { k: 1 },
            MetricName::Top5 => Metric::TopK { k: 5 },
            MetricName::MultiLabel => Metric::MultiLabel {
                threshold: self.threshold.unwrap_or(0.5),
            },
            // The grid and the boxes are those of YOLO's first version.
            MetricName::Detection => Metric::Detection {
                grid: self.grid.unwrap_or(7),
                boxes: self.boxes.unwrap_or(2),
                threshold: self.threshold.unwrap_or(0.2),
                suppress_above: self.nms.unwrap_or(0.5),
                match_at_least: self.match_at_least.unwrap_or(0.5),
            },
        })
    }
}

/// `224x224` as width and height.
fn size(text: &str) -> Result<(u32, u32), String> {
    // Of this size, one image is 800 MB: more is a slip of the pen.
    const LARGEST: u32 = 16_384;
    let sides = text.split_once('x').and_then(|(width, height)| {
        let side = |text: &str| {
            text.parse()
                .ok()
                .filter(|side| (1..=LARGEST).contains(side))
        };
        Some((side(width)?, side(height)?))
    });
    sides.ok_or_else(|| format!("write WIDTHxHEIGHT, each from 1 to {LARGEST}, such as 224x224"))
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.5".to_owned()),
    }
}

pub(super) fn run(args: &SetArgs) -> Result<(), Failure> {
    let source = args.source()?;
    let staged = StagedFile::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let loaded = source.load().map_err(set_failure)?;
    let bytes = loaded.set.to_bytes().exit_with(Code::Internal)?;
    staged.publish(&bytes).map_err(publish_failure)?;
    let summary = Summary::new(&loaded, &bytes);
    if args.json {
        return output::print_json(&summary);
    }
    output::print(summary.text())?;
    output::print(format_args!("Written to {}", args.out.display()))
}

impl SetArgs {
    fn source(&self) -> Result<Source, Failure> {
        let annotations = [
            self.coco.clone().map(Annotations::Coco),
            self.voc.clone().map(Annotations::Voc),
            self.labels.clone().map(Annotations::Labels),
        ];
        let annotations = annotations.into_iter().flatten().next().ok_or_else(|| {
            let error = anyhow!("say what the images show by --coco, --voc or --labels");
            Failure::new(Code::Usage, error)
        })?;
        let name = self.name.clone().unwrap_or_else(|| {
            let stem = self.out.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        });
        Ok(Source {
            annotations,
            images: self.images.clone(),
            size: self.preprocessing.size,
            preprocessing: self.preprocessing.preprocessing(),
            metric: self.metric.metric()?,
            classes: self.classes.clone(),
            // More than fits in memory is all.
            limit: self
                .limit
                .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            name,
        })
    }
}

fn set_failure(error: SetError) -> Failure {
    let code = match &error {
        SetError::Preprocessing(_)
        | SetError::Classes(_)
        | SetError::NoBoxes { .. }
        | SetError::NoPairs { .. } => Code::Usage,
        _ => Code::Input,
    };
    Failure::new(code, error)
}

/// What was made.
#[derive(Serialize)]
struct Summary {
    name: String,
    metric: Metric,
    images: usize,
    classes: usize,
    objects: Option<usize>,
    shape: Vec<usize>,
    values: &'static str,
    bytes: usize,
    sha256: String,
    skipped_crowd: usize,
}

impl Summary {
    fn new(loaded: &Loaded, bytes: &[u8]) -> Summary {
        let set = &loaded.set;
        Summary {
            name: set.name.clone(),
            metric: set.metric.clone(),
            images: set.answers(),
            classes: set.classes.len(),
            objects: objects(set),
            shape: set.shape.clone(),
            values: match set.values {
                Values::U8(_) => "u8",
                Values::F32(_) => "f32",
            },
            bytes: bytes.len(),
            sha256: sha256(bytes),
            skipped_crowd: loaded.skipped_crowd,
        }
    }

    fn text(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let objects = match self.objects {
            Some(objects) => format!(", {objects} objects"),
            None => String::new(),
        };
        let mut lines = vec![
            format!(
                "{}: {} images of {} classes{objects}",
                self.name, self.images, self.classes
            ),
            format!(
                "each {} {}, {} bytes in all",
                shape.join("x"),
                self.values,
                self.bytes
            ),
            format!("sha256 {}", self.sha256),
        ];
        if self.skipped_crowd > 0 {
            lines.push(format!(
                "{} annotations of crowds were left out",
                self.skipped_crowd
            ));
        }
        lines.join("\n")
    }
}

/// How many boxes there are; `None` where there can be none.
fn objects(set: &EvaluationSet) -> Option<usize> {
    let boxes = set.truths.iter().map(|truth| match truth {
        Truth::Boxes(boxes) => Some(boxes.len()),
        Truth::Labels(_) | Truth::Same(_) => None,
    });
    boxes.sum()
}
