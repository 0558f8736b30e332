//! An evaluation set as it is sent to devices: labelled images, preprocessed once on the host.
//!
//! The file is one line of JSON, which says everything but the pixels, and then the values of all images one
//! after the other, each in the order of `shape`. Version 2 has what version 1 does not know: images that several pairs
//! share, detectors after YOLO's first version, and classes of pixels. A set without them is written as version 1.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Metric, PixelRun};

/// The value of the field `format`.
const FORMAT: &str = "layerlab-evaluation-set";

/// The newest version of the format.
const VERSION: u32 = 2;

/// Labelled images, ready to be fed to a network.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationSet {
    /// A short name that a person recognises.
    pub name: String,
    /// How answers are judged.
    pub metric: Metric,
    /// The names of the classes; a class is a place in this list, counted from 0.
    pub classes: Vec<String>,
    /// How the images became tensors.
    pub preprocessing: Preprocessing,
    /// The shape of one image: channels, height, width; the network's input without its batch dimension.
    pub shape: Vec<usize>,
    /// What is true of each answer's image, or of its pair of images.
    pub truths: Vec<Truth>,
    /// Of verification, the two images of each answer, by their places; empty where each answer has images of its own.
    pub pairs: Vec<[u32; 2]>,
    /// The values of all images.
    pub values: Values,
}

/// What is true of an image, or of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The classes that it shows.
    Labels(Vec<u32>),
    /// The objects that it shows.
    Boxes(Vec<ObjectBox>),
    /// What each pixel of an answer shows, row by row.
    Pixels(Vec<PixelRun>),
    /// Whether a pair shows the same.
    Same(bool),
}

/// One object in an image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectBox {
    /// What it is.
    pub class: u32,
    /// Its left edge, as a share of the image's width.
    pub x: f32,
    /// Its upper edge, as a share of the image's height.
    pub y: f32,
    /// Its width, as a share of the image's.
    pub width: f32,
    /// Its height, as a share of the image's.
    pub height: f32,
}

/// How images became tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// How an image was brought to the network's size.
    pub resize: Resize,
    /// The order of the colours in the first dimension: `rgb`, `bgr` or `gray`.
    pub channels: String,
    /// Subtracted from each channel's pixels (0 to 255), one for each channel or none.
    pub mean: Vec<f32>,
    /// What is left is multiplied by this.
    pub scale: f32,
}

/// How an image was brought to the network's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resize {
    /// Both sides to the network's, whatever their ratio.
    Stretch,
    /// As large as fits, centred on grey (128).
    Letterbox,
}

/// The values of all images, in the smallest type that holds them.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Pixels as they are.
    U8(Vec<u8>),
    /// Values that a mean or a scale made fractions.
    F32(Vec<f32>),
}

/// A set that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// It cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// The path that cannot be read.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// It is no evaluation set.
    #[error("this is no evaluation set of layerlab: {0}; make one with `layerlab set`")]
    NotASet(String),
    /// It is cut off, or too long.
    #[error(
        "the evaluation set has {found} bytes of images and its header asks for {expected}; make it again"
    )]
    Length {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
}

/// What the first line says before all else: other versions may have other fields.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetHeader {
    format: String,
    version: u32,
    name: String,
    metric: Metric,
    classes: Vec<String>,
    preprocessing: Preprocessing,
    shape: Vec<usize>,
    /// `u8` or `f32`, little-endian.
    values: String,
    truths: Vec<Truth>,
    /// From version 2 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pairs: Vec<[u32; 2]>,
}

impl EvaluationSet {
    /// How many answers a network gives to the set.
    pub fn answers(&self) -> usize {
        self.truths.len()
    }

    /// How many values one image has.
    pub fn image_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// How many images it has; answers may share them.
    pub fn image_count(&self) -> usize {
        image_count(&self.metric, &self.pairs, self.truths.len()).unwrap_or(usize::MAX)
    }

    /// The images of answer number `answer`, one or two, each as a network takes it.
    ///
    /// # Panics
    /// When the set has no such answer.
    pub fn images(&self, answer: usize) -> Vec<Vec<f32>> {
        let (length, each) = (self.image_len(), self.metric.images_per_answer());
        let places: Vec<usize> = match self.pairs.get(answer) {
            Some(pair) => pair.iter().map(|&image| image as usize).collect(),
            None => (answer * each..(answer + 1) * each).collect(),
        };
        places
            .into_iter()
            .map(|image| {
                let range = image * length..(image + 1) * length;
                match &self.values {
                    Values::U8(values) => values[range].iter().map(|&v| f32::from(v)).collect(),
                    Values::F32(values) => values[range].to_vec(),
                }
            })
            .collect()
    }

    /// The set as a file's bytes.
    ///
    /// # Errors
    /// When the values are not those of as many images as the truths ask for, or a truth is none that the
    /// metric judges by.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SetError> {
        let header = SetHeader {
            format: FORMAT.to_owned(),
            version: self.version(),
            name: self.name.clone(),
            metric: self.metric.clone(),
            classes: self.classes.clone(),
            preprocessing: self.preprocessing.clone(),
            shape: self.shape.clone(),
            values: match &self.values {
                Values::U8(_) => "u8".to_owned(),
                Values::F32(_) => "f32".to_owned(),
            },
            truths: self.truths.clone(),
            pairs: self.pairs.clone(),
        };
        check_metric(&header)?;
        check_truths(&header)?;
        let mut bytes =
            serde_json::to_vec(&header).map_err(|error| SetError::NotASet(error.to_string()))?;
        bytes.push(b'\n');
        let start = bytes.len();
        match &self.values {
            Values::U8(values) => bytes.extend(values),
            Values::F32(values) => {
                bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()))
            }
        }
        let found = bytes.len() - start;
        let expected = expected_len(&header)?;
        match found == expected {
            true => Ok(bytes),
            false => Err(SetError::Length { found, expected }),
        }
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// When they are not those of a set of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<EvaluationSet, SetError> {
        let not_a_set = |reason: &str| SetError::NotASet(reason.to_owned());
        let end = bytes
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| not_a_set("it has no first line"))?;
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        let not_json = |error: serde_json::Error| not_a_set(&error.to_string());
        let kind: Kind = serde_json::from_slice(line).map_err(not_json)?;
        if kind.format != FORMAT || !(1..=VERSION).contains(&kind.version) {
            let Kind { format, version } = kind;
            let reason =
                format!("it is `{format}` version {version}, not `{FORMAT}` 1 to {VERSION}");
            return Err(SetError::NotASet(reason));
        }
        let header: SetHeader = serde_json::from_slice(line).map_err(not_json)?;
        check_metric(&header)?;
        check_truths(&header)?;
        let expected = expected_len(&header)?;
        if rest.len() != expected {
            let found = rest.len();
            return Err(SetError::Length { found, expected });
        }
        let values = match header.values.as_str() {
            "u8" => Values::U8(rest.to_vec()),
            _ => Values::F32(
                rest.chunks_exact(4)
                    .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                    .collect(),
            ),
        };
        let set = EvaluationSet {
            name: header.name,
            metric: header.metric,
            classes: header.classes,
            preprocessing: header.preprocessing,
            shape: header.shape,
            truths: header.truths,
            pairs: header.pairs,
            values,
        };
        match set.version() <= kind.version {
            true => Ok(set),
            false => Err(not_a_set("version 1 has no such metric and no pairs")),
        }
    }

    /// The oldest version of the format that can say all of it.
    fn version(&self) -> u32 {
        match (&self.metric, self.pairs.is_empty()) {
            (Metric::DecodedDetection { .. } | Metric::PixelAccuracy { .. }, _) | (_, false) => 2,
            _ => 1,
        }
    }
}

/// Whether the metric makes sense, for images of the set's shape and for its pairs.
fn check_metric(header: &SetHeader) -> Result<(), SetError> {
    let not_a_set = |reason: &str| Err(SetError::NotASet(reason.to_owned()));
    if let Metric::DecodedDetection { decoder, .. } = &header.metric {
        if let Some(fault) = decoder.fault() {
            return not_a_set(fault);
        }
        let said = decoder.input().map(|(width, height)| [height, width]);
        let image = header.shape.iter().skip(1);
        if said.is_some_and(|said| !image.eq(&said.map(|side| side as usize))) {
            return not_a_set("its boxes are relative to an input that its images do not have");
        }
    }
    let paired = matches!(header.metric, Metric::Verification { .. });
    match header.pairs.len() {
        0 => Ok(()),
        pairs if paired && pairs == header.truths.len() => Ok(()),
        _ => not_a_set("it does not have a pair of images for each answer"),
    }
}

/// How many images there are, or `None` if they are more than can be.
fn image_count(metric: &Metric, pairs: &[[u32; 2]], answers: usize) -> Option<usize> {
    match pairs.iter().flatten().max() {
        Some(&last) => (last as usize).checked_add(1),
        None => answers.checked_mul(metric.images_per_answer()),
    }
}

/// Whether the metric can judge by each truth: an answer would be refused on the device, a class that is none
/// would never be missed.
fn check_truths(header: &SetHeader) -> Result<(), SetError> {
    for (answer, truth) in header.truths.iter().enumerate() {
        let classes: Vec<u32> = match (&header.metric, truth) {
            (Metric::TopK { .. } | Metric::MultiLabel { .. }, Truth::Labels(labels)) => {
                labels.clone()
            }
            (Metric::Detection { .. } | Metric::DecodedDetection { .. }, Truth::Boxes(boxes)) => {
                boxes.iter().map(|object| object.class).collect()
            }
            (Metric::PixelAccuracy { width, height }, Truth::Pixels(runs)) => {
                let counted = runs.iter().map(|run| u64::from(run.count)).sum::<u64>();
                if counted != u64::from(*width) * u64::from(*height) {
                    let reason = format!(
                        "what is true of answer {answer} is {counted} pixels, not {width}x{height}"
                    );
                    return Err(SetError::NotASet(reason));
                }
                runs.iter().filter_map(|run| run.class).collect()
            }
            (Metric::Verification { .. }, Truth::Same(_)) => Vec::new(),
            _ => {
                let reason = format!("what is true of answer {answer} is not of the metric's kind");
                return Err(SetError::NotASet(reason));
            }
        };
        let known = header.classes.len();
        if let Some(class) = classes.into_iter().find(|&class| class as usize >= known) {
            let reason = format!("answer {answer} names class {class}, and there are {known}");
            return Err(SetError::NotASet(reason));
        }
    }
    Ok(())
}

fn expected_len(header: &SetHeader) -> Result<usize, SetError> {
    let size = match header.values.as_str() {
        "u8" => 1,
        "f32" => 4,
        other => {
            return Err(SetError::NotASet(format!(
                "its values are `{other}`, neither u8 nor f32"
            )));
        }
    };
    let images = image_count(&header.metric, &header.pairs, header.truths.len());
    let factors = header.shape.iter().chain([&size]);
    factors
        .fold(images, |product, &factor| product?.checked_mul(factor))
        .ok_or_else(|| SetError::NotASet("its shape is too large".to_owned()))
}
