//! Evaluation sets from what people have: images in a folder, and COCO, PASCAL VOC or CSV files that say what they
//! show. Images are decoded and brought to the network's size once, here.

mod coco;
mod error;
mod fit;
#[cfg(test)]
mod fixture;
mod folder;
mod listing;
mod preprocess;
mod truth;
mod voc;

use std::path::{Path, PathBuf};

use layerlab_profiles::accuracy::{EvaluationSet, Metric, Preprocessing};

pub use error::{BoxProblem, Entry, Place, PreprocessingError, SetError, Shape};
pub use fit::fits_network;
use listing::Listing;
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
    /// How many images to take, the first ones; all if it is `None`.
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
}

/// A set, and what of its annotations is not in it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The evaluation set, ready to be written to a file.
    pub set: EvaluationSet,
    /// How many annotations of its images say `iscrowd`: they stand for many objects at once, which no single
    /// answer is right about.
    pub skipped_crowd: usize,
}

impl Annotations {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        match self {
            Annotations::Coco(path) | Annotations::Voc(path) | Annotations::Labels(path) => path,
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
        let set = EvaluationSet {
            name: self.name.clone(),
            metric: self.metric.clone(),
            classes: listing.classes,
            preprocessing: self.preprocessing.clone(),
            shape: preprocessor.shape(),
            truths,
            values,
        };
        Ok(Loaded { set, skipped_crowd })
    }

    fn listing(&self) -> Result<Listing, SetError> {
        let classes = self.classes.as_deref();
        match &self.annotations {
            Annotations::Coco(path) => coco::read(path, classes),
            Annotations::Voc(path) => voc::read(path, classes),
            Annotations::Labels(path) => folder::read(path, classes),
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
            Metric::Detection { .. } if !boxes => Err(SetError::NoBoxes {
                path: path.to_owned(),
            }),
            Metric::Verification { .. } => Err(SetError::NoPairs {
                path: path.to_owned(),
            }),
            _ => listing.each_once(),
        }
    }
}
