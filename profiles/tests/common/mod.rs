//! A small good profile, made by hand: two processors, three layers, seven samples of each segment.

pub(crate) mod everything;
pub(crate) mod probe_samples;
pub(crate) mod spoiled;
pub(crate) mod visits;

use std::collections::BTreeMap;

use layerlab_profiles::accuracy::{self, Metric, Preprocessing, Resize, Tally};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Block, BlockEnd, BuildError, Clock, Conditions, Device, Evaluation, FORMAT, HashedFile, Header,
    Host, Judged, Load, Measured, Measurement, Method, Model, Numerics, Processor, ProcessorKind,
    Profile, Program, ProvedPlacement, Provenance, Sample, VERSION,
};
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::{Bytes, Layer, Nanos, Segment, SupportedLayers};

/// Samples of each segment: the fewest for an interval that is not from the shortest to the longest.
pub(crate) const SAMPLES: u64 = 9;

/// Names that a careless table would break on.
pub(crate) const CPU: &str = "cpu, \"big\" cores\nof 📱";
pub(crate) const NPU: &str = "npu";

/// What runs the accelerator's segments.
pub(crate) const PROVIDER: &str = "QNNExecutionProvider";
pub(crate) const BACKEND: &str = "libQnnHtp.so";

pub(crate) fn header() -> Header {
    let measurement = |processor: &str, design, method, seed| Measurement {
        processor: processor.to_owned(),
        design,
        samples_per_segment: SAMPLES,
        visits: None,
        gap_ns: Nanos::from_millis(5),
        method,
        seed,
        target: None,
        budget_ns: None,
        sentinel: Some(Segment::whole(3)),
    };
    Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        simulated: false,
        emulated: false,
        thermal: Thermal::Cold,
        model: Model {
            name: "three-layers".to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            external_weights: Some(vec![HashedFile {
                name: "three-layers.bin".to_owned(),
                sha256: "ef".repeat(32),
            }]),
            quantised: None,
            opset: 13,
            layers: 3,
            inputs: None,
        },
        device: Device {
            name: "Mate 10 Pro".to_owned(),
            simulated: false,
            clock: Clock::Monotonic,
        },
        processors: vec![
            Processor {
                name: CPU.to_owned(),
                kind: ProcessorKind::Cpu,
                numerics: Numerics::F32,
                emulated: false,
                runtime: "tract".to_owned(),
                runtime_version: "0.23.0".to_owned(),
                runtime_options: Some(BTreeMap::new()),
                runtime_libraries: Some(Vec::new()),
                memory_bytes: None,
                threads: None,
                pinned_to_cores: None,
            },
            Processor {
                name: NPU.to_owned(),
                kind: ProcessorKind::Accelerator,
                numerics: Numerics::F16,
                emulated: false,
                runtime: "onnxruntime".to_owned(),
                runtime_version: "1.20.0".to_owned(),
                runtime_options: Some(BTreeMap::from([(
                    "provider".to_owned(),
                    PROVIDER.to_owned(),
                )])),
                runtime_libraries: Some(vec![
                    library("libonnxruntime.so", "1b"),
                    library(BACKEND, "b1"),
                ]),
                memory_bytes: Some(Bytes::from_bytes(200 << 20)),
                threads: None,
                pinned_to_cores: None,
            },
        ],
        measurements: vec![
            measurement(CPU, Design::LayerPass, Method::Median, 1),
            measurement(NPU, Design::PrefixSuffix, Method::Differencing, u64::MAX),
        ],
        provenance: Provenance {
            started_at: "2025-01-31T22:00:00Z".to_owned(),
            finished_at: "2025-01-31T22:00:01.5Z".to_owned(),
            host_program: program("layerlab"),
            device_program: program("layerlab-agent"),
            run: "r-0001".to_owned(),
            link: "adb".to_owned(),
            device_system: "Android 10".to_owned(),
            host: Host {
                system: "Linux 6.8".to_owned(),
                cpu: "an x86-64".to_owned(),
                logical_cores: 8,
                memory_bytes: Bytes::from_bytes(32 << 30),
            },
            phone: None,
            fitness: None,
        },
        written_by: Some(program("layerlab")),
    }
}

fn library(name: &str, byte: &str) -> HashedFile {
    HashedFile {
        name: name.to_owned(),
        sha256: byte.repeat(32),
    }
}

fn program(name: &str) -> Program {
    Program {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
    }
}

pub(crate) fn layers() -> Vec<Layer> {
    let bytes = [600_000_u64, 150_000, 40_000, 4_000];
    let operators: [&[&str]; 3] = [&["Conv", "Relu"], &["MaxPool"], &["Gemm", "Softmax"]];
    let names = ["/features/0, first", "pool \"1\"", "fc\nlast"];
    (0..3)
        .map(|index| Layer {
            number: index as u32 + 1,
            name: names[index].to_owned(),
            operators: operators[index].iter().map(|&o| o.to_owned()).collect(),
            parameter_bytes: Bytes::from_bytes(1_000 * index as u64),
            input_bytes: Bytes::from_bytes(bytes[index]),
            output_bytes: Bytes::from_bytes(bytes[index + 1]),
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: 1_000_000,
            multiplications: 2_000_000,
        })
        .collect()
}

/// The planted time of a segment in ns: transfers of 400, 300, 200, 100 µs at the four cuts.
pub(crate) fn planted(processor: &str, segment: Segment) -> u64 {
    let layer_times: [u64; 3] = match processor {
        NPU => [1_000_000, 500_000, 2_000_000],
        _ => [10_000_000, 3_000_000, 20_000_000],
    };
    let cuts = [400_000, 300_000, 200_000, 100_000];
    let (first, last) = (segment.first() as usize, segment.last() as usize);
    let compute: u64 = layer_times[first - 1..last].iter().sum();
    match processor {
        NPU => compute + cuts[first - 1] + cuts[last],
        _ => compute,
    }
}

/// The rounds through all segments that the first of two orders has.
pub(crate) const ROUNDS_OF_FIRST_ORDER: u64 = 5;

/// Every sample, jittered by up to 4 µs around the planted time, the last first. Each processor has two
/// orders: 0 and 1, 2 and 3.
pub(crate) fn samples(header: &Header) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut clock = 1_000_000_000;
    for (place, measurement) in (0..).zip(&header.measurements) {
        let segments = measurement.design.segments(header.model.layers);
        let rounds = measurement.samples_per_segment;
        let mut index = 0;
        for round in 0..rounds {
            if round == ROUNDS_OF_FIRST_ORDER {
                index = 0;
            }
            for &segment in &segments {
                let jitter = (round * 7) % rounds * 1_000;
                let duration = planted(&measurement.processor, segment) - 4_000 + jitter;
                clock += 5_000_000;
                samples.push(Sample {
                    processor: measurement.processor.clone(),
                    segment,
                    order: 2 * place + u32::from(round >= ROUNDS_OF_FIRST_ORDER),
                    block: 0,
                    index,
                    started: Nanos::from_nanos(clock),
                    duration: Nanos::from_nanos(duration),
                });
                clock += duration;
                index += 1;
            }
        }
    }
    samples.reverse();
    samples
}

/// Starts every inference 5 ms after the one before it.
pub(crate) fn one_after_the_other(samples: &mut [Sample]) {
    let mut in_time: Vec<&mut Sample> = samples.iter_mut().collect();
    in_time.sort_by_key(|sample| sample.started);
    let mut clock = Nanos::from_millis(1_000);
    for sample in in_time {
        sample.started = clock + Nanos::from_millis(5);
        clock = sample.started + sample.duration;
    }
}

/// What a loaded segment takes: weights once, inputs and outputs once.
fn memory(layers: &[Layer], segment: Segment) -> Bytes {
    let layers = &layers[segment.first() as usize - 1..segment.last() as usize];
    let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    weights + layers[0].input_bytes + layers[layers.len() - 1].output_bytes
}

/// The samples of the three layers with the blocks that they name, all of which count.
pub(crate) fn measured(samples: Vec<Sample>) -> Measured {
    measured_of(&layers(), samples)
}

/// The same of other layers.
pub(crate) fn measured_of(layers: &[Layer], samples: Vec<Sample>) -> Measured {
    // The whole model as one unit, or else the sum of its layers.
    let sentinel = |processor: &str| {
        let whole = Segment::whole(layers.len() as u32);
        let of = |segment: Segment| {
            let of_segment = samples
                .iter()
                .filter(|one| one.processor == processor && one.segment == segment);
            let first = of_segment.min_by_key(|sample| (sample.order, sample.index));
            first.map(|sample| sample.duration)
        };
        let singles = || {
            (1..=whole.last())
                .filter_map(|layer| of(Segment::single(layer)))
                .sum()
        };
        of(whole).unwrap_or_else(singles)
    };
    let end = |processor: &str| BlockEnd {
        sentinel: sentinel(processor),
        conditions: Conditions::default(),
    };
    let blocks: BTreeMap<_, _> = samples
        .iter()
        .map(|sample| ((sample.order, sample.block), &sample.processor))
        .collect();
    let blocks = blocks
        .into_iter()
        .map(|((order, number), processor)| Block {
            processor: processor.clone(),
            order,
            number,
            rested: Nanos::ZERO,
            before: end(processor),
            after: end(processor),
            rejection: None,
            disturbance: None,
        })
        .collect();
    let placements = samples
        .iter()
        .filter(|sample| sample.processor != CPU)
        .map(|sample| proof(&sample.processor, sample.segment));
    let placements = placements.collect();
    let loads = samples.iter().map(|sample| Load {
        processor: sample.processor.clone(),
        segment: sample.segment,
        duration: Nanos::from_millis(u64::from(sample.segment.layers())),
        memory: memory(layers, sample.segment),
        compiled: (sample.processor != CPU).then_some(sample.segment.first() == 1),
    });
    Measured {
        loads: loads.collect(),
        placements,
        samples,
        blocks,
        ..Measured::default()
    }
}

pub(crate) fn good_profile() -> Profile {
    let header = header();
    let samples = samples(&header);
    Profile::build(header, layers(), measured(samples)).expect("every segment has samples")
}

/// The profile that the same header, layers and samples give after all.
pub(crate) fn rebuilt(profile: Profile) -> Profile {
    try_rebuilt(profile).expect("still complete")
}

/// The same, or why there is none.
pub(crate) fn try_rebuilt(profile: Profile) -> Result<Profile, BuildError> {
    let measured = Measured {
        samples: profile.samples,
        rejected: profile.rejected,
        blocks: profile.blocks,
        unsupported: profile.unsupported,
        loads: profile.loads,
        placements: profile.placements,
        probes: profile.probes,
        ..Measured::default()
    };
    Profile::build(profile.header, profile.layers, measured)
}

/// The good profile, its accelerator measured by the local design.
pub(crate) fn by_least_squares() -> Profile {
    let mut header = header();
    header.measurements[1].design = Design::Local;
    header.measurements[1].method = Method::Graph;
    let samples = samples(&header);
    Profile::build(header, layers(), measured(samples)).expect("every segment has samples")
}

/// That a segment ran where it should.
fn proof(processor: &str, segment: Segment) -> ProvedPlacement {
    ProvedPlacement {
        processor: processor.to_owned(),
        segment,
        provider: PROVIDER.to_owned(),
        backend: Some(BACKEND.to_owned()),
        fallback_refused: true,
        nodes: 2 * u64::from(segment.layers()),
        operators: ["Conv", "Relu"].map(str::to_owned).into(),
    }
}

/// The profile with every placement of the three layers evaluated on ten images.
pub(crate) fn evaluated(profile: Profile) -> Profile {
    let evaluation = Evaluation {
        cpu: CPU.to_owned(),
        accelerator: NPU.to_owned(),
        set: "ten".to_owned(),
        set_sha256: "5e".repeat(32),
        preprocessing: Preprocessing {
            resize: Resize::Stretch,
            channels: "rgb".to_owned(),
            mean: Vec::new(),
            scale: 1.0,
        },
        metric: Metric::TopK { k: 1 },
        answers: 10,
        samples: 300,
        seed: 7,
        stop_at_half_width: None,
        as_runs: false,
        executed_flop: 450_000_000,
        naive_flop: 8 * 10 * 9_000_000,
        provenance: Some(profile.header.provenance.clone()),
    };
    let chosen =
        accuracy::chosen_placements(&[SupportedLayers::all(3), SupportedLayers::all(3)], 300, 7);
    let judged: Vec<Judged> = chosen
        .into_iter()
        .map(|(combination, part)| {
            let wrong = combination.processors().iter().filter(|&&p| p != 0).count();
            let right = Tally {
                hits: 1,
                ..Tally::default()
            };
            let missed = Tally {
                hits: 0,
                false_alarms: 1,
                misses: 1,
            };
            let tallies = (0..10).map(|answer| if answer < wrong { missed } else { right });
            Judged {
                tallies: tallies.collect(),
                part,
                combination,
            }
        })
        .collect();
    profile
        .with_evaluation(evaluation, &judged)
        .expect("a baseline and single layers")
        .with_placements(
            (1..=3)
                .map(|layer| proof(NPU, Segment::single(layer)))
                .collect(),
        )
}
