//! T(L) measured: placements of a model run end to end, each part on the processor that it is placed on.

use std::collections::BTreeMap;

use layerlab_profiles::{Nanos, Placement};
use layerlab_protocol::{Entry, Hygiene, Order, Part, TimingSettings, WarmUp, Work};

use super::orders::{Fixed, Interleaved, Orders};
use super::{CampaignError, KnownJournal, ModelFile, TimesSettings, drive, forget};
use layerlab_farm::Link;

/// Passes over one placement before the next has its turn: few, so that drift falls on all alike and a
/// device that heats gets its rest.
const PASSES_PER_ORDER: u64 = 20;

/// How placements are timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// The processors of the placements' digits, by their names; each maximal run of neighbours on one runs as
    /// one unit.
    pub processors: Vec<String>,
    /// How many passes over each placement count.
    pub samples: u64,
    /// The idle time before each pass.
    pub gap: Nanos,
    /// Seeds the input.
    pub seed: u64,
    /// When a block of passes counts.
    pub hygiene: Hygiene,
    /// Whether the parts on accelerators are loaded in every pass, when they are needed, which is part of its time.
    pub reload: bool,
}

impl Passes {
    /// Passes enough to know the time of a placement on these processors well.
    pub fn on(processors: Vec<String>) -> Passes {
        let TimesSettings {
            gap, seed, hygiene, ..
        } = TimesSettings::default();
        Passes {
            processors,
            samples: 100,
            gap,
            seed,
            hygiene,
            reload: false,
        }
    }
}

/// How long one placement took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementTime {
    /// Which layer was on which processor.
    pub combination: Placement,
    /// Each pass that counts: the sum of its parts, from the input in main memory to the output there.
    pub passes: Vec<Nanos>,
}

/// Runs each combination on the device behind `link` and times it. They take turns of a few passes.
///
/// # Panics
/// When a combination has a digit without a processor.
pub async fn time_placements<L: Link>(
    link: &L,
    model: &ModelFile,
    combinations: &[Placement],
    passes: &Passes,
) -> Result<Vec<PlacementTime>, CampaignError> {
    let there = link.connect().await?.hello.processors;
    let is_emulated = |name: &String| there.iter().any(|one| one.emulated && one.name == *name);
    let hygiene = match passes.processors.iter().any(is_emulated) {
        true => passes.hygiene.of_emulated(),
        false => passes.hygiene,
    };
    let journal = KnownJournal::fresh();
    let order = |combination, samples| Order {
        run: journal.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        quantised_sha256: model.quantised_sha256(),
        processor: passes.processors[0].clone(),
        work: Work::TimePlacement {
            parts: parts(combination, passes),
            timing: TimingSettings {
                samples_per_segment: samples,
                gap_ns: passes.gap,
                warm_up: WarmUp::default(),
                hygiene,
            },
            reload: passes.reload,
        },
        seed: passes.seed,
    };
    let turns = turns(passes.samples);
    let orders = turns
        .iter()
        .flat_map(|&samples| combinations.iter().map(move |one| (one, samples)))
        .map(|(combination, samples)| order(combination, samples));
    let orders = Fixed::new(orders.collect());
    let files: Vec<_> = model.files().collect();
    let mut orders = Interleaved::new([Box::new(orders) as Box<dyn Orders>]);
    let measured = drive(link, &journal, &files, &mut orders, &mut |_: &Entry| {}).await?;
    forget(link, journal.id).await;

    // By placement, turn and pass: a sample's index counts the parts, and of each part the passes.
    let mut times: BTreeMap<(usize, usize, u64), Nanos> = BTreeMap::new();
    for sample in measured.samples {
        let order = sample.order as usize - 1;
        let (turn, placement) = (order / combinations.len(), order % combinations.len());
        let pass = (placement, turn, sample.index % turns[turn]);
        let time = times.entry(pass).or_default();
        *time = *time + sample.duration;
    }
    let timed = combinations
        .iter()
        .enumerate()
        .map(|(placement, combination)| {
            let passes = times.range((placement, 0, 0)..(placement + 1, 0, 0));
            PlacementTime {
                combination: combination.clone(),
                passes: passes.map(|(_, &time)| time).collect(),
            }
        });
    Ok(timed.collect())
}

/// How many passes each turn has.
fn turns(samples: u64) -> Vec<u64> {
    let starts = (0..samples).step_by(PASSES_PER_ORDER as usize);
    starts
        .map(|start| PASSES_PER_ORDER.min(samples - start))
        .collect()
}

fn parts(combination: &Placement, passes: &Passes) -> Vec<Part> {
    let part = |(segment, processor)| Part {
        segment,
        processor: passes.processors[usize::from(processor)].clone(),
    };
    combination.runs().map(part).collect()
}
