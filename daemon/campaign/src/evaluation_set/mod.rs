//! Evaluation sets from what people have: images in a folder, and COCO, PASCAL VOC or CSV files that say what they
//! show, or LFW's pairs. Images are decoded and brought to the network's size once, here.

mod calibrate;
mod coco;
mod error;
mod fit;
#[cfg(test)]
mod fixture;
mod folder;
mod listing;
mod masks;
mod pairs;
mod preprocess;
mod truth;
mod voc;

use std::path::{Path, PathBuf};

use layerlab_profiles::accuracy::{EvaluationSet, Metric, Preprocessing, Truth, Values};

pub use calibrate::{Calibrated, calibrate};
pub use error::{BoxProblem, Entry, Place, PreprocessingError, SetError, Shape};
pub use fit::fits_network;
use listing::{Classes, Listing};
use masks::Mask;
use preprocess::Preprocessor;

/// What an evaluation set is made of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file or folder that says what the images show.
    pub annotations: Annotations,
    /// The folder that the annotations' file names start from.
    pub images: PathBuf,
    /// The width and the height of the network's input.
    pub size: (u32, u32),
    /// How images become tensors.
    pub preprocessing: Preprocessing,
    /// How answers are judged.
    pub metric: Metric,
    /// The classes in the order of the network's answers, where it is not that of the annotations: by category
    /// id in COCO files, else alphabetical.
    pub classes: Option<Vec<String>>,
    /// How many images, or pairs, to take, the first ones; all if it is `None`.
    pub limit: Option<usize>,
    /// The set's name.
    pub name: String,
}

/// What says what the images show.
#[derive(Clone, Debug)]
pub enum Annotations {
    /// A file in COCO's format for detection.
    Coco(PathBuf),
    /// A folder with one PASCAL VOC file (XML) for each image.
    Voc(PathBuf),
    /// A CSV file with the columns `image` and `label` (one for each image) or `labels` (separated by `;`).
    Labels(PathBuf),
    /// A file of pairs in LFW's format.
    Pairs(PathBuf),
    /// A folder of label images: PNGs of classes, by the names of their images.
    Masks(PathBuf),
}

/// A set, and what of its annotations is not in it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The evaluation set, ready to be written to a file.
    pub set: EvaluationSet,
    /// How many annotations of its images say `iscrowd`: they stand for many objects at once, which no single
    /// answer is right about.
    pub skipped_crowd: usize,
    /// For each pair whether it is of the first half, on which a threshold may be chosen; empty where there are no pairs.
    pub first_half: Vec<bool>,
}

impl Annotations {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        match self {
            Annotations::Coco(path)
            | Annotations::Voc(path)
            | Annotations::Labels(path)
            | Annotations::Pairs(path)
            | Annotations::Masks(path) => path,
        }
    }
}

impl Source {
    /// Reads the annotations and all images.
    ///
    /// # Errors
    /// At the first thing that is wrong with them, by its name.
    pub fn load(&self) -> Result<Loaded, SetError> {
        let preprocessor = Preprocessor::new(&self.preprocessing, self.size)?;
        if let Annotations::Pairs(path) = &self.annotations {
            return self.load_pairs(path, &preprocessor);
        }
        if let Annotations::Masks(path) = &self.annotations {
            return self.load_masks(path, &preprocessor);
        }
        let mut listing = self.listing()?;
        self.check(&listing)?;
        listing.images.truncate(self.limit.unwrap_or(usize::MAX));
        let mut values = preprocessor.values();
        let mut truths = Vec::with_capacity(listing.images.len());
        for listed in &listing.images {
            let image = preprocess::open(&self.images, listed)?;
            let size = (image.width(), image.height());
            let frame = preprocessor.frame(size);
            truths.push(truth::truth(&self.metric, listed, size, frame)?);
            preprocessor.push(&image, &mut values);
        }
        let skipped_crowd = listing.images.iter().map(|listed| listed.crowd).sum();
        let set = self.set(listing.classes, &preprocessor, truths, values);
        Ok(Loaded {
            set,
            skipped_crowd,
            first_half: Vec::new(),
        })
    }

    /// Reads pairs, and each image once, however many pairs it is in.
    fn load_pairs(&self, path: &Path, preprocessor: &Preprocessor) -> Result<Loaded, SetError> {
        if !matches!(self.metric, Metric::Verification { .. }) {
            let path = path.to_owned();
            return Err(SetError::OnlyPairs { path });
        }
        let listing = pairs::read(path, self.limit)?;
        let mut values = preprocessor.values();
        for listed in &listing.images {
            preprocessor.push(&preprocess::open(&self.images, listed)?, &mut values);
        }
        let pairs = listing.pairs.iter();
        let truths = pairs.clone().map(|pair| Truth::Same(pair.same)).collect();
        let mut set = self.set(Vec::new(), preprocessor, truths, values);
        set.pairs = pairs.clone().map(|pair| pair.images).collect();
        Ok(Loaded {
            set,
            skipped_crowd: 0,
            first_half: pairs.map(|pair| pair.first_half).collect(),
        })
    }

    /// Reads label images, and the image of each.
    fn load_masks(&self, path: &Path, preprocessor: &Preprocessor) -> Result<Loaded, SetError> {
        let Metric::PixelAccuracy { width, height } = self.metric else {
            let path = path.to_owned();
            return Err(SetError::OnlyMasks { path });
        };
        let Some(names) = &self.classes else {
            let path = path.to_owned();
            return Err(SetError::MasksWithoutClasses { path });
        };
        let classes = Classes::given(names)?.into_names();
        let mut files = masks::files(path)?;
        files.truncate(self.limit.unwrap_or(usize::MAX));
        if files.is_empty() {
            let path = path.to_owned();
            return Err(SetError::Empty { path });
        }
        let mut values = preprocessor.values();
        let mut truths = Vec::with_capacity(files.len());
        for file in &files {
            let mask = Mask::read(file, classes.len())?;
            let image = preprocess::open(&self.images, &mask.listed(&self.images))?;
            let frame = preprocessor.frame((image.width(), image.height()));
            truths.push(Truth::Pixels(mask.runs((width, height), frame)));
            preprocessor.push(&image, &mut values);
        }
        Ok(Loaded {
            set: self.set(classes, preprocessor, truths, values),
            skipped_crowd: 0,
            first_half: Vec::new(),
        })
    }

    fn set(
        &self,
        classes: Vec<String>,
        preprocessor: &Preprocessor,
        truths: Vec<Truth>,
        values: Values,
    ) -> EvaluationSet {
        EvaluationSet {
            name: self.name.clone(),
            metric: self.metric.clone(),
            classes,
            preprocessing: self.preprocessing.clone(),
            shape: preprocessor.shape(),
            truths,
            pairs: Vec::new(),
            values,
        }
    }

    fn listing(&self) -> Result<Listing, SetError> {
        let classes = self.classes.as_deref();
        match &self.annotations {
            Annotations::Coco(path) => coco::read(path, classes),
            Annotations::Voc(path) => voc::read(path, classes),
            Annotations::Labels(path) => folder::read(path, classes),
            Annotations::Pairs(path) => Err(SetError::OnlyPairs { path: path.clone() }),
            Annotations::Masks(path) => Err(SetError::OnlyMasks { path: path.clone() }),
        }
    }

    fn check(&self, listing: &Listing) -> Result<(), SetError> {
        let path = self.annotations.path();
        if listing.images.is_empty() || self.limit == Some(0) {
            return Err(SetError::Empty {
                path: path.to_owned(),
            });
        }
        if let Metric::TopK { k } = self.metric
            && k as usize >= listing.classes.len()
        {
            let classes = listing.classes.len();
            return Err(SetError::AlwaysRight { k, classes });
        }
        let boxes = !matches!(self.annotations, Annotations::Labels(_));
        match self.metric {
            Metric::Detection { .. } | Metric::DecodedDetection { .. } if !boxes => {
                Err(SetError::NoBoxes {
                    path: path.to_owned(),
                })
            }
            Metric::PixelAccuracy { .. } => Err(SetError::NoMasks {
                path: path.to_owned(),
            }),
            Metric::Verification { .. } => Err(SetError::NoPairs {
                path: path.to_owned(),
            }),
            _ => listing.each_once(),
        }
    }
}
