//! `layerlab set`: an evaluation set from images and what is said about them.

mod metric;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_profiles::accuracy::{EvaluationSet, Metric, Preprocessing, Resize, Truth, Values};
use layerlab_profiles::sha256;
use serde::Serialize;

use super::campaign::publish_failure;
use super::exit::{Code, ExitWith, Failure};
use super::model_options::DimArgs;
use super::output;
use layerlab_campaign::ModelFile;
use layerlab_campaign::evaluation_set::{Annotations, Loaded, SetError, Source, calibrate};
use layerlab_campaign::publish::StagedFile;
use metric::MetricArgs;

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
    /// Which images show the same person: a text file in the format of LFW's pairs.txt, beside folders of images such as
    /// Ada/Ada_0001.jpg
    #[arg(
        long,
        value_name = "FILE",
        group = "annotations",
        conflicts_with = "classes"
    )]
    pairs: Option<PathBuf>,
    /// What each pixel shows: a folder with a label image (PNG) for each image, of its name, whose values are places in
    /// --classes, and 255 where nothing counts
    #[arg(long, value_name = "FOLDER", group = "annotations")]
    masks: Option<PathBuf>,
    /// The folder that the images' file names start from; JPEG and PNG
    #[arg(long, value_name = "FOLDER")]
    images: PathBuf,
    /// The classes in the order of the network's answers [default: by category id with --coco, else alphabetical]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    classes: Option<Vec<String>>,
    /// Take the first so many images, or pairs, only
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    #[command(flatten)]
    metric: MetricArgs,
    #[command(flatten)]
    dims: DimArgs,
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

pub(super) fn run(args: &SetArgs) -> Result<(), Failure> {
    let source = args.source()?;
    let model = args.metric.calibrate.as_deref().map(|path| {
        let model = ModelFile::open(path, &args.dims.map());
        model.exit_with(Code::Input)
    });
    let model = model.transpose()?;
    let staged = StagedFile::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let mut loaded = source.load().map_err(set_failure)?;
    let calibration = match &model {
        Some(model) => {
            let calibrated = calibrate(&loaded, &model.network).map_err(set_failure)?;
            loaded.set = calibrated.set;
            Some(Calibration {
                model: model.network.name().to_owned(),
                model_sha256: model.sha256.clone(),
                pairs: calibrated.pairs,
                right: calibrated.right,
            })
        }
        None => None,
    };
    let bytes = loaded.set.to_bytes().exit_with(Code::Internal)?;
    staged.publish(&bytes).map_err(publish_failure)?;
    let summary = Summary::new(&loaded, calibration, &bytes);
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
            self.pairs.clone().map(Annotations::Pairs),
            self.masks.clone().map(Annotations::Masks),
        ];
        let annotations = annotations.into_iter().flatten().next().ok_or_else(|| {
            let error =
                anyhow!("say what the images show by --coco, --voc, --labels, --pairs or --masks");
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
            metric: self.metric.metric(self.preprocessing.size)?,
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
        | SetError::NoPairs { .. }
        | SetError::OnlyPairs { .. }
        | SetError::NoMasks { .. }
        | SetError::OnlyMasks { .. }
        | SetError::MasksWithoutClasses { .. } => Code::Usage,
        _ => Code::Input,
    };
    Failure::new(code, error)
}

/// On what the threshold of verification was chosen.
#[derive(Serialize)]
struct Calibration {
    model: String,
    model_sha256: String,
    pairs: usize,
    right: u64,
}

/// What was made.
#[derive(Serialize)]
struct Summary {
    name: String,
    metric: Metric,
    images: usize,
    pairs: Option<usize>,
    calibration: Option<Calibration>,
    classes: usize,
    objects: Option<usize>,
    shape: Vec<usize>,
    values: &'static str,
    bytes: usize,
    sha256: String,
    skipped_crowd: usize,
}

impl Summary {
    fn new(loaded: &Loaded, calibration: Option<Calibration>, bytes: &[u8]) -> Summary {
        let set = &loaded.set;
        Summary {
            name: set.name.clone(),
            metric: set.metric.clone(),
            images: set.image_count(),
            pairs: matches!(set.metric, Metric::Verification { .. }).then(|| set.answers()),
            calibration,
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
        let (name, images) = (&self.name, self.images);
        let mut lines = vec![
            match self.pairs {
                Some(pairs) => format!("{name}: {pairs} pairs of {images} images"),
                None => format!(
                    "{name}: {images} images of {} classes{objects}",
                    self.classes
                ),
            },
            format!(
                "each {} {}, {} bytes in all",
                shape.join("x"),
                self.values,
                self.bytes
            ),
            format!("sha256 {}", self.sha256),
        ];
        if let (Some(calibration), Metric::Verification { threshold }) =
            (&self.calibration, &self.metric)
        {
            let Calibration {
                model,
                pairs,
                right,
                ..
            } = calibration;
            lines.push(format!(
                "threshold {threshold:.4}, chosen on {pairs} other pairs, of which {model} tells {right} rightly by it"
            ));
        }
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
        Truth::Labels(_) | Truth::Same(_) | Truth::Pixels(_) => None,
    });
    boxes.sum()
}
