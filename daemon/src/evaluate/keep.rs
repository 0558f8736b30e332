//! `layerlab evaluate --keep-answers`: a folder with the raw answers, and what says where they come from.

use std::path::Path;

use layerlab_campaign::publish::Staging;
use layerlab_campaign::{KeptAnswers, ModelFile, SetFile};
use layerlab_profiles::Placement;
use layerlab_profiles::accuracy::{Metric, Tally, Truth};
use layerlab_profiles::class_overlap::{class_overlap, class_overlap_loss, class_tallies};
use layerlab_profiles::document::{Device, Evaluation};
use layerlab_profiles::sha256;
use serde::Serialize;

use crate::campaign::publish_failure;
use crate::exit::{Code, ExitWith, Failure};
use crate::output;

const NPY: &str = "answers.npy";
const JSON: &str = "answers.json";

/// A folder that is made when all answers are there.
pub(super) struct AnswersFolder {
    staging: Staging,
    pub(super) kept: KeptAnswers,
}

/// What `answers.json` says.
#[derive(Serialize)]
struct AnswersHeader<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    model_sha256: &'a str,
    device: &'a Device,
    /// The network's outputs: of each image their numbers follow one another.
    outputs: Vec<OutputShape<'a>>,
    images_per_answer: usize,
    /// The first axis of the array.
    placements: Vec<String>,
    /// The second axis: places in the set.
    answers: Vec<u64>,
    file: &'static str,
    sha256: String,
    /// Of a segmentation: how well each of the set's classes is found.
    #[serde(skip_serializing_if = "<[Overlap]>::is_empty")]
    class_overlap: &'a [Overlap],
    evaluation: &'a Evaluation,
}

/// How well a placement finds classes of pixels, by the mean over classes of intersection over union.
#[derive(Serialize)]
pub(super) struct Overlap {
    pub(super) combination: String,
    pub(super) mean_iou: f64,
    /// In the order of the set's classes; `null` of one that neither is there nor was found.
    iou_of_classes: Vec<Option<f64>>,
    /// Less than the mean of all layers on the CPU.
    pub(super) loss: f64,
    /// By the jackknife over the answers; `null` of a single one.
    pub(super) loss_ci95: Option<(f64, f64)>,
}

#[derive(Serialize)]
struct OutputShape<'a> {
    name: &'a str,
    shape: &'a [u64],
}

impl AnswersFolder {
    /// Sees that there is room for the answers, and says how much they take.
    pub(super) fn prepare(
        folder: &Path,
        model: &ModelFile,
        set: &SetFile,
        placements: &[Placement],
        answers: Option<u64>,
    ) -> Result<AnswersFolder, Failure> {
        // More than there are is all.
        let answers = answers.map(|answers| usize::try_from(answers).unwrap_or(usize::MAX));
        let kept = KeptAnswers::new(&model.network, &set.set, placements, answers);
        let kept = kept.exit_with(Code::Input)?;
        let staging = Staging::prepare(folder, false).map_err(publish_failure)?;
        output::note(format_args!(
            "Raw answers will take {} bytes in {}.",
            kept.bytes().as_bytes(),
            folder.display()
        ));
        Ok(AnswersFolder { staging, kept })
    }

    /// How well each placement finds the classes of a segmentation, all layers on the CPU first; empty of another metric.
    fn overlaps(&self, set: &SetFile) -> Vec<Overlap> {
        if !matches!(set.set.metric, Metric::PixelAccuracy { .. }) {
            return Vec::new();
        }
        let classes = set.set.classes.len();
        let tallies = |placement: usize| -> Vec<Vec<Tally>> {
            let answers = self.kept.under(placement);
            let tallies = answers.filter_map(|(answer, values)| {
                match set.set.truths.get(answer as usize)? {
                    Truth::Pixels(runs) => Some(class_tallies(classes, values, runs)),
                    _ => None,
                }
            });
            tallies.collect()
        };
        let baseline = tallies(0);
        let of = |(place, combination): (usize, &Placement)| {
            let placed = tallies(place);
            let (before, found) = (class_overlap(&baseline)?, class_overlap(&placed)?);
            Some(Overlap {
                combination: combination.to_string(),
                mean_iou: found.mean,
                iou_of_classes: found.of_classes,
                loss: before.mean - found.mean,
                loss_ci95: class_overlap_loss(&baseline, &placed).map(|loss| loss.ci95),
            })
        };
        let placements = self.kept.placements.iter().enumerate();
        placements.filter_map(of).collect()
    }

    /// Writes both files and makes the folder visible. How well placements find classes of pixels, if that is asked.
    pub(super) fn publish(
        self,
        model: &ModelFile,
        set: &SetFile,
        device: &Device,
        evaluation: &Evaluation,
    ) -> Result<Vec<Overlap>, Failure> {
        let overlaps = self.overlaps(set);
        let npy = self.kept.to_npy();
        let network = &model.network;
        let outputs = network.outputs().iter();
        let header = AnswersHeader {
            format: "layerlab-answers",
            version: 1,
            model: network.name(),
            model_sha256: &model.source_sha256,
            device,
            outputs: outputs
                .map(|output| OutputShape {
                    name: &output.name,
                    shape: &output.shape,
                })
                .collect(),
            images_per_answer: set.set.metric.images_per_answer(),
            placements: self
                .kept
                .placements
                .iter()
                .map(ToString::to_string)
                .collect(),
            answers: self.kept.answers().collect(),
            file: NPY,
            sha256: sha256(&npy),
            class_overlap: &overlaps,
            evaluation,
        };
        let mut json = serde_json::to_vec_pretty(&header).exit_with(Code::Internal)?;
        json.push(b'\n');
        let files = [(NPY, npy), (JSON, json)];
        self.staging
            .publish_files(&files)
            .map_err(publish_failure)?;
        Ok(overlaps)
    }
}
