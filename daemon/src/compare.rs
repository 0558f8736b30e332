//! `layerlab compare`: which layers differ between two profiles of one model.

mod gate;
mod sight;

use std::path::PathBuf;

use layerlab_profiles::compare::{
    Difference, Quantity, RunsInOne, SIGNIFICANCE, compare, runs_in_one,
};
use layerlab_profiles::document::{Profile, ProfileDigest};
use layerlab_profiles::ranks::{Faster, RankedMinute, Ranks, ranks};
use layerlab_profiles::{Layer, SignedNanos};
use serde::Serialize;

use super::exit::{Code, ExitWith, Failure};
use super::show::{self, estimate};
use super::{baseline, output};
use gate::GateArgs;
use layerlab_lab::text_table::{Cells, p_value, table};

#[derive(clap::Args)]
pub(super) struct CompareArgs {
    /// The first profile's folder; with --baseline the only one's
    #[arg(value_name = "FOLDER")]
    one: PathBuf,
    /// The second profile's folder
    #[arg(
        value_name = "FOLDER",
        required_unless_present = "baseline",
        conflicts_with = "baseline"
    )]
    other: Option<PathBuf>,
    /// Compare the profile with the baseline of its model, device and runtime, which comes first (`layerlab baseline set`)
    #[arg(long)]
    baseline: bool,
    /// Print every number, not only those that differ significantly
    #[arg(long)]
    all: bool,
    /// Print JSON (every number)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    gate: GateArgs,
}

/// Two profiles with their folders, the one that is to be no better first.
async fn profiles(args: &CompareArgs) -> Result<[(PathBuf, Profile); 2], Failure> {
    let one = Profile::read(&args.one).exit_with(Code::Input)?;
    let one = (args.one.clone(), one);
    let Some(other) = &args.other else {
        let baseline = baseline::of_profile(&one.0, &one.1).await?;
        return Ok([baseline, one]);
    };
    let read = Profile::read(other).exit_with(Code::Input)?;
    Ok([one, (other.clone(), read)])
}

pub(super) async fn run(args: &CompareArgs) -> Result<(), Failure> {
    let both = profiles(args).await?;
    let [(_, one), (_, other)] = &both;
    if let Some(settings) = args.gate.settings() {
        if !args.json {
            print_names(&both)?;
        }
        return gate::pass(one, other, settings, &args.gate, (args.all, args.json));
    }
    let differences = compare(one, other).exit_with(Code::Input)?;
    if args.json {
        let views: Vec<DifferenceView<'_>> = differences.iter().map(DifferenceView::from).collect();
        return output::print_json(&views);
    }
    print_names(&both)?;
    let significant = differences.iter().filter(|d| d.is_significant()).count();
    let shown = differences
        .iter()
        .filter(|d| args.all || d.is_significant());
    let rows: Vec<_> = shown
        .map(|difference| row(&one.layers, difference))
        .collect();
    if !rows.is_empty() {
        let heads = [
            "processor",
            "layer",
            "name",
            "what",
            "one",
            "other",
            "difference",
            "p",
        ];
        output::print(format_args!("{}\n", table(&heads, &[1, 4, 5, 6, 7], rows)))?;
    }
    for lacked in runs_in_one(one, other) {
        output::print(lacks(&one.layers, &lacked))?;
    }
    for ranks in ranks(one, other) {
        output::print(rank_lines(&ranks))?;
    }
    output::print(format_args!(
        "{significant} of {} numbers differ significantly (p < {SIGNIFICANCE}, adjusted by Holm's method)",
        differences.len()
    ))
}

/// Which of the two is the faster on a processor at first and in the end, where both were kept busy.
fn rank_lines(ranks: &Ranks) -> String {
    let minute = |ranked: &RankedMinute| {
        let faster = match ranked.faster() {
            Some(Faster::One) => "one is the faster",
            Some(Faster::Other) => "other is the faster",
            None => "neither is known to be the faster",
        };
        format!(
            "minute {}: one {}, other {}: {faster}",
            ranked.minute,
            estimate(&ranked.one),
            estimate(&ranked.other)
        )
    };
    let swap = match ranks.swap() {
        true => "; they swap ranks as they heat up",
        false => "",
    };
    format!(
        "all layers on {}, kept busy: {}; {}{swap}",
        ranks.processor,
        minute(&ranks.first),
        minute(&ranks.last)
    )
}

/// What is compared.
fn print_names([one, other]: &[(PathBuf, Profile); 2]) -> Result<(), Failure> {
    let named = |(folder, profile): &(PathBuf, Profile)| -> Result<String, Failure> {
        let digest = ProfileDigest::of_folder(folder).exit_with(Code::Input)?;
        Ok(format!(
            "{} ({})",
            show::title(&profile.header),
            digest.short()
        ))
    };
    output::print(format_args!(
        "one: {}\nother: {}\n",
        named(one)?,
        named(other)?
    ))
}

/// Which profile says that a processor cannot run a layer that it runs in the other, and why.
fn lacks(layers: &[Layer], lacked: &RunsInOne) -> String {
    let RunsInOne {
        processor,
        layer,
        lacks_other,
        reason,
    } = lacked;
    let name = layers.iter().find(|one| one.number == *layer);
    let name = name.map_or("", |layer| &layer.name);
    let (can, cannot) = match lacks_other {
        true => ("one", "other"),
        false => ("other", "one"),
    };
    format!("layer {layer} ({name}) runs on {processor} in {can} and not in {cannot}: {reason}")
}

fn row(layers: &[Layer], difference: &Difference) -> Cells {
    let name = layers.iter().find(|layer| layer.number == difference.layer);
    vec![
        difference.processor.clone(),
        difference.layer.to_string(),
        name.map_or_else(String::new, |layer| layer.name.clone()),
        difference.quantity.name().replace('_', " "),
        estimate(&difference.one),
        estimate(&difference.other),
        estimate(&difference.difference),
        difference.p_value.map_or_else(String::new, p_value),
    ]
}

/// One comparison, for scripts.
#[derive(Serialize)]
struct DifferenceView<'a> {
    processor: &'a str,
    layer: u32,
    quantity: Quantity,
    one_ns: SignedNanos,
    other_ns: SignedNanos,
    difference_ns: SignedNanos,
    difference_ci95_low_ns: Option<SignedNanos>,
    difference_ci95_high_ns: Option<SignedNanos>,
    p_value: Option<f64>,
    significant: bool,
}

impl<'a> From<&'a Difference> for DifferenceView<'a> {
    fn from(difference: &'a Difference) -> DifferenceView<'a> {
        let (low, high) = difference.difference.ci95.unzip();
        DifferenceView {
            processor: &difference.processor,
            layer: difference.layer,
            quantity: difference.quantity,
            one_ns: difference.one.value,
            other_ns: difference.other.value,
            difference_ns: difference.difference.value,
            difference_ci95_low_ns: low,
            difference_ci95_high_ns: high,
            p_value: difference.p_value,
            significant: difference.is_significant(),
        }
    }
}
