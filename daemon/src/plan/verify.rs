//! `--verify`: plans are run on a device, so that what was measured stands beside what was predicted.

use std::path::PathBuf;

use layerlab_campaign::{
    AccuracySettings, EnergySettings, Evaluated, EvaluationSettings, ModelFile, Passes, Placements,
    SetFile, Verification, VerificationSet, Verified, measure_placement_energy,
};
use layerlab_farm::Link;
use layerlab_planners::MemoryMode;
use layerlab_planners::export::{VerifiedPlacement, VerifiedPlacements};
use layerlab_planners::placement::PackedPlacement;
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::{Nanos, Placement};
use layerlab_protocol::{Entry, MeterChoice};

use super::alone::about_accuracy;
use super::beside::{Predicted, beside_table};
use super::learnt::{Learnt, PlanSubject};
use crate::adb::{self, AdbArgs, Opened, PhoneArgs};
use crate::campaign::{agent_program, campaign_failure};
use crate::evaluate;
use crate::exit::{Code, ExitWith, Failure};
use crate::model_options::{open_with_twin, parse_dim, refuse_other_twin};
use crate::output;
use crate::profile::energy_window;

#[derive(clap::Args)]
pub(super) struct VerifyArgs {
    /// Run what is planned on this device and put what was measured beside what was predicted
    #[arg(long, value_name = "DEVICE", requires = "model")]
    verify: Option<String>,
    /// With --verify: the ONNX model
    #[arg(long, value_name = "FILE", requires = "verify")]
    model: Option<PathBuf>,
    /// With --verify: the model's quantised twin, for processors that compute in 8 bits
    #[arg(long, value_name = "FILE", requires = "verify")]
    quantised: Option<PathBuf>,
    /// With --verify: the profile's evaluation set; without it the time alone is measured
    #[arg(long, value_name = "FILE", requires = "verify")]
    set: Option<PathBuf>,
    /// With --verify: measure what the plan draws, too, where the profile says what its layers draw: run each of its runs of layers
    /// for so long, such as 30s, and let the device idle as long between, three times
    #[arg(long, value_name = "DURATION", value_parser = energy_window, requires = "verify")]
    energy: Option<Nanos>,
    /// With --energy: the power meter: auto, rails, rapl, fuel-gauge, tcp:HOST:PORT or the path of a serial port, as the
    /// device reaches it (docs/phones.md)
    #[arg(long, default_value_t = MeterChoice::Any, value_name = "METER", requires = "energy")]
    meter: MeterChoice,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    adb: AdbArgs,
    /// With --verify: the size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim, requires = "verify")]
    dims: Vec<(String, u64)>,
}

/// A device that placements are run on, with the model and the images.
pub(super) struct OnDevice {
    model: ModelFile,
    set: Option<SetFile>,
    link: Opened,
    energy: Option<EnergySettings>,
}

impl VerifyArgs {
    /// Runs these placements on the device, if one is named; nothing otherwise.
    pub(super) async fn measure(
        &self,
        placements: Vec<Placement>,
        subject: PlanSubject<'_>,
        agent: Option<PathBuf>,
    ) -> Result<VerifiedPlacements, Failure> {
        if placements.is_empty() {
            return Ok(VerifiedPlacements::new());
        }
        match self.open(subject, agent).await? {
            Some(device) => device.verify(placements, subject).await,
            None => Ok(VerifiedPlacements::new()),
        }
    }

    /// Measures one plan, if a device is named, and prints what was measured beside what was predicted.
    pub(super) async fn measure_beside(
        &self,
        predicted: Predicted,
        placement: &Placement,
        subject: PlanSubject<'_>,
        agent: Option<PathBuf>,
    ) -> Result<(), Failure> {
        let verified = self
            .measure(vec![placement.clone()], subject, agent)
            .await?;
        match verified.get(placement) {
            Some(verified) => {
                output::print(format_args!("\n{}", beside_table(&predicted, verified)))
            }
            None => Ok(()),
        }
    }

    /// What the plan is predicted to draw, if that is to be measured; where the profile says nothing of it, that is refused.
    pub(super) fn predicted_energy(
        &self,
        placement: &Placement,
        subject: PlanSubject<'_>,
    ) -> Result<Option<Estimate>, Failure> {
        if self.energy.is_none() {
            return Ok(None);
        }
        let energies = subject.energies()?;
        let packed = PackedPlacement::of(placement).exit_with(Code::Internal)?;
        Ok(Some(Estimate {
            value: energies.time(&packed).total(),
            ci95: energies.interval(&packed),
        }))
    }

    /// Refuses to measure what plans draw, where there are many.
    pub(super) fn refuse_energy(&self) -> Result<(), Failure> {
        match self.energy {
            None => Ok(()),
            Some(_) => {
                let message =
                    "--energy measures one plan, which takes minutes; leave it out of a sweep";
                Err(Failure::new(Code::Usage, anyhow::anyhow!(message)))
            }
        }
    }

    /// The device, if one is named.
    pub(super) async fn open(
        &self,
        subject: PlanSubject<'_>,
        agent: Option<PathBuf>,
    ) -> Result<Option<OnDevice>, Failure> {
        let (Some(device), Some(model)) = (&self.verify, &self.model) else {
            return Ok(None);
        };
        if subject.profile.header.thermal == Thermal::Steady {
            let message = "--verify measures a cool device, and the plan is made of steady times; leave out --verify, or \
                           plan with --thermal cold";
            return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
        }
        let dims = self.dims.iter().cloned().collect();
        let model = open_with_twin(model, self.quantised.as_deref(), &dims)?;
        let of_profile = &subject.profile.header.model;
        if model.source_sha256 != of_profile.sha256 {
            let message = "--model is another model than the profile's";
            return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
        }
        refuse_other_twin(of_profile, &model).exit_with(Code::Input)?;
        let set = match &self.set {
            Some(file) => {
                let Some(evaluation) = subject.evaluation else {
                    return Err(about_accuracy("--set"));
                };
                let set = evaluate::fitting_set(file, &model)?;
                // The accuracy on other images differs by their luck, whatever the prediction is worth.
                if set.sha256 != evaluation.set_sha256 {
                    let message = "--set is another evaluation set than the one that the profile's accuracies are of";
                    return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
                }
                Some(set)
            }
            None => None,
        };
        let link = adb::open(device, agent_program(agent)?, &self.adb, &self.phone).await?;
        Ok(Some(OnDevice {
            model,
            set,
            link,
            energy: self.energy.map(|window| EnergySettings {
                window,
                visits: EnergySettings::VISITS,
                meter: self.meter.clone(),
            }),
        }))
    }
}

impl OnDevice {
    /// Runs these placements: their times, and where there are images their accuracies.
    async fn verify(
        &self,
        placements: Vec<Placement>,
        subject: PlanSubject<'_>,
    ) -> Result<VerifiedPlacements, Failure> {
        let (link, model, set) = (&self.link, &self.model, self.set.as_ref());
        let mut verified = run(link, model, set, placements, subject).await?;
        for (placement, found) in &mut verified {
            if let Some(energy) = &self.energy {
                let processors = subject.processors;
                let drawn = measure_placement_energy(link, model, placement, processors, energy);
                found.energy = Some(drawn.await.map_err(campaign_failure)?);
            }
        }
        Ok(verified)
    }

    /// What these placements lose on the profile's own device, by the images and in the order that the profile's losses were
    /// measured by.
    pub(super) async fn evaluate(
        &self,
        placements: Vec<Placement>,
        learnt: &Learnt,
    ) -> Result<Evaluated, Failure> {
        let set = self.set.as_ref();
        let set = set
            .ok_or_else(|| anyhow::anyhow!("accuracy is measured by images; name them with --set"))
            .exit_with(Code::Usage)?;
        let found = evaluate::hello(&self.link).await?;
        evaluate::same_device(&learnt.profile.header.device, &found.device, "--verify")?;
        let settings = EvaluationSettings {
            processors: learnt.processors.clone(),
            placements: Placements::These(placements),
            seed: learnt.evaluation.seed,
            answers: Some(learnt.evaluation.answers as usize),
            stop_at_half_width: None,
            memory: AccuracySettings::default().memory,
            as_runs: learnt.evaluation.as_runs,
            keep_answers: false,
        };
        let mut nobody = |_: &Entry| {};
        layerlab_campaign::evaluate(&self.link, &self.model, set, &settings, &mut nobody)
            .await
            .map_err(campaign_failure)
    }
}

/// Runs placements of the model on the device behind `link`, and lets them answer the images of the profile's evaluation
/// set, if it is given.
pub(crate) async fn run<L: Link>(
    link: &L,
    model: &ModelFile,
    set: Option<&SetFile>,
    placements: Vec<Placement>,
    subject: PlanSubject<'_>,
) -> Result<VerifiedPlacements, Failure> {
    let verification = Verification {
        model,
        placements,
        passes: Passes {
            reload: subject.times.mode() == MemoryMode::Reload,
            ..Passes::on(subject.processors.to_vec())
        },
        set: set
            .zip(subject.evaluation)
            .map(|(set, evaluation)| VerificationSet {
                set,
                seed: evaluation.seed,
                answers: evaluation.answers as usize,
            }),
    };
    let verified = verification.run(link, &mut |_: &Entry| {}).await;
    together(&verified.map_err(campaign_failure)?)
}

/// The times and the accuracies by their placements.
fn together(verified: &Verified) -> Result<VerifiedPlacements, Failure> {
    let rows = match &verified.accuracy {
        Some(evaluated) => evaluate::rows(evaluated)?,
        None => Vec::new(),
    };
    let accuracy = |placement: &Placement| {
        let row = rows.iter().find(|row| &row.combination == placement)?;
        let (low, high) = row.loss_ci95;
        // What is lost less is accuracy more.
        let ends = (row.score - (high - row.loss), row.score + (row.loss - low));
        Some((row.score, ends))
    };
    let timed = verified.time.iter().filter_map(|timed| {
        let summary = Summary::of(&timed.passes)?;
        let ends = summary.median_ci95;
        let placement = timed.combination.clone();
        let found = VerifiedPlacement {
            time_ns: summary.median.as_nanos(),
            time_ci95_ns: ends.map(|(low, high)| (low.as_nanos(), high.as_nanos())),
            accuracy: accuracy(&placement),
            energy: None,
        };
        Some((placement, found))
    });
    Ok(timed.collect())
}
