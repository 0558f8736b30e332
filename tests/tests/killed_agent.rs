//! An agent that is killed in the middle of a run, again and again, loses no sample and doubles none.

use std::collections::BTreeSet;

use layerlab::campaign::{ModelFile, TimesPlan, TimesSettings, drive};
use layerlab::device::Link;
use layerlab::device::discovery::Choice;
use layerlab::device::local::LocalLink;
use layerlab_profiles::Nanos;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::Sample;
use layerlab_protocol::{Entry, Event, Hygiene, RunId};
use layerlab_tests::watched::Watched;
use layerlab_tests::{agent_program, file};

/// Runs alexnet on the symmetric phone with noise; kills the agent whenever one of `kill_at` samples
/// has come. Returns the samples and how often the daemon had to connect.
async fn run(kill_at: &[u64]) -> (Vec<Sample>, u64) {
    let model =
        ModelFile::open(&file("models/alexnet.onnx"), &Default::default()).expect("a model");
    let device = Choice::File(file("devices/noisy.toml"));
    let link = LocalLink::new(agent_program(), device).expect("a state folder");
    let link = Watched::new(link);
    let hello = link.connect().await.expect("an agent").hello;
    let settings = TimesSettings {
        processors: Vec::new(),
        design: Design::Grouped,
        samples_per_segment: 10,
        gap: Nanos::from_micros(10),
        seed: 5,
        hygiene: Hygiene::default(),
        target: 0.02,
        budget: Nanos::from_millis(1000),
    };
    let run = RunId::new("killed").expect("a name");
    let layers = model.network.layer_count();
    let plan =
        TimesPlan::new(&run, &model.sha256, layers, &hello.processors, settings).expect("a plan");

    let mut kill_at: BTreeSet<u64> = kill_at.iter().copied().collect();
    let mut samples = 0;
    let mut on_entry = |entry: &Entry| {
        if matches!(entry.event, Event::Sample { .. }) {
            samples += 1;
            if kill_at.remove(&samples) {
                link.kill_agent();
            }
        }
    };
    let driven = drive(
        &link,
        &run.into(),
        &[model.file()],
        &mut plan.orders(),
        &mut on_entry,
    )
    .await
    .expect("samples");
    assert_eq!(
        samples,
        plan.samples().expect("a fixed number"),
        "each sample is reported once"
    );
    assert!(kill_at.is_empty(), "never came to kill at {kill_at:?}");
    (driven.samples, link.connections())
}

/// What a sample is, apart from when it was taken: the clock starts anew with the agent.
fn measured(samples: &[Sample]) -> BTreeSet<(u32, u64, u64)> {
    samples
        .iter()
        .map(|s| (s.order, s.index, s.duration.as_nanos()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_agent_changes_no_sample() {
    let (undisturbed, connections) = run(&[]).await;
    assert_eq!(connections, 2, "one to learn the processors, one to run");
    let (killed, connections) = run(&[1, 2, 50, 200, 401, 700]).await;
    assert!(
        connections > 3,
        "the agent was killed and connected to again, {connections} times"
    );
    assert_eq!(killed.len(), undisturbed.len());
    assert_eq!(measured(&killed).len(), killed.len(), "no sample twice");
    assert_eq!(measured(&killed), measured(&undisturbed));
}
