//! `layerlab compare`: which layers differ between two profiles of one model.

mod gate;
mod sight;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// With --gate, more profiles: the last one is tested, and all before it are good ones, four or more. How far these differ
    /// counts as well, so that a device which is faster on some days than on others raises no alarm for it; eight or more tell
    /// that best
    #[arg(value_name = "FOLDER", requires = "gate", conflicts_with = "baseline")]
    more: Vec<PathBuf>,
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

/// Profiles with their folders: the one that is to be no worse than those before it last.
type Compared = Vec<(PathBuf, Profile)>;

async fn profiles(args: &CompareArgs) -> Result<Compared, Failure> {
    let folders = [&args.one].into_iter().chain(&args.other).chain(&args.more);
    let mut read = Compared::new();
    for folder in folders {
        let profile = Profile::read(folder).exit_with(Code::Input)?;
        read.push((folder.clone(), profile));
    }
    if read.len() > 2 {
        refuse_repeated(&args.one, args.other.iter().chain(&args.more))?;
    }
    if args.baseline {
        let baseline = baseline::of_profile(&read[0].0, &read[0].1).await?;
        read.insert(0, baseline);
    }
    Ok(read)
}

/// Refuses a profile that is given twice: it would be a run that differs from another by nothing.
fn refuse_repeated<'a>(
    first: &'a PathBuf,
    others: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let mut known: BTreeMap<String, &Path> = BTreeMap::new();
    for folder in std::iter::once(first).chain(others) {
        let digest = ProfileDigest::of_folder(folder).exit_with(Code::Input)?;
        if let Some(same) = known.insert(digest.as_str().to_owned(), folder) {
            let error = anyhow::anyhow!(
                "{} and {} are the same profile; give each once",
                same.display(),
                folder.display()
            );
            return Err(Failure::new(Code::Input, error));
        }
    }
    Ok(())
}

pub(super) async fn run(args: &CompareArgs) -> Result<(), Failure> {
    let all = profiles(args).await?;
    if let Some(settings) = args.gate.settings() {
        if !args.json {
            print_names(&all)?;
        }
        return gate::pass(&all, settings, &args.gate, (args.all, args.json));
    }
    let [(_, one), (_, other)] = &all[..] else {
        unreachable!("more than two are compared with --gate alone")
    };
    let differences = compare(one, other).exit_with(Code::Input)?;
    if args.json {
        let views: Vec<DifferenceView<'_>> = differences.iter().map(DifferenceView::from).collect();
        return output::print_json(&views);
    }
    print_names(&all)?;
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
fn print_names(all: &Compared) -> Result<(), Failure> {
    let good = all.len() - 1;
    for (place, (folder, profile)) in all.iter().enumerate() {
        let role = match (good, place) {
            _ if place == good => "other".to_owned(),
            (1, _) => "one".to_owned(),
            _ => format!("good {}", place + 1),
        };
        let digest = ProfileDigest::of_folder(folder).exit_with(Code::Input)?;
        let title = show::title(&profile.header);
        output::print(format_args!("{role}: {title} ({})", digest.short()))?;
    }
    output::print("")
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
