//! What a plan is made of: a profile, and what is learnt from its accuracy.

use std::path::PathBuf;

use layerlab_planners::export::Source;
use layerlab_planners::profile::{Tables, tables};
use layerlab_planners::regress::Grid;
use layerlab_planners::solve::PlanError;
use layerlab_planners::{AccuracyModel, Problem};
use layerlab_profiles::document::{Evaluation, Profile};

use crate::exit::{Code, ExitWith, Failure};
use crate::processors::PlacedOnArgs;

#[derive(clap::Args)]
pub(super) struct Input {
    /// The profile's folder; it must hold the accuracy of placements (`layerlab profile --set`)
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    #[command(flatten)]
    placed_on: PlacedOnArgs,
}

/// A profile with what was learnt from it.
pub(super) struct Learnt {
    pub(super) profile: Profile,
    pub(super) problem: Problem,
    pub(super) evaluation: Evaluation,
    /// The processors of the digits, by their names.
    pub(super) processors: Vec<String>,
    pub(super) source: Source,
    pub(super) model: AccuracyModel,
}

impl Input {
    /// Learns, unless so many processors are refused: learning takes its time.
    pub(super) fn learn(
        &self,
        refuse: impl FnOnce(usize) -> Result<(), PlanError>,
    ) -> Result<Learnt, Failure> {
        let profile = Profile::read(&self.profile).exit_with(Code::Input)?;
        let chosen = self.placed_on.by_digit().exit_with(Code::Input)?;
        let (cpu, accelerators) = (chosen.cpu.as_deref(), chosen.accelerators());
        let Tables {
            times,
            accuracy,
            evaluation,
        } = tables(&profile, cpu, &accelerators).exit_with(Code::Input)?;
        refuse(times.processors()).exit_with(Code::Input)?;
        let evaluation = evaluation.clone();
        let processors = evaluation.processors(&profile.header);
        let processors = processors.into_iter().map(str::to_owned).collect();
        let model = AccuracyModel::train(&profile.layers, &accuracy, &Grid::default())
            .exit_with(Code::Input)?;
        let problem = Problem::new(&profile.layers, times, &accuracy, Box::new(model.clone()))
            .exit_with(Code::Input)?;
        let source = Source::of(&profile, &evaluation.cpu, &evaluation.accelerator);
        Ok(Learnt {
            profile,
            problem,
            evaluation,
            processors,
            source,
            model,
        })
    }
}
