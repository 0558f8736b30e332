//! `layerlab evaluate --keep-answers`: a folder with the raw answers, and what says where they come from.

use std::path::Path;

use layerlab_campaign::publish::Staging;
use layerlab_campaign::{KeptAnswers, ModelFile, SetFile};
use layerlab_profiles::Placement;
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
    evaluation: &'a Evaluation,
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

    /// Writes both files and makes the folder visible.
    pub(super) fn publish(
        self,
        model: &ModelFile,
        set: &SetFile,
        device: &Device,
        evaluation: &Evaluation,
    ) -> Result<(), Failure> {
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
            evaluation,
        };
        let mut json = serde_json::to_vec_pretty(&header).exit_with(Code::Internal)?;
        json.push(b'\n');
        let files = [(NPY, npy), (JSON, json)];
        self.staging.publish_files(&files).map_err(publish_failure)
    }
}
