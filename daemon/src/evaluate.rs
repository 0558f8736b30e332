//! `layerlab evaluate`: what placements of a model's layers lose of its accuracy.

mod keep;

use std::path::{Path, PathBuf};

use layerlab_profiles::accuracy::Part;
use layerlab_profiles::document::{
    CombinationRow, Device, Evaluation, EvaluationError, Processor, Profile,
};
use layerlab_profiles::{Bytes, Placement};
use serde::Serialize;

use super::adb::{self, AdbArgs, PhoneArgs};
use super::campaign::{agent_program, campaign_failure, publish_failure};
use super::exit::{Code, ExitWith, Failure};
use super::model_options::{DimArgs, open_with_twin, refuse_other_twin};
use super::output;
use super::percent::Percent;
use super::processors::ByDigit;
use super::progress::{Bars, title};
use keep::{AnswersFolder, Overlap};
use layerlab_campaign::evaluation_set::fits_network;
use layerlab_campaign::publish::Staging;
use layerlab_campaign::{
    AccuracySettings, CampaignPart, Evaluated, Keeping, ModelFile, Placements, SetFile, evaluate,
    this_program,
};
use layerlab_farm::adb::Printable;
use layerlab_farm::{Hello, Link};
use layerlab_lab::text_table::table;

#[derive(clap::Args)]
pub(super) struct EvaluateArgs {
    /// The ONNX model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The device: a name that `layerlab devices` lists, or a simulated device's file
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The model's quantised twin, which 8-bit processors of ONNX Runtime run; `layerlab quantise` makes one
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    /// The evaluation set, as `layerlab set` makes it
    #[arg(long, value_name = "FILE")]
    set: PathBuf,
    #[command(flatten)]
    choices: ChoiceArgs,
    /// The processors of a placement's digits, a CPU first, such as cpu,gpu,npu, in place of --cpu and
    /// --accelerator
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with_all = ["cpu", "accelerator"]
    )]
    processors: Vec<String>,
    /// Evaluate only this placement: a digit for each layer, layer 1 first, 0 being the CPU and 1 the first
    /// accelerator; may be given several times
    #[arg(long = "combination", value_name = "DIGITS",
        conflicts_with_all = ["placements", "profile"])]
    combinations: Vec<Placement>,
    /// Keep the raw answers under these placements and all layers on the CPU in a new folder, answers.npy (32-bit floats, which
    /// NumPy reads, at most 64 MiB) and answers.json. Of a segmentation, mIoU is calculated of them
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "combinations",
        conflicts_with = "stop_at"
    )]
    keep_answers: Option<PathBuf>,
    /// A published profile of this model on this device, which gets the accuracy beside its times
    #[arg(long, value_name = "FOLDER", requires = "out")]
    profile: Option<PathBuf>,
    /// Where to publish that profile with the accuracy
    #[arg(long, value_name = "FOLDER", requires = "profile")]
    out: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long, requires = "out")]
    replace: bool,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    dims: DimArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The choices that every evaluation has.
#[derive(clap::Args)]
#[group(requires = "set")]
#[command(next_help_heading = "Accuracy")]
pub(super) struct ChoiceArgs {
    /// How many random placements to evaluate, beside all layers on each processor and each single one
    #[arg(long, default_value_t = AccuracySettings::PLACEMENTS, value_name = "COUNT")]
    placements: usize,
    /// How many of the set's images to answer [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    answers: Option<u64>,
    /// Give a placement no more answers when its loss is known to this much on either side, in per cent of
    /// accuracy
    #[arg(long, value_name = "PERCENT")]
    stop_at: Option<Percent>,
    /// The processor for layers marked 0 [default: the first CPU of the profile, without one of the device]
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The processor for layers marked 1, or several such as gpu,npu for layers marked 1, 2 and so on
    /// [default: the first accelerator of the profile, without one of the device]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    accelerator: Vec<String>,
    /// Seeds the random placements and the order of the answers
    #[arg(long, default_value_t = AccuracySettings::SEED, value_name = "SEED")]
    placement_seed: u64,
    /// Load and run neighbours on one processor as one segment, as the placement will run: what a runtime gains or rounds
    /// across layers counts. Takes longer, for placements have less in common
    #[arg(long)]
    as_runs: bool,
    /// What activations may take on the device, in MiB
    #[arg(long, default_value_t = AccuracySettings::MEMORY_MIB, value_name = "MIB")]
    memory_mib: u64,
}

impl ChoiceArgs {
    fn placed_on(&self) -> ByDigit {
        ByDigit {
            cpu: self.cpu.clone(),
            accelerators: self.accelerator.clone(),
        }
    }

    pub(super) fn settings(&self) -> AccuracySettings {
        AccuracySettings {
            cpu: self.cpu.clone(),
            accelerators: self.accelerator.clone(),
            placements: Placements::Random(self.placements),
            seed: self.placement_seed,
            answers: self.answers.map(|answers| answers as usize),
            stop_at_half_width: self.stop_at.map(Percent::share),
            memory: Bytes::from_bytes(self.memory_mib << 20),
            as_runs: self.as_runs,
        }
    }
}

pub(super) async fn run(
    args: &EvaluateArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let model = open_with_twin(&args.model, args.quantised.as_deref(), &args.dims.map())?;
    let set = fitting_set(&args.set, &model)?;
    let layers = model.network.layer_count() as usize;
    if let Some(other) = args.combinations.iter().find(|one| one.layers() != layers) {
        let given = other.layers();
        let message =
            format!("--combination {other} has {given} digits and the model {layers} layers");
        return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
    }
    let placed_on = args.choices.placed_on().unless_listed(&args.processors);
    let placed_on = placed_on.exit_with(Code::Input)?;
    // The first accelerator is taken if none is named.
    let processors = 1 + placed_on.accelerators.len().max(1);
    for one in &args.combinations {
        one.refuse_beyond(processors).exit_with(Code::Input)?;
    }
    let profile = match &args.profile {
        Some(folder) => Some(Profile::read(folder).exit_with(Code::Input)?),
        None => None,
    };
    if let Some(profile) = &profile
        && profile.header.model.sha256 != model.source_sha256
    {
        let message = "the profile is of another model than --model; measure this one first";
        return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
    }
    if let Some(profile) = &profile {
        refuse_other_twin(&profile.header.model, &model).exit_with(Code::Input)?;
    }
    let staging = match &args.out {
        Some(out) => Some(Staging::prepare(out, args.replace).map_err(publish_failure)?),
        None => None,
    };
    let mut answers_folder = match &args.keep_answers {
        Some(folder) => {
            let (placements, answers) = (&args.combinations, args.choices.answers);
            let prepared = AnswersFolder::prepare(folder, &model, &set, placements, answers);
            Some(prepared?)
        }
        None => None,
    };
    let link = adb::open(&args.device, agent_program(agent)?, adb, &args.phone).await?;
    let hello = hello(&link).await?;
    if let Some(profile) = &profile {
        same_device(&profile.header.device, &hello.device, "--device")?;
    }
    let mut choices = AccuracySettings {
        cpu: placed_on.cpu,
        accelerators: placed_on.accelerators,
        ..args.choices.settings()
    };
    if !args.combinations.is_empty() {
        choices.placements = Placements::These(args.combinations.clone());
    }
    // Accuracy belongs beside times, so that only what has times is chosen from.
    let has_times = |processor: &&Processor| {
        profile.as_ref().is_none_or(|profile| {
            let mut measured = profile.header.processors.iter();
            measured.any(|one| one.name == processor.name)
        })
    };
    let there = hello.processors.iter().filter(has_times);
    let there: Vec<Processor> = there.cloned().collect();
    let mut settings = choices.on(&there).exit_with(Code::Input)?;
    settings.keep_answers = answers_folder.is_some();
    let title = title(CampaignPart::Accuracy, model.network.name(), &args.device);
    let mut bar = Bars::new().add(title);
    let evaluated = match &mut answers_folder {
        Some(folder) => {
            let (kept, follower) = (&mut folder.kept, &mut bar);
            let mut keeping = Keeping { kept, follower };
            evaluate(&link, &model, &set, &settings, &mut keeping).await
        }
        None => evaluate(&link, &model, &set, &settings, &mut bar).await,
    };
    let evaluated = evaluated.map_err(campaign_failure)?;
    drop(bar);
    let overlaps = match answers_folder {
        Some(folder) => folder.publish(&model, &set, &hello.device, &evaluated.evaluation)?,
        None => Vec::new(),
    };
    match (profile, staging) {
        (Some(profile), Some(staging)) => {
            let mut profile = profile
                .with_evaluation(evaluated.evaluation, &evaluated.judged)
                .map_err(evaluation_failure)?
                .with_placements(evaluated.placements);
            profile.header.written_by = Some(this_program());
            let findings = staging.publish(&profile).map_err(publish_failure)?;
            print(&profile.evaluations, &profile.combinations, &[], args.json)?;
            for finding in findings {
                output::note(format_args!("\n{finding}"));
            }
            if args.json {
                return Ok(());
            }
            let out = args.out.as_deref().unwrap_or_else(|| "".as_ref());
            output::print(format_args!("\nPublished in {}", out.display()))
        }
        _ => {
            let rows = rows(&evaluated)?;
            print(&[evaluated.evaluation], &rows, &overlaps, args.json)
        }
    }
}

pub(super) async fn hello(link: &impl Link) -> Result<Hello, Failure> {
    let connection = link.connect().await;
    Ok(connection
        .map_err(|error| campaign_failure(error.into()))?
        .hello)
}

/// Accuracy belongs beside the times of its own device alone, whichever `option` named one.
pub(super) fn same_device(measured: &Device, found: &Device, option: &str) -> Result<(), Failure> {
    if (&measured.name, measured.simulated) == (&found.name, found.simulated) {
        return Ok(());
    }
    let message = format!(
        "the profile is of the device {}, and {option} is {}; measure this one first",
        Printable(&measured.name),
        Printable(&found.name)
    );
    Err(Failure::new(Code::Input, anyhow::anyhow!(message)))
}

/// The evaluation set at `path`, which `model` can be asked about: whether it can is known before anything is
/// measured.
pub(super) fn fitting_set(path: &Path, model: &ModelFile) -> Result<SetFile, Failure> {
    let set = SetFile::open(path).exit_with(Code::Input)?;
    fits_network(&set.set, &model.network).exit_with(Code::Input)?;
    Ok(set)
}

pub(super) fn evaluation_failure(error: EvaluationError) -> Failure {
    Failure::new(Code::Internal, error)
}

/// One placement, without features.
#[derive(Serialize)]
struct Row {
    combination: Placement,
    answers: u64,
    score: f64,
    loss: f64,
    loss_ci95: (f64, f64),
}

#[derive(Serialize)]
struct EvaluationView<'a> {
    evaluations: &'a [Evaluation],
    combinations: Vec<Row>,
    /// Of a segmentation whose answers were kept.
    #[serde(skip_serializing_if = "<[Overlap]>::is_empty")]
    class_overlap: &'a [Overlap],
}

/// Rows of an evaluation that is published nowhere: those that were asked for may lack single layers, and
/// so have no features.
pub(super) fn rows(evaluated: &Evaluated) -> Result<Vec<CombinationRow>, Failure> {
    layerlab_profiles::document::judged_rows(&evaluated.evaluation, &evaluated.judged)
        .map_err(evaluation_failure)
}

/// How well placements find classes of pixels.
fn overlap_table(overlaps: &[Overlap]) -> String {
    let rows = overlaps.iter().map(|overlap| {
        let interval = overlap.loss_ci95;
        vec![
            overlap.combination.clone(),
            format!("{:.4}", overlap.mean_iou),
            format!("{:+.4}", overlap.loss),
            interval.map_or_else(String::new, |(low, high)| {
                format!("{low:+.4} to {high:+.4}")
            }),
        ]
    });
    table(
        &["placement", "mIoU", "loss", "95 % interval"],
        &[1, 2, 3],
        rows,
    )
}

fn print(
    evaluations: &[Evaluation],
    rows: &[CombinationRow],
    overlaps: &[Overlap],
    json: bool,
) -> Result<(), Failure> {
    if json {
        let row = |row: &CombinationRow| Row {
            combination: row.combination.clone(),
            answers: row.answers,
            score: row.score,
            loss: row.loss,
            loss_ci95: row.loss_ci95,
        };
        let combinations = rows.iter().map(row).collect();
        return output::print_json(&EvaluationView {
            evaluations,
            combinations,
            class_overlap: overlaps,
        });
    }
    let shown = rows.iter().filter(|row| row.part == Part::Reference);
    let cells = shown.map(|row| {
        vec![
            row.combination.to_string(),
            row.answers.to_string(),
            format!("{:.4}", row.score),
            format!("{:+.4}", row.loss),
            format!("{:+.4} to {:+.4}", row.loss_ci95.0, row.loss_ci95.1),
        ]
    });
    let heads = ["placement", "answers", "accuracy", "loss", "95 % interval"];
    output::print(table(&heads, &[1, 2, 3, 4], cells))?;
    if !overlaps.is_empty() {
        output::print(format_args!("\n{}", overlap_table(overlaps)))?;
    }
    let mut losses: Vec<f64> = rows
        .iter()
        .filter(|row| row.part != Part::Reference)
        .map(|row| row.loss)
        .collect();
    losses.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (losses.first(), losses.last()) {
        output::print(format_args!(
            "\n{} random placements lose {least:+.4} to {most:+.4}, half of them at most {:+.4}.",
            losses.len(),
            losses[losses.len() / 2]
        ))?;
    }
    for evaluation in evaluations {
        output::print(format_args!(
            "Of {:.3e} floating-point operations {:.1} % were executed; the rest placements had in common.",
            evaluation.naive_flop as f64,
            100.0 * evaluation.executed_flop as f64 / evaluation.naive_flop.max(1) as f64
        ))?;
    }
    Ok(())
}
