//! What can be wrong with images and with what is said about them.

use std::fmt;
use std::path::PathBuf;

use layerlab_model::AnswerError;
use layerlab_profiles::accuracy::BadAnswer;

/// Images or annotations that make no evaluation set, or a set that does not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// A file or folder of annotations cannot be read.
    #[error("cannot read `{}`: {reason}; check the path", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// It is no JSON, or no COCO.
    #[error("`{}` is no COCO file for detection: {reason}; correct it, or name another", path.display())]
    Coco {
        /// The annotation file that was read.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: serde_json::Error,
    },
    /// It is no XML, or no PASCAL VOC.
    #[error("`{}` is no PASCAL VOC annotation: {reason}; correct or remove it", path.display())]
    Voc {
        /// The annotation file that was read.
        path: PathBuf,
        /// What is wrong.
        reason: quick_xml::DeError,
    },
    /// It is no CSV.
    #[error("`{}` is no CSV file with a header: {reason}; correct it", path.display())]
    Csv {
        /// The annotation file that was read.
        path: PathBuf,
        /// What is wrong, with its line.
        reason: csv::Error,
    },
    /// A CSV file lacks a column.
    #[error(
        "`{}` has no column {column}: its first line must name the columns `image` and `label` or `labels`",
        path.display()
    )]
    Column {
        /// The annotation file that was read.
        path: PathBuf,
        /// The missing one.
        column: &'static str,
    },
    /// There is no image in it.
    #[error(
        "`{}` names no images, and a set needs at least one; name another file or folder",
        path.display()
    )]
    Empty {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file name leads out of the folder of images.
    #[error(
        "{place} names the image `{name}`, which is not below the folder of images: write its path from there, \
         without `..`"
    )]
    Outside {
        /// Who names it.
        place: Place,
        /// The image's name, as the annotation gives it.
        name: String,
    },
    /// Two entries are about the same image.
    #[error("{place} is about `{name}`, and so is {earlier}: leave one of them")]
    Twice {
        /// Where the second entry is.
        place: Place,
        /// Where the first entry is.
        earlier: Place,
        /// The image, the category or the class.
        name: String,
    },
    /// An image is missing.
    #[error(
        "{place} names `{}`, which cannot be read: {reason}; add it, or name another folder by --images",
        path.display()
    )]
    Image {
        /// Who names it.
        place: Place,
        /// The path at which the image was looked for.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// An image is no JPEG or PNG.
    #[error(
        "{place} names `{}`, which is no sound JPEG or PNG image: {reason}; replace it or remove the \
         entry",
        path.display()
    )]
    Undecodable {
        /// Who names it.
        place: Place,
        /// The path of the image that could not be decoded.
        path: PathBuf,
        /// What is wrong.
        reason: Box<image::ImageError>,
    },
    /// An image is not of the size that its boxes are made for.
    #[error(
        "{place} says that `{name}` has {}x{} pixels, and it has {}x{}: use the images that the annotations were made for",
        said.0, said.1, found.0, found.1
    )]
    Size {
        /// Who says it.
        place: Place,
        /// The image's name, as the annotation gives it.
        name: String,
        /// Width and height as the annotations say.
        said: (u32, u32),
        /// Width and height of the image.
        found: (u32, u32),
    },
    /// A box holds no pixel of its image.
    #[error("{place} has a box that {problem}: correct or remove it")]
    Box {
        /// Where the box is given.
        place: Place,
        /// What is wrong with it.
        problem: BoxProblem,
    },
    /// An annotation is about a category or an image that is not listed.
    #[error(
        "{place} is of {what} {id}, which the file does not list: add it or remove the annotation"
    )]
    UnknownId {
        /// Where the annotation is.
        place: Place,
        /// `category` or `image`.
        what: &'static str,
        /// The id that is not listed.
        id: i64,
    },
    /// A label is not among the classes that the user gave.
    #[error(
        "{place} says `{name}`, which is not one of the {classes} classes of --classes: add it there"
    )]
    UnknownClass {
        /// Who says it.
        place: Place,
        /// The label, as the file gives it.
        name: String,
        /// How many classes there are.
        classes: usize,
    },
    /// A class is given twice, or without a name.
    #[error(
        "--classes names `{0}` more than once, or a class without a name: each class has one place"
    )]
    Classes(String),
    /// The metric takes one class for each image.
    #[error(
        "{place} gives `{name}` {labels} classes, and top-k takes exactly one for each image: use --metric multi-label"
    )]
    NotOne {
        /// Who gives them.
        place: Place,
        /// The image's name, as the file gives it.
        name: String,
        /// How many classes it has.
        labels: usize,
    },
    /// No answer would be wrong.
    #[error(
        "top-{k} of {classes} classes is always right: take fewer, or give all of the network's classes by --classes"
    )]
    AlwaysRight {
        /// Top-k.
        k: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// Detection from a file without boxes.
    #[error("`{}` says what is in an image but not where: detection needs --coco or --voc", path.display())]
    NoBoxes {
        /// The file that has labels and no boxes.
        path: PathBuf,
    },
    /// Verification from a file without pairs.
    #[error(
        "`{}` says nothing of pairs of images, which verification judges: name a file of pairs by --pairs, or use another metric",
        path.display()
    )]
    NoPairs {
        /// The file that has labels and no pairs.
        path: PathBuf,
    },
    /// Pairs judged by another metric than verification.
    #[error("`{}` says which images show the same: use --metric verification", path.display())]
    OnlyPairs {
        /// The file of pairs.
        path: PathBuf,
    },
    /// The first line of a file of pairs says something else than how many follow.
    #[error(
        "{place} is not `folds<TAB>pairs` or `pairs`, two or one whole numbers above 0: write how many pairs of each \
         kind follow, as LFW's pairs.txt does"
    )]
    PairsHeader {
        /// The line.
        place: Place,
    },
    /// A line of a file of pairs is no pair.
    #[error(
        "{place} is neither `name<TAB>n<TAB>n`, two different images of one person, nor `name<TAB>n<TAB>name<TAB>n`, \
         one of each of two: correct or remove it"
    )]
    Pair {
        /// The line.
        place: Place,
    },
    /// A file of pairs has more or fewer than it says.
    #[error(
        "`{}` says that it has {said} pairs, and it has {found}: correct its first line, or get it again",
        path.display()
    )]
    PairsCount {
        /// The file of pairs.
        path: PathBuf,
        /// How many its first line says, of both kinds.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// The model that a threshold is chosen by does not answer.
    #[error(transparent)]
    Calibration(#[from] AnswerError),
    /// The pairs that a threshold is chosen on say nothing about it.
    #[error(
        "no threshold tells the {pairs} pairs apart that it is chosen on: they must be of both kinds, and the model's answers \
         finite and different; take more pairs, or give --threshold"
    )]
    NoThreshold {
        /// How many pairs there are.
        pairs: usize,
    },
    /// No pair is left to judge by.
    #[error("`{set}` has one pair, and a threshold is chosen on half of them: take more pairs")]
    NothingToJudge {
        /// The set's name.
        set: String,
    },
    /// A label image is no PNG.
    #[error("`{}` is no sound PNG image: {reason}; replace or remove it", path.display())]
    Mask {
        /// The label image.
        path: PathBuf,
        /// What is wrong.
        reason: png::DecodingError,
    },
    /// A label image does not have one small number for each pixel.
    #[error(
        "`{}` has colours in the place of classes: save it with a palette or as grey, with 8 bits or fewer, each value a \
         class's place in --classes",
        path.display()
    )]
    MaskColours {
        /// The label image.
        path: PathBuf,
    },
    /// A label image has a class that is none.
    #[error(
        "`{}` has the class {class} at ({x}, {y}), and --classes names {classes}, counted from 0: add it there, or write 255 \
         for what does not count",
        path.display()
    )]
    MaskClass {
        /// The label image.
        path: PathBuf,
        /// The value.
        class: u8,
        /// The pixel's column, counted from 0.
        x: u32,
        /// Its row.
        y: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// Label images whose classes have no names.
    #[error(
        "the label images in `{}` number their classes: name them by --classes, in the order of the network's answers",
        path.display()
    )]
    MasksWithoutClasses {
        /// The folder of label images.
        path: PathBuf,
    },
    /// Label images judged by another metric than theirs.
    #[error("`{}` says what each pixel shows: use --metric pixel-accuracy", path.display())]
    OnlyMasks {
        /// The folder of label images.
        path: PathBuf,
    },
    /// Pixels judged by what says nothing of them.
    #[error(
        "`{}` says nothing of pixels: name a folder of label images by --masks, or use another metric",
        path.display()
    )]
    NoMasks {
        /// The file or folder that says nothing of pixels.
        path: PathBuf,
    },
    /// The preprocessing cannot be done.
    #[error(transparent)]
    Preprocessing(#[from] PreprocessingError),
    /// The model takes more than one image, or none.
    #[error(
        "the model `{model}` has {inputs} inputs, and the images of the evaluation set `{set}` go into one; name \
         another model"
    )]
    Inputs {
        /// The set's name.
        set: String,
        /// The model's name.
        model: String,
        /// How many inputs it has.
        inputs: usize,
    },
    /// The images are not of the size that the model takes.
    #[error(
        "the model takes {model} and the images of the evaluation set `{set}` are {images}: make the set again for \
         this model's input"
    )]
    Input {
        /// The set's name.
        set: String,
        /// What the model takes.
        model: Shape,
        /// What one image is, with a batch of one.
        images: Shape,
    },
    /// The model's answer is not what the metric judges.
    #[error(
        "{reason}: the set `{set}` has {classes} classes; give all of the model's by --classes, or the --metric that fits it"
    )]
    Answer {
        /// The set's name.
        set: String,
        /// How many classes it has.
        classes: usize,
        /// How long the model's answer is, and how long the metric needs it.
        reason: BadAnswer,
    },
}

/// Preprocessing that cannot be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PreprocessingError {
    /// The channels have another name.
    #[error("channels are rgb, bgr or gray, not `{0}`: use one of them")]
    Channels(String),
    /// There are means for more or fewer channels.
    #[error(
        "--mean has {means} values and {channels} is {count} channels: give one for each, or none"
    )]
    Means {
        /// How many means there are.
        means: usize,
        /// `rgb`, `bgr` or `gray`.
        channels: String,
        /// How many channels that is.
        count: usize,
    },
    /// A mean is NaN or infinite.
    #[error("--mean has the value {0}: give finite numbers")]
    Mean(f32),
    /// The scale is nothing to multiply by.
    #[error("--scale cannot be {0}: give a finite number other than 0")]
    Scale(f32),
    /// The network's input has no pixels.
    #[error("--size cannot be {0}x{1}: width and height are at least 1")]
    Size(u32, u32),
}

/// Where something is said: a file, and what in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The annotation file.
    pub file: PathBuf,
    /// The line, the annotation …
    pub entry: Entry,
}

/// A part of a file of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// All of it.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// A category of a COCO file, by its id.
    Category(i64),
    /// An image of a COCO file, by its id.
    Image(i64),
    /// An annotation of a COCO file, by its id.
    Annotation(i64),
    /// An object of a PASCAL VOC file, counted from 1.
    Object(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file.display())?;
        match self.entry {
            Entry::Whole => Ok(()),
            Entry::Line(line) => write!(f, ", line {line}"),
            Entry::Category(id) => write!(f, ", category {id}"),
            Entry::Image(id) => write!(f, ", image {id}"),
            Entry::Annotation(id) => write!(f, ", annotation {id}"),
            Entry::Object(number) => write!(f, ", object {number}"),
        }
    }
}

/// What is wrong with a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxProblem {
    /// Its width or its height is not above zero.
    NoArea,
    /// It does not touch its image.
    Outside,
    /// It is not made of finite numbers.
    NotFinite,
}

impl fmt::Display for BoxProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BoxProblem::NoArea => "has no width or no height",
            BoxProblem::Outside => "lies outside its image",
            BoxProblem::NotFinite => "is not made of finite numbers",
        })
    }
}

/// The shape of a tensor, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<usize>);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}
