//! What a large profile costs: differencing a grouped table, and reading and writing many samples.
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use layerlab_profiles::check::check;
use layerlab_profiles::derive::differencing;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{Method, Profile, Sample};
use layerlab_profiles::summary::Summary;
use layerlab_profiles::{Bytes, Layer, Nanos, Segment};

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod common;

/// A deep network: 20,100 segments in a grouped table.
const LAYERS: u32 = 200;
/// As many as a night's run takes of each segment.
const SAMPLES_PER_SEGMENT: u64 = 30;

/// A duration that varies like a measured one, without a random generator.
fn duration(segment: Segment, round: u64) -> Nanos {
    let planted = 1_000_000 * u64::from(segment.layers());
    let jitter = (round * 7_919 + u64::from(segment.first()) * 104_729) % 50_000;
    Nanos::from_nanos(planted + jitter)
}

fn durations(segment: Segment) -> Vec<Nanos> {
    (0..SAMPLES_PER_SEGMENT)
        .map(|round| duration(segment, round))
        .collect()
}

fn derivation(criterion: &mut Criterion) {
    let measured: Vec<(Segment, Vec<Nanos>)> = Design::Grouped
        .iter(LAYERS)
        .map(|segment| (segment, durations(segment)))
        .collect();
    let summarise = || -> BTreeMap<Segment, Summary> {
        let summaries = measured
            .iter()
            .filter_map(|(segment, samples)| Some((*segment, Summary::of(samples)?)));
        summaries.collect()
    };
    criterion.bench_function("summarise 20,100 segments of 30 samples", |bencher| {
        bencher.iter(summarise);
    });
    let summaries = summarise();
    criterion.bench_function("difference 200 layers of 20,100 segments", |bencher| {
        bencher.iter(|| differencing(black_box(LAYERS), black_box(&summaries)));
    });
}

/// One accelerator, 40 layers, 820 segments with 122 samples each: 100,040 samples.
fn large_profile() -> (Profile, Vec<Sample>) {
    const LAYERS: u32 = 40;
    const SAMPLES_PER_SEGMENT: u64 = 122;
    let mut header = common::header();
    header.model.layers = LAYERS;
    header.processors.remove(0);
    header.measurements.remove(0);
    header.measurements[0].design = Design::Grouped;
    header.measurements[0].method = Method::Differencing;
    header.measurements[0].samples_per_segment = SAMPLES_PER_SEGMENT;
    let layers = (1..=LAYERS)
        .map(|number| Layer {
            number,
            name: format!("/features/{number}/Conv"),
            operators: vec!["Conv".to_owned(), "Relu".to_owned()],
            parameter_bytes: Bytes::from_bytes(1_000_000),
            input_bytes: Bytes::from_bytes(100_000),
            output_bytes: Bytes::from_bytes(100_000),
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: 1_000_000,
            multiplications: 1_000_000,
        })
        .collect();
    let mut samples = Vec::new();
    let mut started = Nanos::from_millis(86_400_000);
    for round in 0..SAMPLES_PER_SEGMENT {
        for segment in Design::Grouped.iter(LAYERS) {
            let duration = duration(segment, round);
            samples.push(Sample {
                processor: common::NPU.to_owned(),
                segment,
                order: 0,
                block: 0,
                index: samples.len() as u64,
                started,
                duration,
            });
            started = started + duration + Nanos::from_millis(5);
        }
    }
    let built =
        Profile::build(header, layers, common::measured(samples.clone())).expect("complete");
    (built, samples)
}

fn documents(criterion: &mut Criterion) {
    let (profile, samples) = large_profile();
    let dir = tempfile::tempdir().expect("a temporary directory");
    profile.write(dir.path()).expect("written");

    criterion.bench_function("build a profile of 100,000 samples", |bencher| {
        bencher.iter_batched(
            || {
                (
                    profile.header.clone(),
                    profile.layers.clone(),
                    common::measured(samples.clone()),
                )
            },
            |(header, layers, samples)| Profile::build(header, layers, samples),
            BatchSize::LargeInput,
        );
    });
    criterion.bench_function("check a profile of 100,000 samples", |bencher| {
        bencher.iter(|| check(black_box(&profile)));
    });
    criterion.bench_function("read a profile of 100,000 samples", |bencher| {
        bencher.iter(|| Profile::read(black_box(dir.path())));
    });
    criterion.bench_function("encode a profile of 100,000 samples", |bencher| {
        bencher.iter(|| black_box(&profile).to_files());
    });
    criterion.bench_function(
        "write a profile of 100,000 samples, to the disk",
        |bencher| {
            bencher.iter_batched(
                || tempfile::tempdir().expect("a temporary directory"),
                |dir| {
                    profile.write(dir.path()).expect("written");
                    dir
                },
                BatchSize::PerIteration,
            );
        },
    );
}

criterion_group!(benches, derivation, documents);
criterion_main!(benches);
