//! A run of alexnet that tests disturb: what is done to it while it goes on loses no sample and doubles none.

use std::collections::BTreeSet;

use layerlab_campaign::{InOut, ModelFile, RunError, TimesPlan, TimesSettings, drive};
use layerlab_profiles::Nanos;
use layerlab_profiles::design::Design;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::document::Sample;
use layerlab_protocol::{Entry, Event, Hygiene, RunId};

use crate::model;
use crate::watched::{HasAgent, Watched};

/// What a test does to a run after each sample: it is told how many have come, and over which link.
pub type Disturb<'a, L> = &'a mut (dyn FnMut(u64, &Watched<L>) + Send);

/// So many samples of each segment, with so much idle time before each.
pub fn settings(samples_per_segment: u64, gap: Nanos) -> TimesSettings {
    TimesSettings {
        processors: Vec::new(),
        design: Design::Grouped,
        samples_per_segment,
        // The fewest: segments are warmed up anew for each, which takes longer than their samples do.
        visits: 3,
        gap,
        seed: 5,
        hygiene: Hygiene::default(),
        target: 0.02,
        budget: Nanos::ZERO,
        in_out: InOut::default(),
        steady: None,
        energy: None,
        over_budget: OverBudget::Extend,
    }
}

/// What a run gave.
pub struct Ended {
    /// Its samples.
    pub samples: Vec<Sample>,
    /// How often the agent was connected to: once to learn the processors, once to run, and after each disturbance.
    pub connections: u64,
    planned: u64,
    reported: u64,
}

/// Runs alexnet, and disturbs it.
pub async fn run<L: HasAgent>(
    link: L,
    settings: TimesSettings,
    disturb: Disturb<'_, L>,
) -> Result<Ended, RunError> {
    use layerlab_farm::Link;
    let model = ModelFile::open(&model("alexnet"), &Default::default()).expect("a model");
    let link = Watched::new(link);
    let hello = link.connect().await.map_err(RunError::Link)?.hello;
    let run = RunId::new("disturbed").expect("a name");
    let layers = model.network.layer_count();
    let plan =
        TimesPlan::new(&run, &model.sha256, layers, &hello.processors, settings).expect("a plan");
    let mut reported = 0;
    let mut on_entry = |entry: &Entry| {
        if matches!(entry.event, Event::Sample { .. }) {
            reported += 1;
            disturb(reported, &link);
        }
    };
    let files = [model.file()];
    let orders = &mut plan.orders();
    let driven = drive(&link, &run.into(), &files, orders, &mut on_entry).await?;
    Ok(Ended {
        samples: driven.samples,
        connections: link.connections(),
        planned: plan.samples().expect("a fixed design"),
        reported,
    })
}

/// Runs it to the end, whatever is done to it: every sample comes, and none twice.
pub async fn whole<L: HasAgent>(
    link: L,
    settings: TimesSettings,
    disturb: Disturb<'_, L>,
) -> Ended {
    let ended = run(link, settings, disturb).await.expect("samples");
    let distinct: BTreeSet<(u32, u64)> = ended.samples.iter().map(|s| (s.order, s.index)).collect();
    assert_eq!(ended.samples.len() as u64, ended.planned, "some never came");
    assert_eq!(distinct.len() as u64, ended.planned, "some came twice");
    assert_eq!(ended.reported, ended.planned, "each is reported once");
    ended
}

/// What samples are on a clock of their own, apart from when they were taken: an agent's clock starts anew with it.
pub fn measured(samples: &[Sample]) -> BTreeSet<(u32, u64, u64)> {
    let measured = |sample: &Sample| (sample.order, sample.index, sample.duration.as_nanos());
    samples.iter().map(measured).collect()
}
